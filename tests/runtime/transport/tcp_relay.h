// Relays a TCP connection through this process, until it stops: then no bytes
// and no end pass any more, as when a machine loses its network.

#ifndef GOSSAMER_TESTS_RUNTIME_TRANSPORT_TCP_RELAY_H_
#define GOSSAMER_TESTS_RUNTIME_TRANSPORT_TCP_RELAY_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace gossamer {

// Relays one connection, from its port to `port` of this machine.
class TcpRelay {
 public:
  explicit TcpRelay(int port)
      : listener_(::socket(AF_INET, SOCK_STREAM, 0)), far_port_(port) {
    sockaddr_in address = Loopback(0);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), size),
              0);
    EXPECT_EQ(::listen(listener_, 16), 0);
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { Run(); });
  }
  ~TcpRelay() {
    over_ = true;
    thread_.join();
    ::close(listener_);
  }
  TcpRelay(const TcpRelay&) = delete;
  TcpRelay& operator=(const TcpRelay&) = delete;

  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }
  void StandStill() { still_ = true; }

 private:
  static constexpr int kPollMs = 10;

  static sockaddr_in Loopback(int port) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }
  void Run() {
    const int near = Accept();
    const int far = ::socket(AF_INET, SOCK_STREAM, 0);
    // Little is under way when it stops.
    const int room = 16 << 10;
    ::setsockopt(far, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    const sockaddr_in address = Loopback(far_port_);
    if (near >= 0 && ::connect(far, reinterpret_cast<const sockaddr*>(&address),
                               sizeof address) == 0) {
      while (!over_ && !still_ && Pass(near, far)) {
      }
      while (!over_ && still_) ::poll(nullptr, 0, kPollMs);
    }
    ::close(near);
    ::close(far);
  }
  int Accept() {
    pollfd wait = {.fd = listener_, .events = POLLIN, .revents = 0};
    while (!over_) {
      if (::poll(&wait, 1, kPollMs) > 0) {
        return ::accept(listener_, nullptr, nullptr);
      }
    }
    return -1;
  }
  // Returns false once an end has closed.
  static bool Pass(int near, int far) {
    pollfd waits[] = {{.fd = near, .events = POLLIN, .revents = 0},
                      {.fd = far, .events = POLLIN, .revents = 0}};
    if (::poll(waits, 2, kPollMs) <= 0) return true;
    char bytes[16384];
    for (int i = 0; i < 2; ++i) {
      if (waits[i].revents == 0) continue;
      const ssize_t n = ::recv(waits[i].fd, bytes, sizeof bytes, 0);
      if (n <= 0) return false;
      if (::send(waits[1 - i].fd, bytes, static_cast<size_t>(n),
                 MSG_NOSIGNAL) != n) {
        return false;
      }
    }
    return true;
  }

  const int listener_;
  const int far_port_;
  int port_ = 0;
  std::atomic<bool> still_ = false, over_ = false;
  std::thread thread_;
};

}  // namespace gossamer

#endif  // GOSSAMER_TESTS_RUNTIME_TRANSPORT_TCP_RELAY_H_
