// Network addresses as people write them.
//
// Text only: resolves nothing.

#ifndef GOSSAMER_RUNTIME_BASE_ADDRESS_H_
#define GOSSAMER_RUNTIME_BASE_ADDRESS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace gossamer {

// Several addresses of one service, "host:port,host:port", one by one.
std::vector<std::string> SplitAddresses(absl::string_view addresses);

// Whether it is such a list: every part has a host and a port of 0 to 65535.
bool AreAddresses(absl::string_view addresses);

// Whether all of these addresses of gRPC's, "host:port" with or without its
// scheme, are of this machine only.
bool IsLoopback(absl::string_view addresses);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_BASE_ADDRESS_H_
