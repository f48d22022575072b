#include "runtime/transport/grpc/socket_names.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"

namespace gossamer {
namespace {

// The scheme that gRPC gives to names that are no files.
constexpr absl::string_view kAbstract = "unix-abstract:";
constexpr absl::string_view kBehindGate = "unix-abstract:gossamer-";

}  // namespace

std::optional<uint64_t> CookieOf(int socket) {
  uint64_t cookie = 0;
  socklen_t size = sizeof(cookie);
  if (::getsockopt(socket, SOL_SOCKET, SO_COOKIE, &cookie, &size) != 0) {
    return {};
  }
  return cookie;
}

OtherEnd OtherEndOf(int socket) {
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

std::string NameBehindGate(uint64_t number, absl::string_view address) {
  return absl::StrCat(absl::StripPrefix(kBehindGate, kAbstract), number, "/",
                      address);
}

std::optional<uint64_t> NumberBehindGate(absl::string_view address) {
  uint64_t number = 0;
  if (!absl::ConsumePrefix(&address, kBehindGate) ||
      !absl::SimpleAtoi(address.substr(0, address.find('/')), &number)) {
    return {};
  }
  return number;
}

std::string PlainAddress(absl::string_view address) {
  if (absl::StartsWith(address, kBehindGate)) {
    address.remove_prefix(address.find('/') + 1);
  }
  // gRPC escapes the brackets of an IPv6 address in its URIs.
  return absl::StrReplaceAll(address, {{"%5B", "["}, {"%5D", "]"}});
}

void ResetSocket(int socket) {
  const sockaddr nobody = {.sa_family = AF_UNSPEC, .sa_data = {}};
  ::connect(socket, &nobody, sizeof nobody);
}

}  // namespace gossamer
