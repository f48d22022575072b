// The largest single allocation of this process.

#ifndef GOSSAMER_TESTS_FUZZ_LARGEST_ALLOCATION_H_
#define GOSSAMER_TESTS_FUZZ_LARGEST_ALLOCATION_H_

#include <cstddef>

namespace gossamer::fuzz {

// In bytes, since ResetLargestAllocation(), on any thread.
size_t LargestAllocation();
void ResetLargestAllocation();

}  // namespace gossamer::fuzz

#endif  // GOSSAMER_TESTS_FUZZ_LARGEST_ALLOCATION_H_
