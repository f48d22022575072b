// The limit on the files and sockets that this process may have open.
//
// This header knows nothing of what they are for, except the warning that they
// are too few.

#ifndef GOSSAMER_RUNTIME_BASE_DESCRIPTOR_LIMIT_H_
#define GOSSAMER_RUNTIME_BASE_DESCRIPTOR_LIMIT_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace gossamer {

size_t DescriptorLimit();
// Raises the soft limit to the hard one, which needs no privilege, and returns
// the result.  Called when a program starts: other code reads the limit once.
size_t RaiseDescriptorLimit();
// Returns a warning for the log if the limit leaves `room` for fewer than
// `wanted` connections of `of` ("peers"); "" if it leaves enough.
std::string DescribeShortage(size_t room, size_t wanted, absl::string_view of);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_BASE_DESCRIPTOR_LIMIT_H_
