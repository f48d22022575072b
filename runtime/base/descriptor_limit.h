// How many files and sockets this process may have open at a time.
//
// Knows nothing of what they are for, but what to say where they do not do.

#ifndef GOSSAMER_RUNTIME_BASE_DESCRIPTOR_LIMIT_H_
#define GOSSAMER_RUNTIME_BASE_DESCRIPTOR_LIMIT_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace gossamer {

size_t DescriptorLimit();
// The soft limit becomes the hard one, which needs no privilege; returns what
// results.  For the start of a program: others read the limit once.
size_t RaiseDescriptorLimit();
// The line of a log where the limit leaves `room` for less than `wanted` (`of`:
// "peers"); "" if it leaves enough.
std::string DescribeShortage(size_t room, size_t wanted, absl::string_view of);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_BASE_DESCRIPTOR_LIMIT_H_
