// The options of an edge's sockets, and their way through gRPC.

#include "runtime/transport/grpc/socket_tuning.h"

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "gtest/gtest.h"
#include "runtime/transport/grpc/congestion.h"
#include "runtime/transport/grpc/connection_limiter.h"

namespace gossamer {
namespace socket_tuning_test {

constexpr int64_t kMiB = 1 << 20;

TEST(SocketTuning, AdaptsToPausesIfTheyAreForgotten) {
  TcpSettings settings;
  for (const bool slow : {false, true}) {
    settings.slow_start_after_idle = slow;
    const SocketTuning tuning = ChooseTuning(settings, "auto", kMiB);
    EXPECT_EQ(tuning.congestion, "cubic");
    EXPECT_TRUE(tuning.adapts);
    EXPECT_EQ(tuning.pauses, slow);
  }
  EXPECT_EQ(ChooseTuning(settings, "reno", kMiB).congestion, "reno");
  EXPECT_FALSE(ChooseTuning(settings, "reno", kMiB).adapts);
  EXPECT_EQ(ChooseTuning(settings, "", kMiB).congestion, "");
}

TEST(CongestionChooser, BbrWherePausesOutlastTwoTimeOuts) {
  constexpr absl::Duration kRto = absl::Milliseconds(300);
  CongestionChooser chooser(/*pauses=*/true);
  // Of a kernel whose windows outlast pauses.
  CongestionChooser fast(/*pauses=*/false);
  std::string_view has;
  // Sends, and does nothing for so long; polled every 50 ms.
  const auto pause = [&](absl::Duration length) {
    for (absl::Duration idle; idle < length; idle += absl::Milliseconds(50)) {
      has = chooser.Choose({.idle = idle, .rto = kRto});
      EXPECT_EQ(fast.Choose({.idle = idle, .rto = kRto}), "cubic");
    }
    has = chooser.Choose({.rto = kRto});
    EXPECT_EQ(fast.Choose({.rto = kRto}), "cubic");
  };
  for (int i = 0; i < 50; ++i) pause(absl::Milliseconds(550));
  EXPECT_EQ(has, "cubic");
  // Two may be a start or a score.
  pause(absl::Milliseconds(800));
  pause(absl::Milliseconds(800));
  EXPECT_EQ(has, "cubic");
  pause(absl::Milliseconds(800));
  EXPECT_EQ(has, "bbr");
  // A few short ones are no reason to go back, many are.
  for (int i = 0; i < CongestionChooser::kShortPauses - 1; ++i) {
    pause(absl::Milliseconds(100));
  }
  EXPECT_EQ(has, "bbr");
  pause(absl::Milliseconds(100));
  EXPECT_EQ(has, "cubic");
  // Long pauses that are a minute apart are forgotten one by one.
  for (int i = 0; i < 10; ++i) {
    pause(absl::Milliseconds(800));
    for (int poll = 0; poll < CongestionChooser::kForgetAfter; ++poll) {
      has = chooser.Choose({.rto = kRto});
    }
  }
  EXPECT_EQ(has, "cubic");
  // Packets of one message have no pauses between them.
  for (int i = 0; i < CongestionChooser::kLongPauses; ++i) {
    pause(absl::Milliseconds(800));
  }
  for (int i = 0; i < 100; ++i) {
    has = chooser.Choose({.idle = absl::Milliseconds(i % 2), .rto = kRto});
  }
  EXPECT_EQ(has, "bbr");
}

TEST(CongestionChooser, BbrWhereALongLinkLosesPackets) {
  constexpr int kSecond = CongestionChooser::kApart;
  uint32_t resent = 0;
  // The choice after so many polls, with as many packets lost at the first.
  const auto choose = [&](CongestionChooser& chooser, int polls, uint32_t lost,
                          int milliseconds = 100) {
    resent += lost;
    std::string_view has;
    for (int i = 0; i < polls; ++i) {
      has = chooser.Choose(
          {.rtt = absl::Milliseconds(milliseconds), .resent = resent});
    }
    return has;
  };
  CongestionChooser lossy(/*pauses=*/false);
  EXPECT_EQ(choose(lossy, kSecond, 1), "cubic");
  EXPECT_EQ(choose(lossy, kSecond, 2), "cubic");
  EXPECT_EQ(choose(lossy, kSecond, 1), "bbr");
  // It stays as long as a minute brings a loss.
  EXPECT_EQ(choose(lossy, CongestionChooser::kForgetAfter - kSecond, 0), "bbr");
  EXPECT_EQ(choose(lossy, CongestionChooser::kForgetAfter, 1), "bbr");
  EXPECT_EQ(choose(lossy, CongestionChooser::kForgetAfter + 1, 0), "cubic");

  // A queue that overflows once, for many round trips.
  CongestionChooser overflows(/*pauses=*/true);
  for (int i = 0; i < 2 * kSecond; ++i) {
    EXPECT_EQ(choose(overflows, 1, 30), "cubic");
  }
  EXPECT_EQ(choose(overflows, CongestionChooser::kForgetAfter, 0), "cubic");

  CongestionChooser near(/*pauses=*/false);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(choose(near, kSecond, 1, /*milliseconds=*/2), "cubic");
  }
}

// A queue makes no link long.
TEST(CongestionChooser, BbrAtOnceOnAVeryLongLink) {
  const auto at_once = [](absl::Duration least_rtt) {
    CongestionChooser chooser(/*pauses=*/false);
    const std::string_view has = chooser.Choose(
        {.rtt = absl::Milliseconds(600), .least_rtt = least_rtt});
    // Without BBR several connections wait for a reason of their own.
    EXPECT_FALSE(chooser.NeedsOthers());
    return has;
  };
  EXPECT_EQ(at_once(absl::Milliseconds(600)), "bbr");
  EXPECT_EQ(at_once(absl::Milliseconds(100)), "cubic");
}

constexpr absl::Duration kRtt = absl::Milliseconds(200);

// A pause is no reason, and a link of which a queue makes a long one is none.
TEST(CongestionChooser, OthersBesideASocketThatLosesOrIsHeldBackOnALongLink) {
  const auto needs = [](CongestionChooser::Facts facts, bool loses) {
    CongestionChooser chooser(/*pauses=*/true);
    EXPECT_FALSE(chooser.NeedsOthers());
    for (int i = 0; i < 200 * CongestionChooser::kApart; ++i) {
      if (loses) facts.resent = static_cast<uint32_t>(i);
      chooser.Choose(facts);
      if (chooser.NeedsOthers()) return true;
    }
    return false;
  };
  constexpr absl::Duration kNear = absl::Milliseconds(2);
  EXPECT_TRUE(needs({.rtt = kRtt, .least_rtt = kRtt}, true));
  EXPECT_FALSE(needs({.rtt = kRtt, .least_rtt = kNear}, true));
  EXPECT_TRUE(needs({.rtt = kRtt, .held = true, .least_rtt = kRtt}, false));
  constexpr absl::Duration kFar = CongestionChooser::kVeryLongLink;
  EXPECT_TRUE(needs({.rtt = kFar, .held = true, .least_rtt = kFar}, false));
  EXPECT_FALSE(needs({.rtt = kRtt, .least_rtt = kRtt}, false));
  CongestionChooser pauses(/*pauses=*/true);
  constexpr absl::Duration kRto = absl::Milliseconds(300);
  std::string_view has;
  for (int i = 0; i < 100; ++i) {
    has = pauses.Choose({.idle = (i % 20) * CongestionChooser::kPollInterval,
                         .rto = kRto,
                         .rtt = kRtt,
                         .least_rtt = kRtt});
    EXPECT_FALSE(pauses.NeedsOthers());
  }
  EXPECT_EQ(has, "bbr");
}

TEST(CongestionChooser, BbrWhereAWindowIsTooSmallForALongLink) {
  const int enough = static_cast<int>(CongestionChooser::kHeldRoundTrips *
                                      kRtt / CongestionChooser::kPollInterval);
  // The choice after so many polls.
  const auto choose = [](CongestionChooser& chooser, int polls, bool held,
                         absl::Duration rtt = kRtt,
                         absl::Duration least = kRtt) {
    std::string_view has;
    for (int i = 0; i < polls; ++i) {
      has = chooser.Choose({.rtt = rtt, .held = held, .least_rtt = least});
    }
    return has;
  };
  CongestionChooser held(/*pauses=*/false);
  EXPECT_EQ(choose(held, enough - 1, true), "cubic");
  EXPECT_EQ(choose(held, 1, true), "bbr");
  // It is tried without BBR after a minute, whatever BBR holds back.
  EXPECT_EQ(choose(held, CongestionChooser::kForgetAfter - 1, true), "bbr");
  EXPECT_EQ(choose(held, enough, true), "cubic");
  EXPECT_EQ(choose(held, 1, true), "bbr");

  // A slow start for each message of several, with as long a pause.
  CongestionChooser starts(/*pauses=*/false);
  for (int i = 0; i < 100; ++i) {
    choose(starts, enough / 2, true);
    EXPECT_EQ(choose(starts, enough / 2, false), "cubic");
  }
  // The window is full in every other poll.
  CongestionChooser half(/*pauses=*/false);
  for (int i = 0; i < 10 * enough; ++i) {
    EXPECT_EQ(choose(half, 1, i % 2 == 0), "cubic");
  }
  // The link is full: its queue makes round trips longer.
  CongestionChooser full(/*pauses=*/false);
  EXPECT_EQ(choose(full, 2 * enough, true, kRtt, kRtt / 1.5), "cubic");
  // A route with shorter round trips is no reason by itself.
  CongestionChooser moves(/*pauses=*/false);
  choose(moves, enough / 2, true);
  EXPECT_EQ(choose(moves, 1, false, kRtt / 4, kRtt / 4), "cubic");
  CongestionChooser near(/*pauses=*/false);
  EXPECT_EQ(choose(near, 2 * enough, true, absl::Milliseconds(2),
                   absl::Milliseconds(2)),
            "cubic");
  // One round trip is shorter than a poll, which sees no more than a moment.
  CongestionChooser middle(/*pauses=*/false);
  constexpr absl::Duration kMiddle = absl::Milliseconds(20);
  EXPECT_EQ(
      choose(middle, CongestionChooser::kHeldPolls - 1, true, kMiddle, kMiddle),
      "cubic");
  EXPECT_EQ(choose(middle, 1, true, kMiddle, kMiddle), "bbr");
}

// A socket's own congestion control, as the kernel says.
std::string CongestionOf(int fd) {
  char name[16] = {};
  socklen_t size = sizeof(name);
  getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &size);
  return name;
}

