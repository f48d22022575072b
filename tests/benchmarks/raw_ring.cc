#include "tests/benchmarks/raw_ring.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "algorithms/base/status_macros.h"

namespace gossamer {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kLimit = std::chrono::seconds(120);
constexpr int kDialEveryMs = 50;

absl::Status Failed(const char* what) {
  return absl::ErrnoToStatus(errno, absl::StrCat("raw TCP: ", what));
}

absl::Status Tune(int fd, const RawRingOptions& options) {
  const int one = 1;
  if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) != 0) {
    return Failed("TCP_NODELAY");
  }
  const int bytes = options.buffer_bytes;
  if (bytes > 0 &&
      (setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes)) != 0 ||
       setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes)) != 0)) {
    return Failed("buffers");
  }
  const std::string& name = options.congestion;
  if (!name.empty() && setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(),
                                  name.size()) != 0) {
    return Failed("congestion control");
  }
  return absl::OkStatus();
}

sockaddr_in Address(const std::string& host, int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  inet_pton(AF_INET, host.c_str(), &address.sin_addr);
  return address;
}

absl::StatusOr<int> Listen(const RawRingOptions& options) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return Failed("socket");
  const int one = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
  const sockaddr_in at =
      Address(options.hosts[static_cast<size_t>(options.rank)], options.port);
  // A buffer that the first packet is to offer must be set on the listener.
  if (absl::Status tuned = Tune(fd, options); !tuned.ok()) return tuned;
  if (bind(fd, reinterpret_cast<const sockaddr*>(&at), sizeof(at)) != 0 ||
      listen(fd, 1) != 0) {
    return Failed("listen");
  }
  return fd;
}

absl::StatusOr<int> Dial(const RawRingOptions& options,
                         const std::string& host) {
  const auto end = Clock::now() + kLimit;
  const sockaddr_in to = Address(host, options.port);
  while (Clock::now() < end) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return Failed("socket");
    if (absl::Status tuned = Tune(fd, options); !tuned.ok()) return tuned;
    if (connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof(to)) == 0) {
      return fd;
    }
    close(fd);
    poll(nullptr, 0, kDialEveryMs);  // it may not listen yet
  }
  return Failed("connect");
}

// Returns the `n` bytes of a call of OpenSSL that returned `done`; 0 if the
// socket is not ready.
absl::StatusOr<size_t> MovedByTls(const SSL* tls, int done, size_t n) {
  if (done == 1) return n;
  const int why = SSL_get_error(tls, done);
  if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) return 0;
  return absl::UnavailableError("raw TLS: a peer has gone");
}

}  // namespace

absl::StatusOr<std::unique_ptr<RawRing>> RawRing::Connect(
    const RawRingOptions& options) {
  std::unique_ptr<RawRing> ring(new RawRing);
  const absl::StatusOr<int> listener = Listen(options);
  if (!listener.ok()) return listener.status();
  const size_t right =
      (static_cast<size_t>(options.rank) + 1) % options.hosts.size();
  const absl::StatusOr<int> dialled = Dial(options, options.hosts[right]);
  if (!dialled.ok()) return dialled.status();
  ring->sockets_[0] = *dialled;
  pollfd waiting = {*listener, POLLIN, 0};
  const int ms = static_cast<int>(
      std::chrono::duration_cast<std::chrono::milliseconds>(kLimit).count());
  if (poll(&waiting, 1, ms) == 1) {
    ring->sockets_[1] = accept4(*listener, nullptr, nullptr, SOCK_CLOEXEC);
  }
  close(*listener);
  if (ring->sockets_[1] < 0) return Failed("accept");
  if (absl::Status s = Tune(ring->sockets_[1], options); !s.ok()) return s;
  if (!options.certificate.empty()) {
    if (absl::Status s = ring->AddTls(options); !s.ok()) return s;
  }
  return ring;
}

