// How many files and sockets this process may have open at a time.
//
// Knows nothing of what they are for.

#ifndef GOSSAMER_RUNTIME_BASE_DESCRIPTOR_LIMIT_H_
#define GOSSAMER_RUNTIME_BASE_DESCRIPTOR_LIMIT_H_

#include <cstddef>

namespace gossamer {

size_t DescriptorLimit();
// The soft limit becomes the hard one, which needs no privilege; returns what
// results.  For the start of a program: others read the limit once.
size_t RaiseDescriptorLimit();

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_BASE_DESCRIPTOR_LIMIT_H_