TEST(SocketCongestion, ForgetsASocketThatIsClosed) {
  SocketCongestion sockets(/*pauses=*/true);
  const int first = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_GE(first, 0);
  sockets.Add(first);
  sockets.Poll();
  EXPECT_EQ(sockets.watched(), 1u);
  close(first);
  // Another one has the descriptor now, and is left alone.
  const int second = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(second, first);
  ASSERT_EQ(setsockopt(second, IPPROTO_TCP, TCP_CONGESTION, "reno", 4), 0);
  sockets.Poll();
  EXPECT_EQ(sockets.watched(), 0u);
  EXPECT_EQ(CongestionOf(second), "reno");
  close(second);
  sockets.Add(STDIN_FILENO);  // no socket
  EXPECT_EQ(sockets.watched(), 0u);
}

TEST(SocketTuning, AsksForABufferOnlyIfThatGivesMore) {
  TcpSettings settings;
  settings.largest_send = 4 * kMiB;
  settings.max_send = 4 * kMiB;
  settings.largest_receive = 64 * kMiB;  // the kernel's own is better
  settings.max_receive = 64 * kMiB;
  const SocketTuning tuning = ChooseTuning(settings, "", 16 * kMiB);
  EXPECT_EQ(tuning.send_buffer, 4 * kMiB);
  EXPECT_EQ(tuning.receive_buffer, 0);
  settings.max_send = 212992;  // less than the kernel's own
  EXPECT_EQ(ChooseTuning(settings, "", 16 * kMiB).send_buffer, 0);
  settings.max_send = 64 * kMiB;  // no more than the bytes in flight
  EXPECT_EQ(ChooseTuning(settings, "", 16 * kMiB).send_buffer, 16 * kMiB);
}

