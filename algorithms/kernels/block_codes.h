// The codes of one block as small integers, and back: for what recodes a coded
// array without decoding it.
//
// Knows nothing of scales or values; README.md has the layout.

#ifndef GOSSAMER_ALGORITHMS_KERNELS_BLOCK_CODES_H_
#define GOSSAMER_ALGORITHMS_KERNELS_BLOCK_CODES_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "algorithms/kernels/coding.h"

namespace gossamer {

using BlockCodes = std::array<int8_t, kBlockSize>;

// The codes of a block of n <= kBlockSize values of a kQsgd array, read from
// and written to CodeBytes(coding, n) bytes.  What is written has zero padding;
// `codes` are in ±levels.
void ReadBlock(Coding coding, size_t n, const std::byte* from,
               BlockCodes& codes);
void WriteBlock(Coding coding, size_t n, const BlockCodes& codes,
                std::byte* to);

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_KERNELS_BLOCK_CODES_H_
