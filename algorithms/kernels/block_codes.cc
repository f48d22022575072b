#include "algorithms/kernels/block_codes.h"

#include <cassert>
#include <cstring>

namespace gossamer {
namespace {

// Value k of a block is field k / w of word k mod w.  `words` is a constant for
// whole blocks, which lets the compiler do a vector of words at a time.
template <size_t kBits>
inline void ReadWords(size_t words, size_t n, const std::byte* from,
                      BlockCodes& codes) {
  uint32_t packed[kBlockSize * kBits / 32] = {};
  std::memcpy(packed, from, 4 * words);
  for (size_t k = 0, field = 0; k < n; k += words, ++field) {
    for (size_t w = 0; w < words && k + w < n; ++w) {
      const uint32_t top = packed[w] << (32 - kBits - field * kBits);
      codes[k + w] =
          static_cast<int8_t>(static_cast<int32_t>(top) >> (32 - kBits));
    }
  }
}

template <size_t kBits>
inline void WriteWords(size_t words, size_t n, const BlockCodes& codes,
                       std::byte* to) {
  constexpr uint32_t kField = (1u << kBits) - 1;
  uint32_t packed[kBlockSize * kBits / 32] = {};
  for (size_t k = 0, field = 0; k < n; k += words, ++field) {
    for (size_t w = 0; w < words && k + w < n; ++w) {
      packed[w] |= (static_cast<uint32_t>(codes[k + w]) & kField)
                   << (field * kBits);
    }
  }
  std::memcpy(to, packed, 4 * words);
}

// A plane of signs, then one of what is not 0.
void ReadPlanes(size_t n, const std::byte* from, BlockCodes& codes) {
  const size_t words = (n + 31) / 32;
  uint32_t planes[2 * kBlockSize / 32] = {};
  std::memcpy(planes, from, 8 * words);
  for (size_t k = 0; k < n; ++k) {
    const uint32_t negative = planes[k / 32] >> k % 32 & 1;
    const uint32_t nonzero = planes[words + k / 32] >> k % 32 & 1;
    codes[k] = static_cast<int8_t>(static_cast<int>(nonzero) -
                                   2 * static_cast<int>(nonzero & negative));
  }
}

void WritePlanes(size_t n, const BlockCodes& codes, std::byte* to) {
  const size_t words = (n + 31) / 32;
  uint32_t planes[2 * kBlockSize / 32] = {};
  for (size_t k = 0; k < n; ++k) {
    planes[k / 32] |= uint32_t{codes[k] < 0} << k % 32;
    planes[words + k / 32] |= uint32_t{codes[k] != 0} << k % 32;
  }
  std::memcpy(to, planes, 8 * words);
}

}  // namespace

void ReadBlock(Coding coding, size_t n, const std::byte* from,
               BlockCodes& codes) {
  assert(coding.kind == Coding::kQsgd && n <= kBlockSize);
  const bool whole = n == kBlockSize;
  switch (CodeBits(coding)) {
    case 2:
      return ReadPlanes(n, from, codes);
    case 4:
      return whole ? ReadWords<4>(16, kBlockSize, from, codes)
                   : ReadWords<4>(BlockWords(4, n), n, from, codes);
    default:
      return whole ? ReadWords<8>(32, kBlockSize, from, codes)
                   : ReadWords<8>(BlockWords(8, n), n, from, codes);
  }
}

void WriteBlock(Coding coding, size_t n, const BlockCodes& codes,
                std::byte* to) {
  assert(coding.kind == Coding::kQsgd && n <= kBlockSize);
  const bool whole = n == kBlockSize;
  switch (CodeBits(coding)) {
    case 2:
      return WritePlanes(n, codes, to);
    case 4:
      return whole ? WriteWords<4>(16, kBlockSize, codes, to)
                   : WriteWords<4>(BlockWords(4, n), n, codes, to);
    default:
      return whole ? WriteWords<8>(32, kBlockSize, codes, to)
                   : WriteWords<8>(BlockWords(8, n), n, codes, to);
  }
}

}  // namespace gossamer
