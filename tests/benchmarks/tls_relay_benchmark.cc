// Bytes that come through TLS, read by the thread that decrypts them, and by
// another behind a relay that decrypts them: the cost of a gate that ends TLS
// before gRPC and hands it the bytes in the clear.
//
// The sender runs on a thread of the same process, so the processor time is
// that of both ends.

#include <arpa/inet.h>
#include <benchmark/benchmark.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "runtime/identity/authority_folder.h"
#include "tests/testing/temporary_folder.h"

namespace gossamer {
namespace {

constexpr int kMessage = 9'033'232;  // a dense exchange of the results page
constexpr int kRecord = 16 << 10;    // TLS decrypts this much at a time

void Require(bool good) {
  if (!good) std::abort();
}

struct FreeTls {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  void operator()(SSL* tls) const { SSL_free(tls); }
};
using Tls = std::unique_ptr<SSL, FreeTls>;

// Returns one end of a connection, before its handshake.
Tls MakeEnd(bool dials, int socket, const std::string& folder) {
  const std::unique_ptr<SSL_CTX, FreeTls> context(SSL_CTX_new(TLS_method()));
  Require(SSL_CTX_use_certificate_chain_file(
              context.get(), (folder + "/cert.pem").c_str()) == 1 &&
          SSL_CTX_use_PrivateKey_file(context.get(),
                                      (folder + "/key.pem").c_str(),
                                      SSL_FILETYPE_PEM) == 1);
  Tls tls(SSL_new(context.get()));
  Require(SSL_set_min_proto_version(tls.get(), TLS1_3_VERSION) == 1 &&
          SSL_set_fd(tls.get(), socket) == 1);
  dials ? SSL_set_connect_state(tls.get()) : SSL_set_accept_state(tls.get());
  return tls;
}

// Two connected sockets, closed with the object.
class SocketPair {
 public:
  // Over TCP on loopback, or within the kernel.
  explicit SocketPair(bool tcp) {
    if (!tcp) {
      Require(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) == 0);
      return;
    }
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* const at = reinterpret_cast<sockaddr*>(&address);
    socklen_t size = sizeof address;
    ends[0] = socket(AF_INET, SOCK_STREAM, 0);
    Require(bind(listener, at, size) == 0 && listen(listener, 1) == 0 &&
            getsockname(listener, at, &size) == 0 &&
            connect(ends[0], at, size) == 0);
    ends[1] = accept(listener, nullptr, nullptr);
    Require(ends[1] >= 0);
    close(listener);
  }
  ~SocketPair() {
    for (const int end : ends) close(end);
  }
  SocketPair(const SocketPair&) = delete;
  SocketPair& operator=(const SocketPair&) = delete;
  // Ends every call that waits on either end.
  void Shutdown() const {
    for (const int end : ends) shutdown(end, SHUT_RDWR);
  }

  std::array<int, 2> ends = {-1, -1};
};

void ReadAll(benchmark::State& state, bool relayed) {
  // The sender ends by an error, not by a signal.
  signal(SIGPIPE, SIG_IGN);
  const TemporaryFolder folder;
  const std::string authority = folder.path() + "/ca";
  const std::string own = folder.path() + "/own";
  Require(AuthorityFolder::Init(authority, "benchmark", absl::Now(),
                                absl::Hours(24))
              .ok() &&
          AuthorityFolder::Open(authority)
              ->Issue({.run = "benchmark", .peer = PeerId{1}}, {}, absl::Now(),
                      absl::Hours(24), own)
              .ok());
  const SocketPair wire(/*tcp=*/true), clear(/*tcp=*/false);
  const Tls from = MakeEnd(/*dials=*/true, wire.ends[0], own);
  const Tls to = MakeEnd(/*dials=*/false, wire.ends[1], own);
  std::thread sender([&] {
    const std::vector<char> bytes(64 << 10, 7);
    while (SSL_write(from.get(), bytes.data(), static_cast<int>(bytes.size())) >
           0) {
    }
  });
  std::thread relay;
  if (relayed) {
    relay = std::thread([&] {
      std::vector<char> bytes(kRecord);
      for (int n = 1; n > 0;) {
        n = SSL_read(to.get(), bytes.data(), kRecord);
        if (n > 0 && send(clear.ends[0], bytes.data(), static_cast<size_t>(n),
                          MSG_NOSIGNAL) != n) {
          n = 0;
        }
      }
    });
  }
  std::vector<char> message(kMessage);
  for (auto _ : state) {
    for (int at = 0; at < kMessage;) {
      const int left = kMessage - at;
      const int n =
          relayed ? static_cast<int>(recv(clear.ends[1], message.data() + at,
                                          static_cast<size_t>(left), 0))
                  : SSL_read(to.get(), message.data() + at, left);
      Require(n > 0);
      at += n;
    }
  }
  state.SetBytesProcessed(state.iterations() * kMessage);
  wire.Shutdown();
  clear.Shutdown();
  sender.join();
  if (relayed) relay.join();
}

void BM_Direct(benchmark::State& state) { ReadAll(state, false); }
void BM_Relayed(benchmark::State& state) { ReadAll(state, true); }
BENCHMARK(BM_Direct)->UseRealTime()->MeasureProcessCPUTime()->Unit(
    benchmark::kMillisecond);
BENCHMARK(BM_Relayed)
    ->UseRealTime()
    ->MeasureProcessCPUTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace gossamer

BENCHMARK_MAIN();
