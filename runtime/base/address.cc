#include "runtime/base/address.h"

#include "absl/strings/match.h"
#include "absl/strings/strip.h"

namespace gossamer {

bool IsLoopback(absl::string_view address) {
  if (absl::StartsWith(address, "unix:")) return true;
  absl::ConsumePrefix(&address, "dns:///");
  absl::ConsumePrefix(&address, "ipv4:");
  absl::ConsumePrefix(&address, "ipv6:");
  if (absl::StartsWith(address, "[::1]:")) return true;
  const absl::string_view host = address.substr(0, address.rfind(':'));
  return host == "localhost" ||
         (absl::StartsWith(host, "127.") &&
          host.find_first_not_of("0123456789.") == host.npos);
}

}  // namespace gossamer
