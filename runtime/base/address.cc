#include "runtime/base/address.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace gossamer {
namespace {

bool IsOneLoopback(absl::string_view address) {
  // gRPC writes the ends of a connection with a scheme.
  if (absl::StartsWith(address, "unix:")) return true;
  absl::ConsumePrefix(&address, "dns:///");
  absl::ConsumePrefix(&address, "ipv4:");
  absl::ConsumePrefix(&address, "ipv6:");
  if (absl::StartsWith(address, "[::1]:")) return true;
  const absl::string_view host = address.substr(0, address.rfind(':'));
  // The host has to be an address by its form: "127.evil.example" is a name.
  return host == "localhost" ||
         (absl::StartsWith(host, "127.") &&
          host.find_first_not_of("0123456789.") == host.npos);
}

bool IsAddress(absl::string_view address) {
  // An IPv6 address has colons of its own; the last one comes before the port.
  const size_t colon = address.rfind(':');
  uint32_t port = 0;
  return colon != address.npos && colon > 0 &&
         address.find_first_of(" /") == address.npos &&
         absl::SimpleAtoi(address.substr(colon + 1), &port) && port <= 65535;
}

}  // namespace

std::vector<std::string> SplitAddresses(absl::string_view addresses) {
  return absl::StrSplit(addresses, ',', absl::SkipEmpty());
}

bool AreAddresses(absl::string_view addresses) {
  const std::vector<std::string> all = absl::StrSplit(addresses, ',');
  return std::all_of(all.begin(), all.end(), IsAddress);
}

bool IsLoopback(absl::string_view addresses) {
  const std::vector<std::string> all = SplitAddresses(addresses);
  return !all.empty() && std::all_of(all.begin(), all.end(), IsOneLoopback);
}

}  // namespace gossamer
