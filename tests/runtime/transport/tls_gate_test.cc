// The gate before gRPC: whom it lets in, and the bytes that it carries.

#include "runtime/transport/grpc/tls_gate.h"

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/file_descriptor.h"
#include "runtime/transport/grpc/socket_names.h"
#include "runtime/transport/grpc/tls.h"
#include "tests/runtime/identity/test_run.h"
#include "tests/runtime/transport/grpc_node.h"
#include "tests/runtime/transport/raw_socket.h"
#include "tests/runtime/transport/tcp_relay.h"
#include "tests/runtime/transport/tls_client.h"

namespace gossamer {
namespace tls_gate_test {

using ::testing::HasSubstr;

constexpr absl::Duration kShort = absl::Milliseconds(300);

// A server that nobody calls, behind a gate.
class GatedServer {
 public:
  explicit GatedServer(std::shared_ptr<CertificateFolder> folder,
                       const std::string& address = "127.0.0.1:0") {
    const auto limiter = std::make_shared<ConnectionLimiter>(64);
    const ServerSockets sockets = {
        .limiter = limiter, .guard = std::make_shared<FloodGuard>(0, limiter)};
    grpc::ServerBuilder builder;
    gate = std::make_unique<TlsGate>(std::move(folder),
                                     std::make_shared<ShownCertificates>(),
                                     sockets, kShort, &builder);
    builder.RegisterAsyncGenericService(&service_);
    queue_ = builder.AddCompletionQueue();
    port = gate->Listen(address);
    server_ = builder.BuildAndStart();
    gate->Start();
  }
  ~GatedServer() {
    gate->StopAccepting();
    server_->Shutdown(std::chrono::system_clock::now());
    queue_->Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_->Next(&tag, &ok)) {
    }
    server_.reset();
  }

  std::unique_ptr<TlsGate> gate;
  int port = 0;  // 0: it does not listen

 private:
  grpc::AsyncGenericService service_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::unique_ptr<grpc::Server> server_;
};

bool Connects(const sockaddr* address, socklen_t size) {
  const FileDescriptor socket(
      ::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return ::connect(socket.get(), address, size) == 0;
}
bool ConnectsByIpv4(int port) {
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return Connects(reinterpret_cast<const sockaddr*>(&to), sizeof to);
}
bool ConnectsByIpv6(int port) {
  sockaddr_in6 to = {};
  to.sin6_family = AF_INET6;
  to.sin6_port = htons(static_cast<uint16_t>(port));
  to.sin6_addr = in6addr_loopback;
  return Connects(reinterpret_cast<const sockaddr*>(&to), sizeof to);
}
bool HasIpv6() {
  const FileDescriptor socket(
      ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in6 own = {};
  own.sin6_family = AF_INET6;
  own.sin6_addr = in6addr_loopback;
  return ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&own),
                sizeof own) == 0;
}

size_t OpenDescriptors() {
  size_t open = 0;
  for (const auto& d : std::filesystem::directory_iterator("/proc/self/fd")) {
    open += d.exists();
  }
  return open;
}

TEST(TlsGateTest, GrpcIsHandedAuthenticatedConnectionsAlone) {
  const TestRun run, other;
  GatedServer server(run.Certificates(run.Other(Role::kTopology)));
  const int port = server.port;
  ASSERT_NE(port, 0);
  const std::string member = run.Issue(run.Peer(2));
  EXPECT_FALSE(TlsClient(port, "").GetsIn());
  EXPECT_FALSE(TlsClient(port, other.Issue(other.Peer(2))).GetsIn());
  EXPECT_FALSE(TlsClient(port, member, "h2", TLS1_2_VERSION).GetsIn());
  EXPECT_FALSE(TlsClient(port, member, "http/1.1").GetsIn());
  for (const std::string& bytes :
       {std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), kHalfHandshake,
        std::string()}) {
    RawSocket socket(port);
    EXPECT_TRUE(socket.Send(bytes));
    EXPECT_TRUE(socket.EndsWithin(kLimit));
  }
  EXPECT_EQ(server.gate->handed(), 0u);
  EXPECT_TRUE(TlsClient(port, member).GetsIn());
  EXPECT_EQ(server.gate->handed(), 1u);
}

// gRPC would neither take nor close them.
TEST(TlsGateTest, NoConnectionIsHandedToAServerThatShutsDown) {
  const TestRun run;
  const GatedServer server(run.Certificates(run.Peer(1)));
  TlsClient late(server.port, run.Issue(run.Peer(2)));
  server.gate->StopAccepting();
  EXPECT_FALSE(late.GetsIn());
  EXPECT_EQ(server.gate->handed(), 0u);
}

