// Tests on real networks, which need root and /dev/net/tun.  Measured times
// must not be less than the scenario's; no test can say how much longer they
// may be.

#include "runtime/lab/lab.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include "runtime/lab/link_meter.h"
#include "runtime/lab/packet.h"

namespace gossamer {
namespace {

using ::testing::SizeIs;

constexpr absl::Duration kLimit = absl::Seconds(60);

Scenario Parse(std::string_view text) {
  const auto scenario = ParseScenario(text, "test", std::nullopt);
  EXPECT_TRUE(scenario.ok()) << scenario.status();
  return *scenario;
}

std::unique_ptr<Lab> Start(const Scenario& scenario) {
  absl::StatusOr<std::unique_ptr<Lab>> lab = Lab::Start(scenario);
  EXPECT_TRUE(lab.ok()) << "these tests need what the lab needs: "
                        << lab.status();
  return lab.ok() ? *std::move(lab) : nullptr;
}

// Returns a bound UDP or listening TCP socket on a host.
FileDescriptor SocketAt(const Lab& lab, size_t rank, int type, int port) {
  const auto there = ScopedNetwork::Enter(lab.Network(rank));
  EXPECT_TRUE(there.ok());
  FileDescriptor fd(::socket(AF_INET, type | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  ::inet_pton(AF_INET, lab.Address(rank).c_str(), &address.sin_addr);
  EXPECT_EQ(
      ::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)),
      0);
  const timeval limit = {.tv_sec = 30, .tv_usec = 0};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  return fd;
}

sockaddr_in AddressOf(const Lab& lab, size_t rank, int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  ::inet_pton(AF_INET, lab.Address(rank).c_str(), &address.sin_addr);
  return address;
}

void SendNumber(const FileDescriptor& from, const sockaddr_in& to, int number) {
  ASSERT_EQ(::sendto(from.get(), &number, sizeof(number), 0,
                     reinterpret_cast<const sockaddr*>(&to), sizeof(to)),
            static_cast<ssize_t>(sizeof(number)));
}

int ReceiveNumber(const FileDescriptor& socket) {
  int number = -1;
  EXPECT_EQ(::recv(socket.get(), &number, sizeof(number), 0),
            static_cast<ssize_t>(sizeof(number)));
  return number;
}

// Binds the socket to the lab's own host, where this thread is.
sockaddr_in BindHere(const FileDescriptor& socket) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  ::inet_pton(AF_INET, "10.77.255.254", &address.sin_addr);
  EXPECT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address),
                   sizeof(address)),
            0);
  const timeval limit = {.tv_sec = 30, .tv_usec = 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  socklen_t size = sizeof(address);
  ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size);
  return address;
}

TEST(Lab, RoundTripsTakeAtLeastWhatTheirLinksSay) {
  const Scenario scenario = Parse(R"(
    hosts: 3
    link { rtt: "20ms" }
    link { a: "host-0" b: "host-2" delay: "5ms" b_to_a { delay: "25ms" } })");
  const auto lab = Start(scenario);
  ASSERT_NE(lab, nullptr);
  auto meter = LinkMeter::Make(*lab);
  ASSERT_TRUE(meter.ok()) << meter.status();
  const RoundTrips near = meter->MeasureRoundTrips(0, 1, 10, kLimit);
  EXPECT_EQ(near.answered, 10);
  EXPECT_GE(near.min_ms, 20);
  const RoundTrips far = meter->MeasureRoundTrips(2, 0, 10, kLimit);
  EXPECT_EQ(far.answered, 10);
  EXPECT_GE(far.min_ms, 30);
}

TEST(Lab, PacketsArriveInOrderWhateverTheJitter) {
  const auto lab = Start(
      Parse(R"(hosts: 2 link { rtt: "2ms" jitter: "5ms" rate: "20mbit" })"));
  ASSERT_NE(lab, nullptr);
  const FileDescriptor a = SocketAt(*lab, 0, SOCK_DGRAM, 5000);
  const FileDescriptor b = SocketAt(*lab, 1, SOCK_DGRAM, 5000);
  for (int i = 0; i < 200; ++i) SendNumber(a, AddressOf(*lab, 1, 5000), i);
  for (int i = 0; i < 200; ++i) ASSERT_EQ(ReceiveNumber(b), i);
}

// 20 packets of 1250 bytes, sent every 10 ms at 1 Mbit/s, cannot take less
// time.
TEST(Lab, NothingArrivesFasterThanItsRate) {
  const auto lab = Start(Parse(R"(hosts: 2 link { rate: "1mbit" })"));
  ASSERT_NE(lab, nullptr);
  const FileDescriptor a = SocketAt(*lab, 0, SOCK_DGRAM, 5000);
  const FileDescriptor b = SocketAt(*lab, 1, SOCK_DGRAM, 5000);
  const sockaddr_in to = AddressOf(*lab, 1, 5000);
  const std::string payload(1250 - 28, 'x');
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 20; ++i) {
    ASSERT_GT(::sendto(a.get(), payload.data(), payload.size(), 0,
                       reinterpret_cast<const sockaddr*>(&to), sizeof(to)),
              0);
  }
  std::string got(2000, '\0');
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(::recv(b.get(), got.data(), got.size(), 0), 1250 - 28);
  }
  EXPECT_GE(std::chrono::steady_clock::now() - begin,
            std::chrono::milliseconds(200));
}

