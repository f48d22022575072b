// Connections that bring no messages, and honest ones that bring few.

#include "runtime/transport/grpc/flood_guard.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/runtime/transport/raw_socket.h"

namespace gossamer {
namespace flood_guard_test {

constexpr double kKiB = 1 << 10, kMiB = 1 << 20;
constexpr double kWindow = 16 * kMiB;
// Bytes of one frame on the wire, each in a record of TLS of its own.
constexpr double kTls = 22, kPing = 17 + kTls, kUpdates = 2 * 13 + kTls;
// The bytes that are added to each 16 KiB of a message.
constexpr double kFraming = 9 + kTls;

// A connection that is polled every 50 ms.
struct Link {
  explicit Link(double window = kWindow) : budget(window) {}
  bool Poll(absl::Duration passed = absl::Milliseconds(50)) {
    exceeded =
        exceeded || budget.Exceeded(facts, passed, [&] { return begun; });
    return exceeded;
  }
  // Bytes of messages that come in, as frames; their messages do not yet.
  void Receive(double bytes) {
    facts.read += bytes + kFraming * bytes / (16 * kKiB);
  }
  void Deliver(double bytes, double messages = 1) {
    facts.message_bytes += bytes;
    facts.messages += static_cast<uint64_t>(messages);
  }
  // A peer that has said hello.
  void Greet() {
    facts.read += 5 * kKiB;  // the handshake and the hello
    facts.calls = begun = 1;
  }