// OpenSSL passes over new keys without end within one read.
TEST(TlsGateTest, AFloodOfNewKeysEndsItsConnection) {
  const TestRun run;
  const GatedServer server(run.Certificates(run.Peer(1)));
  const std::string member = run.Issue(run.Peer(2));
  TlsClient few(server.port, member), many(server.port, member);
  ASSERT_TRUE(few.GetsIn());
  ASSERT_TRUE(many.GetsIn());
  EXPECT_EQ(few.Renew(8), 8);
  EXPECT_LT(many.Renew(1 << 20), 1 << 20);
  EXPECT_FALSE(few.socket.EndsWithin(kShort));
}

// Until gRPC has noticed, which needs somebody who polls it.
TEST(TlsGateTest, AnEndThatHasClosedCostsNoProcessor) {
  const TestRun run;
  const GatedServer server(run.Certificates(run.Peer(1)));
  TlsClient client(server.port, run.Issue(run.Peer(2)));
  ASSERT_TRUE(client.GetsIn());
  ::shutdown(client.socket.fd(), SHUT_WR);
  absl::SleepFor(absl::Milliseconds(50));
  const std::clock_t before = std::clock();
  absl::SleepFor(kShort);
  const double used =
      static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
  EXPECT_LT(used, absl::ToDoubleSeconds(kShort) / 2);
}

TEST(TlsGateTest, ListensOnAllAddressesOfItsHost) {
  const TestRun run;
  const auto folder = run.Certificates(run.Peer(1));
  for (const char* host : {"0.0.0.0", "[::]", "localhost"}) {
    const GatedServer server(folder, absl::StrCat(host, ":0"));
    ASSERT_NE(server.port, 0) << host;
    EXPECT_TRUE(ConnectsByIpv4(server.port)) << host;
    if (HasIpv6() && host[0] != 'l') {
      EXPECT_TRUE(ConnectsByIpv6(server.port)) << host;
    }
  }
  const GatedServer first(folder);
  EXPECT_FALSE(ConnectsByIpv6(first.port));
  for (const std::string& address :
       {absl::StrCat("127.0.0.1:", first.port),
        absl::StrCat("0.0.0.0:", first.port), std::string("127.0.0.1"),
        std::string("127.0.0.1:7x"), std::string("192.0.2.1:0")}) {
    EXPECT_EQ(GatedServer(folder, address).port, 0) << address;
  }
}

GrpcOptions Locked(const TestRun& run, PeerId self) {
  GrpcOptions options = OptionsOf(self);
  options.certificates = run.Certificates(run.Peer(self.value));
  options.max_body_bytes = 8 << 20;
  return options;
}

TEST(TlsGateTest, APortInUseIsSaid) {
  const TestRun run;
  const Node a(Locked(run, kA));
  GrpcOptions options = Locked(run, kB);
  options.listen_address = a.address();
  RealLoop loop;
  const absl::Status status = GrpcTransport::Create(&loop, options).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("the port is in use"));
}

// All connections have more to carry than one turn, both ways and at once.
TEST(TlsGateTest, ConnectionsThatAreBusyAtOnceKeepApart) {
  constexpr int kDiallers = 3, kFrames = 6;
  constexpr size_t kBytes = 8 << 20;
  const TestRun run;
  Node center(Locked(run, PeerId{9}));
  std::vector<std::unique_ptr<Node>> diallers;
  for (uint64_t id = 1; id <= kDiallers; ++id) {
    diallers.push_back(std::make_unique<Node>(Locked(run, PeerId{id})));
    center.Connect(PeerId{id}, "");
    diallers.back()->Connect(PeerId{9}, center.address());
  }
  ASSERT_TRUE(
      center.Await([](const Seen& s) { return s.open.size() == kDiallers; }));
  for (auto& node : diallers) {
    ASSERT_TRUE(node->Await([](const Seen& s) { return !s.open.empty(); }));
  }
  for (int i = 0; i < kFrames; ++i) {
    for (uint64_t id = 1; id <= kDiallers; ++id) {
      ASSERT_TRUE(center.Send(PeerId{id}, kBytes));
      ASSERT_TRUE(diallers[id - 1]->Send(PeerId{9}, kBytes));
    }
  }
  EXPECT_TRUE(center.Await([](const Seen& s) {
    return s.frames.size() == kDiallers * kFrames || !s.downs.empty();
  }));
  for (auto& node : diallers) {
    EXPECT_TRUE(node->Await([](const Seen& s) {
      return s.frames.size() == kFrames || !s.downs.empty();
    }));
  }
  EXPECT_TRUE(
      center.recorder.With([](const Seen& s) { return s.downs.empty(); }));
}

