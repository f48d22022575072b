// Network addresses as people write them.
//
// Text only: resolves nothing.

#ifndef GOSSAMER_RUNTIME_BASE_ADDRESS_H_
#define GOSSAMER_RUNTIME_BASE_ADDRESS_H_

#include "absl/strings/string_view.h"

namespace gossamer {

// Whether an address of gRPC's, "host:port" with or without its scheme, is of
// this machine only.
bool IsLoopback(absl::string_view address);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_BASE_ADDRESS_H_
