// Network addresses as people write them.
//
// Works on text; resolves no names.

#ifndef GOSSAMER_RUNTIME_BASE_ADDRESS_H_
#define GOSSAMER_RUNTIME_BASE_ADDRESS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace gossamer {

// Splits the addresses of one service, "host:port,host:port".
std::vector<std::string> SplitAddresses(absl::string_view addresses);

// Returns whether the text is such a list: every part has a host and a port of
// 0 to 65535.
bool AreAddresses(absl::string_view addresses);

// Returns whether all of these addresses, "host:port" with or without gRPC's
// scheme, belong to this machine only.  So does the end of a Unix socket, as
// gRPC writes it ("unix:"); AreAddresses knows none.
bool IsLoopback(absl::string_view addresses);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_BASE_ADDRESS_H_