RawRing::~RawRing() {
  for (SSL* const tls : tls_) SSL_free(tls);
  for (const int fd : sockets_) {
    if (fd >= 0) close(fd);
  }
}

absl::Status RawRing::AddTls(const RawRingOptions& options) {
  SSL_CTX* const context = SSL_CTX_new(TLS_method());
  if (context == nullptr ||
      SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) != 1 ||
      SSL_CTX_use_certificate_chain_file(context,
                                         options.certificate.c_str()) != 1 ||
      SSL_CTX_use_PrivateKey_file(context, options.key.c_str(),
                                  SSL_FILETYPE_PEM) != 1) {
    SSL_CTX_free(context);
    return absl::InvalidArgumentError(
        absl::StrCat("raw TLS: no certificate in ", options.certificate));
  }
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE |
                                SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  for (size_t i = 0; i < 2; ++i) {
    fcntl(sockets_[i], F_SETFL, O_NONBLOCK);
    tls_[i] = SSL_new(context);
    SSL_set_fd(tls_[i], sockets_[i]);
    // The first call that sends or receives begins the handshake.
    if (i == 0) {
      SSL_set_connect_state(tls_[i]);
    } else {
      SSL_set_accept_state(tls_[i]);
    }
  }
  SSL_CTX_free(context);
  return absl::OkStatus();
}

absl::StatusOr<size_t> RawRing::Send(size_t i,
                                     std::span<const std::byte> bytes) {
  if (tls_[i] != nullptr) {
    size_t n = 0;
    const int done = SSL_write_ex(tls_[i], bytes.data(), bytes.size(), &n);
    return MovedByTls(tls_[i], done, n);
  }
  const ssize_t n = send(sockets_[i], bytes.data(), bytes.size(),
                         MSG_DONTWAIT | MSG_NOSIGNAL);
  if (n >= 0) return static_cast<size_t>(n);
  if (errno == EAGAIN) return 0;
  return Failed("send");
}

absl::StatusOr<size_t> RawRing::Receive(size_t i, std::span<std::byte> bytes) {
  if (tls_[i] != nullptr) {
    size_t n = 0;
    const int done = SSL_read_ex(tls_[i], bytes.data(), bytes.size(), &n);
    return MovedByTls(tls_[i], done, n);
  }
  const ssize_t n = recv(sockets_[i], bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (n > 0) return static_cast<size_t>(n);
  if (n == 0) return absl::UnavailableError("raw TCP: a peer has gone");
  if (errno == EAGAIN) return 0;
  return Failed("recv");
}

absl::Status RawRing::Exchange(std::span<const std::byte> bytes) {
  const auto end = Clock::now() + kLimit;
  std::array<size_t, 2> sent = {};
  std::array<size_t, 2> got = {};
  for (auto& buffer : received_) buffer.resize(bytes.size());
  while (Clock::now() < end) {
    std::array<pollfd, 2> polls;
    bool done = true;
    for (size_t i = 0; i < 2; ++i) {
      for (size_t n = 1; n > 0 && sent[i] < bytes.size(); sent[i] += n) {
        GOSSAMER_ASSIGN_OR_RETURN(n, Send(i, bytes.subspan(sent[i])));
      }
      for (size_t n = 1; n > 0 && got[i] < bytes.size(); got[i] += n) {
        GOSSAMER_ASSIGN_OR_RETURN(
            n, Receive(i, std::span(received_[i]).subspan(got[i])));
      }
      const bool sending = sent[i] < bytes.size();
      const bool receiving = got[i] < bytes.size();
      polls[i] = {sockets_[i],
                  static_cast<short>((sending ? POLLOUT : 0) |
                                     (receiving ? POLLIN : 0)),
                  0};
      done = done && !sending && !receiving;
    }
    if (done) return absl::OkStatus();
    poll(polls.data(), 2, 1000);
  }
  return absl::DeadlineExceededError("raw TCP: an exchange took too long");
}

}  // namespace gossamer