// The bytes that wait to leave by TCP from `port` of this machine.
size_t WaitingAt(int port) {
  std::ifstream sockets("/proc/net/tcp");
  size_t waiting = 0;
  for (std::string line; std::getline(sockets, line);) {
    unsigned own = 0, bytes = 0;
    if (std::sscanf(line.c_str(), " %*u: %*8x:%x %*8x:%*x %*x %x:", &own,
                    &bytes) == 2 &&
        own == static_cast<unsigned>(port)) {
      waiting += bytes;
    }
  }
  return waiting;
}

// A peer whose sockets are small, so that they fill up.
GrpcOptions Small(const TestRun& run, PeerId self) {
  GrpcOptions options = Locked(run, self);
  options.stream_window_bytes = 1 << 20;
  return options;
}

// Connects two peers through a relay that stands still, with more on its way to
// `b` than a socket takes.
void FillUp(Node& a, Node& b, TcpRelay& relay) {
  a.Connect(kB, "");
  b.Connect(kA, relay.address());
  ASSERT_TRUE(a.Await([](const Seen& s) { return !s.open.empty(); }));
  ASSERT_TRUE(b.Await([](const Seen& s) { return !s.open.empty(); }));
  relay.StandStill();
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(a.Send(kB, 8 << 20));
  const absl::Time limit = absl::Now() + kLimit;
  for (size_t before = 0, now = 1; now != before || now < (1 << 20);) {
    ASSERT_LT(absl::Now(), limit) << now;
    absl::SleepFor(absl::Milliseconds(50));
    before = std::exchange(now, WaitingAt(PortOf(a.address())));
  }
}

TEST(TlsGateTest, AProgramEndsThoughAnEndDoesNotRead) {
  const TestRun run;
  auto a = std::make_unique<Node>(Small(run, kA));
  TcpRelay relay(PortOf(a->address()));
  GrpcOptions dials = Locked(run, kB);
  dials.dial_from_both_ends = true;
  Node b(dials);
  FillUp(*a, b, relay);
  a.reset();
}

TEST(TlsGateTest, TheLastBytesOfAConnectionDoNotWaitForEver) {
  const TestRun run;
  GrpcOptions hasty = Small(run, kA);
  hasty.hello_timeout = kShort;
  hasty.keepalive_time = kShort;
  hasty.keepalive_timeout = kShort;
  Node a(hasty);
  TcpRelay relay(PortOf(a.address()));
  const size_t before = OpenDescriptors();
  GrpcOptions dials = Locked(run, kB);
  dials.dial_from_both_ends = true;
  auto b = std::make_unique<Node>(dials);
  FillUp(a, *b, relay);
  EXPECT_TRUE(a.Await([](const Seen& s) { return !s.downs.empty(); }));
  b.reset();
  // The relay's two sockets stay.
  const absl::Time limit = absl::Now() + kLimit;
  while (OpenDescriptors() > before + 2 && absl::Now() < limit) {
    absl::SleepFor(absl::Milliseconds(20));
  }
  EXPECT_LE(OpenDescriptors(), before + 2);
}

TEST(ShownCertificatesTest, KnowsConnectionsByTheNameThatGrpcHasForThem) {
  ShownCertificates shown;
  shown.Add(7, "seven");
  const std::string seven =
      absl::StrCat("unix-abstract:", NameBehindGate(7, "ipv4:10.0.0.2:4711"));
  EXPECT_EQ(*shown.Of(seven), "seven");
  EXPECT_EQ(PlainAddress(seven), "ipv4:10.0.0.2:4711");
  const std::string eight =
      absl::StrCat("unix-abstract:", NameBehindGate(8, "ipv6:[::1]:4711"));
  EXPECT_EQ(PlainAddress(eight), "ipv6:[::1]:4711");
  for (const std::string& unknown :
       {eight, std::string("ipv4:10.0.0.2:4711"), std::string(),
        std::string("unix-abstract:gossamer-"),
        std::string("unix-abstract:gossamer-7x/ipv4:10.0.0.2:4711")}) {
    EXPECT_TRUE(absl::IsUnavailable(shown.Of(unknown).status())) << unknown;
  }
  shown.Remove(7);
  EXPECT_TRUE(absl::IsUnavailable(shown.Of(seven).status()));
}

}  // namespace tls_gate_test
}  // namespace gossamer
