#include "runtime/transport/grpc/stranger_gate.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace gossamer {
namespace {

// Both as gRPC writes them, which takes an IPv4 address in IPv6's clothes for
// what it is; empty unless the socket is connected.
std::pair<std::string, std::string> PeerOf(int socket) {
  sockaddr_storage name = {};
  socklen_t size = sizeof(name);
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&name), &size) != 0) {
    return {};
  }
  char text[INET6_ADDRSTRLEN] = "";
  if (name.ss_family == AF_INET) {
    sockaddr_in v4 = {};
    std::memcpy(&v4, &name, sizeof(v4));
    ::inet_ntop(AF_INET, &v4.sin_addr, text, sizeof(text));
    return {text, absl::StrCat("ipv4:", text, ":", ntohs(v4.sin_port))};
  }
  if (name.ss_family != AF_INET6) return {};
  sockaddr_in6 v6 = {};
  std::memcpy(&v6, &name, sizeof(v6));
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
    ::inet_ntop(AF_INET, &v6.sin6_addr.s6_addr[12], text, sizeof(text));
    return {text, absl::StrCat("ipv4:", text, ":", ntohs(v6.sin6_port))};
  }
  ::inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof(text));
  return {text, absl::StrCat("ipv6:[", text, "]:", ntohs(v6.sin6_port))};
}

}  // namespace

bool StrangerGate::Admit(int socket) {
  auto [host, address] = PeerOf(socket);
  MutexLock lock(&mu_);
  const auto full = [&] {
    const auto alike = std::count_if(
        strangers_.begin(), strangers_.end(),
        [&host = host](const auto& s) { return s.second.host == host; });
    return strangers_.size() >= most_ ||
           static_cast<size_t>(alike) >= (most_ + 1) / 2;
  };
  if (full()) ForgetClosed();
  if (full()) {
    ++refused_;
    ::shutdown(socket, SHUT_RDWR);
    return false;
  }
  strangers_[socket] = {.host = std::move(host), .address = std::move(address)};
  return true;
}

// gRPC closes sockets without a word, but a number that is closed, or by now
// another connection's, is not connected to the same address any more.
void StrangerGate::ForgetClosed() {
  std::erase_if(strangers_, [](const auto& s) {
    return PeerOf(s.first).second != s.second.address;
  });
}

void StrangerGate::Believe(absl::string_view address) {
  const std::string plain =
      absl::StrReplaceAll(address, {{"%5B", "["}, {"%5D", "]"}});
  MutexLock lock(&mu_);
  std::erase_if(strangers_,
                [&](const auto& s) { return s.second.address == plain; });
}

size_t StrangerGate::strangers() {
  MutexLock lock(&mu_);
  ForgetClosed();
  return strangers_.size();
}

uint64_t StrangerGate::refused() {
  MutexLock lock(&mu_);
  return refused_;
}

}  // namespace gossamer
