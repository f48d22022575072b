// The codes of one block as small integers, and back: for what recodes a coded
// array without decoding it.
//
// This header knows nothing of scales or values; README.md has the layout.

#ifndef GOSSAMER_ALGORITHMS_KERNELS_BLOCK_CODES_H_
#define GOSSAMER_ALGORITHMS_KERNELS_BLOCK_CODES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "algorithms/kernels/coding.h"

namespace gossamer {

using BlockCodes = std::span<const int8_t, kBlockSize>;

// The codes of a block of n <= kBlockSize values of a kQsgd array, in ±levels,
// as the CodeBytes(coding, n) that they are in it, with zero padding.
void WriteBlock(Coding coding, size_t n, BlockCodes codes, std::byte* to);

// The reverse, as bytes in the order of the values: ⌈n / GroupSize⌉ groups of
// GroupSize(coding) values, which are 0 from n on.  Codes of 4 and 8 bits are
// in two's complement, the first value lowest; of four codes of 2 bits, bit k
// tells which are not 0, bit 4 + k which are negative.
using BlockGroups = std::array<uint8_t, kBlockSize>;
constexpr size_t GroupSize(Coding coding) { return 8 / CodeBits(coding); }
void ReadGroups(Coding coding, size_t n, const std::byte* from,
                BlockGroups& groups);
// Value k of a group.
int8_t CodeInGroup(Coding coding, uint8_t group, size_t k);

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_KERNELS_BLOCK_CODES_H_
