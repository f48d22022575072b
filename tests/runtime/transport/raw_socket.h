// A TCP connection to a port of this machine that sends any bytes, or none, and
// a port to connect to.

#ifndef GOSSAMER_TESTS_RUNTIME_TRANSPORT_RAW_SOCKET_H_
#define GOSSAMER_TESTS_RUNTIME_TRANSPORT_RAW_SOCKET_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace gossamer {

inline int PortOf(const std::string& address) {
  return std::atoi(address.substr(address.rfind(':') + 1).c_str());
}

// The beginning of a TLS record that never ends: a ClientHello's first bytes.
inline const std::string kHalfHandshake("\x16\x03\x01\x02\x00\x01", 6);

// Accepts on request, as gRPC does: every connection that the kernel has.
class RawListener {
 public:
  RawListener() {
    sockaddr_in own = {};
    own.sin_family = AF_INET;
    own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof own;
    EXPECT_EQ(::bind(fd_, reinterpret_cast<sockaddr*>(&own), size), 0);
    EXPECT_EQ(::listen(fd_, 64), 0);
    EXPECT_EQ(::getsockname(fd_, reinterpret_cast<sockaddr*>(&own), &size), 0);
    port_ = ntohs(own.sin_port);
  }
  ~RawListener() { ::close(fd_); }
  RawListener(const RawListener&) = delete;
  RawListener& operator=(const RawListener&) = delete;

  int port() const { return port_; }
  // Returns a socket that is the caller's to close.
  int Accept() const {
    const int socket = ::accept(fd_, nullptr, nullptr);
    EXPECT_GE(socket, 0);
    return socket;
  }

 private:
  const int fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int port_ = 0;
};

class RawSocket {
 public:
  // Connects from 127.0.0.`host`.
  explicit RawSocket(int port, uint32_t host = 1)
      : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in own = {};
    own.sin_family = AF_INET;
    own.sin_addr.s_addr = htonl((INADDR_LOOPBACK & ~0xffU) | host);
    EXPECT_EQ(::bind(fd_, reinterpret_cast<sockaddr*>(&own), sizeof own), 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(
        ::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address),
        0);
    // No read of a test waits for ever.
    const timeval limit = {.tv_sec = 60, .tv_usec = 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  }
  ~RawSocket() {
    if (fd_ >= 0) ::close(fd_);
  }
  RawSocket(const RawSocket&) = delete;
  RawSocket& operator=(const RawSocket&) = delete;

  int fd() const { return fd_; }
  // Resets the connection, as a machine does that knows nothing of it, even one
  // that the other end has not accepted yet.
  void Reset() {
    const linger now = {.l_onoff = 1, .l_linger = 0};
    EXPECT_EQ(::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now), 0);
    ::close(std::exchange(fd_, -1));
  }
  // Returns false once the other end has closed.
  bool Send(const std::string& bytes) {
    return ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(bytes.size());
  }
  // Sends a byte at a time, with `pause` after each, until the other end has
  // closed.  Returns the number of bytes that it took.
  size_t Drip(const std::string& bytes, absl::Duration pause) {
    size_t sent = 0;
    while (sent < bytes.size() && Send(bytes.substr(sent, 1)) &&
           !EndsWithin(pause)) {
      ++sent;
    }
    return sent;
  }
  // Reads and drops bytes until `limit` or the end; returns true if it ended.
  bool EndsWithin(absl::Duration limit) {
    const absl::Time until = absl::Now() + limit;
    char buffer[4096];
    while (absl::Now() < until) {
      pollfd poll = {.fd = fd_, .events = POLLIN, .revents = 0};
      const int wait =
          static_cast<int>(absl::ToInt64Milliseconds(until - absl::Now()));
      if (::poll(&poll, 1, wait + 1) <= 0) continue;
      if (::recv(fd_, buffer, sizeof buffer, 0) <= 0) return true;
    }
    return false;
  }

 private:
  int fd_;
};

}  // namespace gossamer

#endif  // GOSSAMER_TESTS_RUNTIME_TRANSPORT_RAW_SOCKET_H_
