#include "tests/benchmarks/raw_ring.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

#include "absl/strings/str_cat.h"

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
  return ring;
}

RawRing::~RawRing() {
  for (const int fd : sockets_) {
    if (fd >= 0) close(fd);
  }
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
      ssize_t n = 1;
      while (n > 0 && sent[i] < bytes.size()) {
        n = send(sockets_[i], bytes.data() + sent[i], bytes.size() - sent[i],
                 MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n > 0) sent[i] += static_cast<size_t>(n);
        if (n < 0 && errno != EAGAIN) return Failed("send");
      }
      n = 1;
      while (n > 0 && got[i] < bytes.size()) {
        n = recv(sockets_[i], received_[i].data() + got[i],
                 bytes.size() - got[i], MSG_DONTWAIT);
        if (n > 0) got[i] += static_cast<size_t>(n);
        if (n == 0) return absl::UnavailableError("raw TCP: a peer has gone");
        if (n < 0 && errno != EAGAIN) return Failed("recv");
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
