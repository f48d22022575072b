#include "algorithms/kernels/block_codes.h"

#include <cassert>
#include <cstring>

namespace gossamer {
namespace {

// Value k of a block is field k / w of word k mod w, and bits k mod kGroup of
// its group.  `words` is a constant for whole blocks, which lets the compiler
// do a vector of words at a time.
template <size_t kBits>
inline void GroupWords(size_t words, size_t n, const std::byte* from,
                       BlockGroups& groups) {
  constexpr uint32_t kField = (1u << kBits) - 1;
  constexpr size_t kGroup = 8 / kBits;
  uint32_t packed[kBlockSize * kBits / 32] = {};
  std::memcpy(packed, from, 4 * words);
  for (size_t k = 0, field = 0; k < n; k += words, ++field) {
    for (size_t w = 0; w < words && k + w < n; ++w) {
      const size_t at = k + w;
      const uint32_t code = packed[w] >> field * kBits & kField;
      const uint8_t before = at % kGroup == 0 ? 0 : groups[at / kGroup];
      groups[at / kGroup] =
          static_cast<uint8_t>(before | code << at % kGroup * kBits);
    }
  }
}

// A whole block of four bits each, the reverse of GroupFours.  All trip counts
// are constants of a vector's width; WriteWords gives the same bytes for blocks
// of any length.
void WriteFours(BlockCodes codes, std::byte* to) {
  std::array<uint32_t, 16> words{};
  for (size_t j = 0; j < 4; ++j) {
    std::array<uint8_t, 16> bytes;
    for (size_t w = 0; w < 16; ++w) {
      bytes[w] = static_cast<uint8_t>((codes[32 * j + w] & 15) |
                                      codes[32 * j + 16 + w] << 4);
    }
    for (size_t w = 0; w < 16; ++w) {
      words[w] |= static_cast<uint32_t>(bytes[w]) << 8 * j;
    }
  }
  std::memcpy(to, words.data(), sizeof(words));
}

template <size_t kBits>
inline void WriteWords(size_t words, size_t n, BlockCodes codes,
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

constexpr uint64_t kTops = 0x8080808080808080u;

// Byte i of the result is field i of four bits: the fields move apart in three
// steps, each of which doubles their distance, instead of one by one.
inline uint64_t SpreadFields(uint32_t fields) {
  uint64_t bytes = fields;
  bytes = (bytes | bytes << 16) & 0x0000ffff0000ffffu;
  bytes = (bytes | bytes << 8) & 0x00ff00ff00ff00ffu;
  return (bytes | bytes << 4) & 0x0f0f0f0f0f0f0f0fu;
}
// The reverse of SpreadFields.
inline uint32_t JoinFields(uint64_t bytes) {
  bytes = (bytes | bytes >> 4) & 0x00ff00ff00ff00ffu;
  bytes = (bytes | bytes >> 8) & 0x0000ffff0000ffffu;
  return static_cast<uint32_t>(bytes | bytes >> 16);
}
// Bit i of the result is the top bit of byte i.  The factor moves each of the
// eight bits to a place of its own in the highest byte, so no carries meet
// there.
inline uint32_t GatherTops(uint64_t bytes) {
  return static_cast<uint32_t>(((bytes & kTops) >> 7) * 0x0102040810204080u >>
                               56);
}

// A plane of signs, then one of what is not 0.
using Planes = std::array<uint32_t, 2 * kBlockSize / 32>;

inline void WritePlanes(size_t n, BlockCodes codes, std::byte* to) {
  const size_t words = (n + 31) / 32;
  Planes planes{};
  for (size_t k = 0; k < n; k += 8) {
    uint64_t eight;
    std::memcpy(&eight, codes.data() + k, 8);
    // Codes from n on may hold anything, and padding is written as 0.
    if (n - k < 8) eight &= (uint64_t{1} << 8 * (n - k)) - 1;
    planes[k / 32] |= GatherTops(eight) << k % 32;
    // The lowest bit of 1 and of −1 is set, that of 0 is not.
    planes[words + k / 32] |= GatherTops(eight << 7) << k % 32;
  }
  std::memcpy(to, planes.data(), 8 * words);
}

void GroupPlanes(size_t n, const std::byte* from, BlockGroups& groups) {
  const size_t words = (n + 31) / 32;
  Planes planes;
  std::memcpy(planes.data(), from, 8 * words);
  for (size_t w = 0; w < words; ++w) {
    // A word of 32 values becomes eight groups of four: the bits of what is not
    // 0 below, the signs above (CodeInGroup reads them so).
    const uint64_t eight =
        SpreadFields(planes[words + w]) | SpreadFields(planes[w]) << 4;
    std::memcpy(groups.data() + 8 * w, &eight, 8);
  }
}

// A whole block: byte j of its words has values 32j to 32j + 31, those of the
// first 16 words in the lower bits.
void GroupFours(const std::byte* from, BlockGroups& groups) {
  std::array<uint32_t, 16> words;
  std::memcpy(words.data(), from, sizeof(words));
  for (size_t j = 0; j < 4; ++j) {
    std::array<uint8_t, 16> bytes;
    for (size_t w = 0; w < 16; ++w) {
      bytes[w] = static_cast<uint8_t>(words[w] >> 8 * j);
    }
    for (size_t half = 0; half < 2; ++half) {
      uint64_t eight;
      std::memcpy(&eight, bytes.data() + 8 * half, 8);
      const uint32_t low = JoinFields(eight & 0x0f0f0f0f0f0f0f0fu);
      const uint32_t high = JoinFields(eight >> 4 & 0x0f0f0f0f0f0f0f0fu);
      std::memcpy(groups.data() + 16 * j + 4 * half, &low, 4);
      std::memcpy(groups.data() + 16 * j + 8 + 4 * half, &high, 4);
    }
  }
}

}  // namespace

void WriteBlock(Coding coding, size_t n, BlockCodes codes, std::byte* to) {
  assert(coding.kind == Coding::kQsgd && n <= kBlockSize);
  // All blocks but the last are whole, so their length is passed as a constant.
  const bool whole = n == kBlockSize;
  switch (CodeBits(coding)) {
    case 2:
      return whole ? WritePlanes(kBlockSize, codes, to)
                   : WritePlanes(n, codes, to);
    case 4:
      return whole ? WriteFours(codes, to)
                   : WriteWords<4>(BlockWords(4, n), n, codes, to);
    default:
      return whole ? WriteWords<8>(32, kBlockSize, codes, to)
                   : WriteWords<8>(BlockWords(8, n), n, codes, to);
  }
}

void ReadGroups(Coding coding, size_t n, const std::byte* from,
                BlockGroups& groups) {
  assert(coding.kind == Coding::kQsgd && n <= kBlockSize);
  const bool whole = n == kBlockSize;
  switch (CodeBits(coding)) {
    case 2:
      return GroupPlanes(n, from, groups);
    case 4:
      return whole ? GroupFours(from, groups)
                   : GroupWords<4>(BlockWords(4, n), n, from, groups);
    default:
      return whole ? GroupWords<8>(32, kBlockSize, from, groups)
                   : GroupWords<8>(BlockWords(8, n), n, from, groups);
  }
}

int8_t CodeInGroup(Coding coding, uint8_t group, size_t k) {
  switch (CodeBits(coding)) {
    case 2: {
      const int nonzero = group >> k & 1, negative = group >> (4 + k) & 1;
      return static_cast<int8_t>(nonzero - 2 * (nonzero & negative));
    }
    case 4:
      // Flipping the sign bit and subtracting its weight extends the sign.
      return static_cast<int8_t>(((group >> 4 * k & 15) ^ 8) - 8);
    default:
      return static_cast<int8_t>(group);
  }
}

}  // namespace gossamer