TEST(SocketTuning, ASocketThatRefusesWorksWithoutIt) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_GE(fd, 0);
  ApplyTuning(fd, {.congestion = "no-such-control", .send_buffer = 1 << 16});
  int bytes = 0;
  socklen_t size = sizeof(bytes);
  ASSERT_EQ(getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, &size), 0);
  EXPECT_GE(bytes, 1 << 16);
  ApplyTuning(STDIN_FILENO, {.congestion = "cubic"});  // not even a socket
  close(fd);
}

// Counts this process's open TCP sockets that are, or are not, connected and
// have a send buffer of exactly this size.
int CountSockets(bool connected, int send_buffer) {
  int count = 0;
  for (int fd = 3; fd < 1024; ++fd) {
    int value = 0;
    socklen_t size = sizeof(value);
    if (getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &value, &size) != 0 ||
        value != send_buffer) {
      continue;
    }
    sockaddr_storage peer;
    socklen_t length = sizeof(peer);
    const bool up =
        getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &length) == 0;
    count += up == connected ? 1 : 0;
  }
  return count;
}

// gRPC takes the tuning by an interface of which it publishes only the name.
TEST(SocketTuning, ReachesBothEndsOfAConnection) {
  constexpr int kAsked = 77824;  // the kernel's own is another
  const SocketTuning tuning{.congestion = "reno", .send_buffer = kAsked};
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &port);
  const auto congestion = std::make_shared<SocketCongestion>(/*pauses=*/true);
  const auto limiter = std::make_shared<ConnectionLimiter>(8);
  AddTuning(
      {tuning, limiter, std::make_shared<FloodGuard>(0, limiter), congestion},
      &builder);
  grpc::AsyncGenericService service;
  builder.RegisterAsyncGenericService(&service);
  const auto queue = builder.AddCompletionQueue();
  const auto server = builder.BuildAndStart();
  ASSERT_NE(server, nullptr);
  EXPECT_GE(CountSockets(false, 2 * kAsked), 1);  // the listener

  grpc::ChannelArguments arguments;
  AddTuning(tuning, nullptr, nullptr, &arguments);
  const auto channel =
      grpc::CreateCustomChannel("127.0.0.1:" + std::to_string(port),
                                grpc::InsecureChannelCredentials(), arguments);
  EXPECT_TRUE(channel->WaitForConnected(std::chrono::system_clock::now() +
                                        std::chrono::seconds(60)));
  // The dialled and the accepted one.
  EXPECT_EQ(CountSockets(true, 2 * kAsked), 2);
  server->Shutdown(std::chrono::system_clock::now());
  queue->Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue->Next(&tag, &ok)) {
  }
}

}  // namespace socket_tuning_test
}  // namespace gossamer