TEST(Lab, AHostsLinksShareItsUplink) {
  const auto lab = Start(Parse(R"(hosts: 3 uplink: "1mbit")"));
  ASSERT_NE(lab, nullptr);
  const FileDescriptor a = SocketAt(*lab, 0, SOCK_DGRAM, 5000);
  const std::string payload(1250 - 28, 'x');
  const auto begin = std::chrono::steady_clock::now();
  std::vector<FileDescriptor> others;
  for (size_t to : {1, 2}) {
    others.push_back(SocketAt(*lab, to, SOCK_DGRAM, 5000));
    const sockaddr_in there = AddressOf(*lab, to, 5000);
    for (int i = 0; i < 10; ++i) {
      ASSERT_GT(
          ::sendto(a.get(), payload.data(), payload.size(), 0,
                   reinterpret_cast<const sockaddr*>(&there), sizeof(there)),
          0);
    }
  }
  // Twenty packets of 10 ms, whichever of the two they are for.
  std::string got(2000, '\0');
  for (const FileDescriptor& other : others) {
    for (int i = 0; i < 10; ++i) {
      ASSERT_EQ(::recv(other.get(), got.data(), got.size(), 0), 1250 - 28);
    }
  }
  EXPECT_GE(std::chrono::steady_clock::now() - begin,
            std::chrono::milliseconds(200));
}