  FloodBudget budget;
  FloodBudget::Facts facts;
  uint64_t begun = 0;
  bool exceeded = false;
};

TEST(FloodBudgetTest, PayloadsMayBeAWindowAhead) {
  Link link;
  link.Greet();
  double ahead = 0;
  for (int i = 0; i < 2000; ++i) {
    // 512 KiB a message.  The loop is busy for some polls and then takes all.
    if (ahead + 5 * kMiB <= kWindow) {
      link.Receive(5 * kMiB);
      ahead += 5 * kMiB;
    } else {
      link.Deliver(ahead, ahead / (512 * kKiB));
      ahead = 0;
    }
    ASSERT_FALSE(link.Poll()) << i;
  }
}

TEST(FloodBudgetTest, TheOverheadOfSmallMessagesIsNoFlood) {
  Link link;
  link.Greet();
  for (int i = 0; i < 2000; ++i) {
    // A thousand of ten bytes, each in a record and with an answer to a ping.
    link.facts.read += 1000 * (10 + 9 + 5 + kTls + kPing);
    link.Deliver(10'000, 1000);
    ASSERT_FALSE(link.Poll()) << i;
  }
}

TEST(FloodBudgetTest, APeerThatOnlyReceivesMaySendWindowUpdates) {
  Link link;
  link.Greet();
  for (int i = 0; i < 2000; ++i) {
    link.facts.sent += 50 * kMiB;
    link.facts.read += 50 * kMiB / (16 * kKiB) * kUpdates + kPing;
    ASSERT_FALSE(link.Poll()) << i;
  }
}

TEST(FloodBudgetTest, ALargeMessageOnASlowLinkIsNoFlood) {
  for (const double rate : {4 * kKiB, 64 * kKiB, kMiB}) {  // bytes a second
    Link link;
    link.Greet();
    for (int message = 0; message < 3; ++message) {
      for (double came = 0; came < 4 * kMiB; came += rate / 20) {
        link.Receive(rate / 20);
        ASSERT_FALSE(link.Poll()) << rate;
      }
      link.Deliver(4 * kMiB);
    }
  }
}

TEST(FloodBudgetTest, KeepalivesAndEstimatesOfTheLinkAreFree) {
  Link link;
  link.Greet();
  for (int i = 0; i < 100'000; ++i) {
    link.facts.read += kPing;
    link.facts.sent += kPing;
    ASSERT_FALSE(link.Poll()) << i;
  }
}

TEST(FloodBudgetTest, HeadersAndRefusedCallsAreNoFlood) {
  constexpr double kHeaders = 300 + kTls, kRequest = 200 + 14;
  Link link(kMiB);
  // A long chain of certificates, and a view that is handed back.
  link.facts.read += 20 * kKiB;
  link.Receive(64 * kKiB);
  ASSERT_FALSE(link.Poll());
  link.Deliver(64 * kKiB);
  link.facts.calls = link.begun = 1;
  for (int i = 0; i < 2000; ++i) {
    // 200 a second are allowed to an identity; two more each second are
    // refused before they count.
    link.facts.read += 10.1 * (kHeaders + kRequest + 2 * kPing);
    link.facts.sent += 10 * kKiB;
    link.Deliver(10 * 200, 10);
    link.facts.calls += 10;
    link.begun += 10;
    ASSERT_FALSE(link.Poll()) << i;
  }
}

TEST(FloodBudgetTest, AFloodBeforeAHelloSoonExceedsTheBudget) {
  // Pings, which are answered.
  Link stranger;
  stranger.facts.read = stranger.facts.sent = 512 * kKiB;
  EXPECT_FALSE(stranger.Poll());
  stranger.facts.read = stranger.facts.sent = 600 * kKiB;
  EXPECT_TRUE(stranger.Poll());
  // Resets.
  Link resets;
  resets.begun = 1000;
  resets.facts.read = 30 * kKiB;
  EXPECT_FALSE(resets.Poll());
  resets.facts.read = 40 * kKiB;
  EXPECT_TRUE(resets.Poll());
}

TEST(FloodBudgetTest, ANeighboursFloodExceedsTheBudgetAfterAWindow) {
  // It may have as much under way as a window holds.
  Link pings;
  pings.Greet();
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(pings.Poll(), i > 16) << i;
    pings.facts.read += kMiB;
  }
  // But no more calls than were heard of.
  Link resets;
  resets.Greet();
  resets.facts.read += 64 * kKiB;
  EXPECT_FALSE(resets.Poll());
  resets.begun += FloodBudget::kUnheard + 1;
  EXPECT_TRUE(resets.Poll());
}

TEST(FloodBudgetTest, MessagesDoNotHideAFlood) {
  Link large;
  large.Greet();
  Link small = large;
  for (int i = 0; i < 40; ++i) {
    // A payload, and as many bytes of resets.
    large.Receive(2 * kMiB);
    large.Deliver(kMiB, 2);
    large.Poll();
    // A hundred messages of one byte.
    small.facts.read += kMiB;
    small.Deliver(100, 100);
    small.Poll();
  }
  EXPECT_TRUE(large.exceeded);
  EXPECT_TRUE(small.exceeded);
}

TEST(FloodBudgetTest, SilenceAndPayloadsSaveUpNoBudget) {
  Link link;
  link.Greet();
  // A day of silence, and a gigabyte of payloads.
  link.Poll(absl::Hours(24));
  for (int i = 0; i < 1024; ++i) {
    link.Receive(kMiB);
    link.Deliver(kMiB, 2);
    link.Poll();
  }
  ASSERT_FALSE(link.exceeded);
  link.facts.read += kWindow + FloodBudget::kFirst;
  EXPECT_FALSE(link.Poll());
  link.facts.read += 2 * FloodBudget::kRate;
  EXPECT_TRUE(link.Poll());
}

// The accepted end of a connection, which reads nothing by itself.
class Accepted {
 public:
  explicit Accepted(const RawListener& listener) : socket(listener.Accept()) {}
  ~Accepted() { ::close(socket); }
  Accepted(const Accepted&) = delete;
  Accepted& operator=(const Accepted&) = delete;
  void Read(size_t bytes) const {
    std::string buffer(bytes, '\0');
    ASSERT_EQ(::recv(socket, buffer.data(), bytes, MSG_WAITALL),
              static_cast<ssize_t>(bytes));
  }
  const int socket;
};

TEST(FloodGuardTest, AFloodingConnectionIsResetWithItsUnreadBytes) {
  const RawListener listener;
  const auto limiter = std::make_shared<ConnectionLimiter>(8);
  FloodGuard guard(/*window=*/0, limiter);
  RawSocket rude(listener.port(), 2), honest(listener.port());
  const Accepted rude_end(listener), honest_end(listener);
  guard.Add(rude_end.socket);
  guard.Add(honest_end.socket);
  const std::string name = OtherEndOf(honest_end.socket).address;
  const std::string bytes(static_cast<size_t>(FloodBudget::kFirst) / 4, 'x');
  // Bytes that nobody has read have cost nothing.
  ASSERT_TRUE(rude.Send(bytes));
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(rude.Send(bytes) && honest.Send(bytes));
    guard.Poll();
    EXPECT_EQ(guard.watched(), 2u);
    rude_end.Read(bytes.size());
    honest_end.Read(bytes.size());
    guard.AccountOf(name)->CreditMessage(bytes.size());
  }
  guard.Poll();
  const std::vector<std::string> reports = guard.TakeReports();
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_TRUE(absl::StrContains(reports[0], "ipv4:127.0.0.2:")) << reports[0];
  EXPECT_TRUE(guard.TakeReports().empty());
  // Its host is banned.
  RawSocket again(listener.port(), 2), other(listener.port(), 3);
  const Accepted again_end(listener), other_end(listener);
  EXPECT_FALSE(limiter->Allow(again_end.socket));
  EXPECT_TRUE(limiter->Allow(other_end.socket));
  // The bytes that waited to be read are gone with the connection.
  char byte = 0;
  EXPECT_LE(::recv(rude_end.socket, &byte, 1, MSG_DONTWAIT), 0);
  EXPECT_TRUE(rude.EndsWithin(absl::Seconds(60)));
  EXPECT_EQ(guard.watched(), 1u);
  EXPECT_TRUE(honest.Send("x"));
}

TEST(FloodGuardTest, ForgetsASocketThatIsClosed) {
  const RawListener listener;
  const auto limiter = std::make_shared<ConnectionLimiter>(8);
  FloodGuard guard(/*window=*/0, limiter);
  std::string name;
  {
    RawSocket stranger(listener.port());
    const Accepted end(listener);
    guard.Add(end.socket);
    name = OtherEndOf(end.socket).address;
    EXPECT_NE(guard.AccountOf(name), nullptr);
  }
  guard.Poll();
  EXPECT_TRUE(guard.TakeReports().empty());
  EXPECT_EQ(guard.watched(), 0u);
  EXPECT_EQ(guard.AccountOf(name), nullptr);
  guard.Add(STDIN_FILENO);  // no socket
  EXPECT_EQ(guard.watched(), 0u);
}

}  // namespace flood_guard_test
}  // namespace gossamer