TEST(Lab, CountsWhatItLosesAndDrops) {
  const auto lab = Start(Parse(R"(
    hosts: 3
    link { a: "host-0" b: "host-1" loss: 1 }
    link { a: "host-0" b: "host-2" outage { from: "0s" to: "1h" } }
    link { a: "host-1" b: "host-2" rate: "1kbit" queue: "64KB" })"));
  ASSERT_NE(lab, nullptr);
  std::vector<FileDescriptor> sockets;
  for (size_t i = 0; i < 3; ++i) {
    sockets.push_back(SocketAt(*lab, i, SOCK_DGRAM, 5000));
  }
  for (int i = 0; i < 50; ++i) {
    SendNumber(sockets[0], AddressOf(*lab, 1, 5000), i);
    SendNumber(sockets[0], AddressOf(*lab, 2, 5000), i);
  }
  // At 1 kbit/s, 100 packets of 1000 bytes do not even begin to leave.
  const sockaddr_in slow = AddressOf(*lab, 2, 5000);
  const std::string payload(1000 - 28, 'x');
  for (int i = 0; i < 100; ++i) {
    ::sendto(sockets[1].get(), payload.data(), payload.size(), 0,
             reinterpret_cast<const sockaddr*>(&slow), sizeof(slow));
  }
  // A device hands its packets over in order: once a later one has come out,
  // those before it are counted.
  const FileDescriptor own(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const sockaddr_in here = BindHere(own);
  for (size_t i = 0; i < 2; ++i) {
    SendNumber(sockets[i], here, static_cast<int>(i));
    EXPECT_EQ(ReceiveNumber(own), static_cast<int>(i));
  }
  const SwitchReport report = lab->Stop();
  EXPECT_EQ(report.links[0][1].lost, 50u);
  EXPECT_EQ(report.links[0][2].outage, 50u);
  EXPECT_EQ(report.links[1][2].carried, 64u);
  EXPECT_EQ(report.links[1][2].queue_full, 36u);
  EXPECT_EQ(report.Total().carried, 64u + 2);
}

TEST(Lab, NobodyIsReachedWhoIsNotThere) {
  const auto lab = Start(Parse("hosts: 2"));
  ASSERT_NE(lab, nullptr);
  const FileDescriptor a = SocketAt(*lab, 0, SOCK_DGRAM, 5000);
  SendNumber(a, AddressOf(*lab, 50, 5000), 1);
  auto meter = LinkMeter::Make(*lab);
  ASSERT_TRUE(meter.ok());
  ASSERT_EQ(meter->MeasureRoundTrips(0, 1, 1, kLimit).answered, 1);
  EXPECT_EQ(lab->Stop().unroutable, 1u);
}

// TCP hands over more than one packet at once.  All of it must come out whole,
// and with the weight of single packets.
TEST(Lab, CarriesTcpInOnePieceOrMany) {
  for (const char* network :
       {R"(hosts: 2 link { rtt: "4ms" })",
        R"(hosts: 2 link { rtt: "4ms" rate: "400mbit" })",
        R"(hosts: 2 link { rtt: "4ms" loss: 0.005 })",
        R"(hosts: 2 mtu: 9000 tcp: "stock" link { rate: "1gbit" })"}) {
    SCOPED_TRACE(network);
    const auto lab = Start(Parse(network));
    ASSERT_NE(lab, nullptr);
    const FileDescriptor listener = SocketAt(*lab, 1, SOCK_STREAM, 6000);
    ASSERT_EQ(::listen(listener.get(), 1), 0);
    const FileDescriptor client = SocketAt(*lab, 0, SOCK_STREAM, 0);
    const sockaddr_in to = AddressOf(*lab, 1, 6000);
    ASSERT_EQ(::connect(client.get(), reinterpret_cast<const sockaddr*>(&to),
                        sizeof(to)),
              0);
    constexpr size_t kWords = 1 << 20;
    std::vector<uint32_t> out(kWords), in(kWords);
    for (size_t i = 0; i < kWords; ++i) out[i] = static_cast<uint32_t>(i * i);
    std::thread sender([&] {
      const char* at = reinterpret_cast<const char*>(out.data());
      for (size_t left = kWords * 4; left > 0;) {
        const ssize_t n = ::send(client.get(), at, left, MSG_NOSIGNAL);
        if (n <= 0) break;
        at += n;
        left -= static_cast<size_t>(n);
      }
      ::shutdown(client.get(), SHUT_WR);
    });
    const FileDescriptor server(::accept(listener.get(), nullptr, nullptr));
    ASSERT_GE(server.get(), 0);
    EXPECT_EQ(::recv(server.get(), in.data(), kWords * 4, MSG_WAITALL),
              static_cast<ssize_t>(kWords * 4));
    sender.join();
    EXPECT_EQ(in, out);
    const LinkCounters link = lab->Stop().links[0][1];
    const Scenario scenario = Parse(network);
    const double segment = scenario.mtu - 52.0;  // without headers
    EXPECT_GE(static_cast<double>(link.bytes), kWords * 4 * (1 + 52 / segment));
  }
}

TEST(Lab, ManyCanBeAtOnceAndAfterOneAnother) {
  for (int i = 0; i < 3; ++i) {
    const auto outer = Start(Parse("hosts: 2"));
    ASSERT_NE(outer, nullptr);
    const auto inner = Start(Parse(R"(hosts: 2 link { rtt: "10ms" })"));
    ASSERT_NE(inner, nullptr);
    auto meter = LinkMeter::Make(*inner);
    ASSERT_TRUE(meter.ok());
    EXPECT_GE(meter->MeasureRoundTrips(0, 1, 1, kLimit).min_ms, 10);
  }
}

TEST(BurstBytes, AreAMillisecondOfTheSlowestLink) {
  const LinkSpec fast, slow{.bytes_per_second = 12'500'000},
      crawling{.bytes_per_second = 125'000}, lossy{.loss = 0.1};
  EXPECT_EQ(BurstBytes({crawling, fast, fast}, 0, 1500), 65'536u);
  EXPECT_EQ(BurstBytes({fast, slow}, 0, 1500), 12'500u);
  EXPECT_EQ(BurstBytes({fast, slow, crawling}, 0, 1500), 1500u);
  EXPECT_EQ(BurstBytes({fast, slow}, 0, 9000), 9000u);
  EXPECT_EQ(BurstBytes({fast, lossy}, 0, 1500), 1500u);
  EXPECT_EQ(BurstBytes({fast, fast}, 0, 1500, 12'500'000), 12'500u);
}

std::vector<uint8_t> Frame(size_t payload, uint16_t piece) {
  std::vector<uint8_t> f(kFrameHeader + 40 + payload);
  f[1] = piece > 0 ? 1 : 0;
  f[4] = static_cast<uint8_t>(piece & 0xff);
  f[5] = static_cast<uint8_t>(piece >> 8);
  uint8_t* ip = f.data() + kFrameHeader;
  ip[0] = 0x45;
  ip[9] = 6;
  ip[16] = 10, ip[17] = 77, ip[18] = 0, ip[19] = 3;
  ip[20 + 12] = 5 << 4;
  return f;
}

TEST(InspectFrame, WeighsWhatIsSplitLaterAsItsParts) {
  EXPECT_EQ(InspectFrame(Frame(1000, 0))->wire_bytes, 1040u);
  EXPECT_EQ(InspectFrame(Frame(1000, 0))->destination, 0x0a4d0003u);
  EXPECT_EQ(InspectFrame(Frame(3000, 1460))->wire_bytes, 3000u + 3 * 40);
  EXPECT_EQ(InspectFrame(Frame(2920, 1460))->wire_bytes, 2920u + 2 * 40);
}

TEST(InspectFrame, RefusesWhatIsNoPacket) {
  EXPECT_FALSE(InspectFrame({}).has_value());
  const std::vector<uint8_t> frame = Frame(10, 5);
  EXPECT_FALSE(InspectFrame(std::span(frame).first(20)).has_value());
  std::vector<uint8_t> v6 = frame;
  v6[kFrameHeader] = 0x60;
  EXPECT_FALSE(InspectFrame(v6).has_value());
  std::vector<uint8_t> udp = frame;
  udp[kFrameHeader + 9] = 17;
  EXPECT_FALSE(InspectFrame(udp).has_value());
  std::vector<uint8_t> headers_only = frame;
  headers_only[kFrameHeader + 32] = 0xf0;
  EXPECT_FALSE(InspectFrame(headers_only).has_value());
}

}  // namespace
}  // namespace gossamer
