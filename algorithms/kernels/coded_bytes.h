// The places of codes in an array's bytes, and the bytes that an encoder can
// have written: README.md's layout as functions of one value, word or byte.
//
// Shared by the scalar reference and the CUDA kernels.  This header knows
// nothing of how a code is chosen.

#ifndef GOSSAMER_ALGORITHMS_KERNELS_CODED_BYTES_H_
#define GOSSAMER_ALGORITHMS_KERNELS_CODED_BYTES_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "algorithms/kernels/coding.h"
#include "algorithms/kernels/host_device.h"
#include "algorithms/kernels/values.h"

namespace gossamer {

static_assert(std::endian::native == std::endian::little,
              "payloads are little-endian and written in place");

// Coded bytes have no alignment.  A GPU reads bytes one by one where an address
// is none of the type's.
template <typename T>
GOSSAMER_HOST_DEVICE T LoadAs(const std::byte* from) {
#if defined(__CUDA_ARCH__)
  if (reinterpret_cast<uintptr_t>(from) % sizeof(T) == 0) {
    return *reinterpret_cast<const T*>(from);
  }
#endif
  T value;
  memcpy(&value, from, sizeof(T));
  return value;
}
template <typename T>
GOSSAMER_HOST_DEVICE void StoreAs(T value, std::byte* to) {
#if defined(__CUDA_ARCH__)
  if (reinterpret_cast<uintptr_t>(to) % sizeof(T) == 0) {
    *reinterpret_cast<T*>(to) = value;
    return;
  }
#endif
  memcpy(to, &value, sizeof(T));
}

// Stores a scale, which is a bf16.
GOSSAMER_HOST_DEVICE void StoreScale(float scale, std::byte* to) {
  StoreAs(static_cast<uint16_t>(std::bit_cast<uint32_t>(scale) >> 16), to);
}

// The scale of value i.
GOSSAMER_HOST_DEVICE float ScaleOf(const CodedSpan& from, size_t i) {
  if (!HasScales(from.coding)) return from.coding.step;
  return FromBf16(
      LoadAs<uint16_t>(from.scales + i / UnitSize(from.coding) * 2));
}

// Bytes of a value that is coded by itself; 1 of other codings.
constexpr size_t ValueBytes(Coding coding) {
  return coding.kind == Coding::kF32 ? 4 : coding.kind == Coding::kBf16 ? 2 : 1;
}
// Codes a value by itself, as kF32 or kBf16; returns what a decoder gets.
GOSSAMER_HOST_DEVICE float StoreValue(Coding coding, float value,
                                      std::byte* to) {
  const float q = Clamped(value);
  if (coding.kind == Coding::kBf16) {
    const uint16_t bits = ToBf16(q);
    StoreAs(bits, to);
    return FromBf16(bits);
  }
  StoreAs(q, to);
  return q;
}

// Codes of 4 and 8 bits: value k of a block is the field at `shift` of word
// `word` of the block's `words`.
struct CodeField {
  uint32_t word, shift;
};
GOSSAMER_HOST_DEVICE CodeField CodeFieldOf(uint32_t bits, uint32_t words,
                                           uint32_t k) {
  return {k % words, k / words * bits};
}
GOSSAMER_HOST_DEVICE uint32_t FieldBits(uint32_t bits, int code) {
  return static_cast<uint32_t>(code) & ((1u << bits) - 1);
}
// The code in the lowest `bits` of a word, in two's complement.
GOSSAMER_HOST_DEVICE int CodeOfField(uint32_t bits, uint32_t word) {
  const uint32_t field = word & ((1u << bits) - 1);
  return static_cast<int>(field) - (field >> (bits - 1) == 1 ? 1 << bits : 0);
}

// Codes of 1 and 2 bits lie in planes: the first has the signs, the second what
// is of the larger magnitude.
GOSSAMER_HOST_DEVICE bool PlaneBit(Coding coding, uint32_t plane, int code) {
  return plane == 0 ? code < 0 : std::max(code, -code) == LargestCode(coding);
}
GOSSAMER_HOST_DEVICE int CodeOfPlanes(Coding coding, bool negative,
                                      bool large) {
  // The smaller magnitude is 3 of kLm2 and 0 of kQsgd.
  const int other =
      coding.kind == Coding::kLm2 ? static_cast<int>(kLm2Small) : 0;
  const int magnitude = large ? LargestCode(coding) : other;
  return negative ? -magnitude : magnitude;
}

// The code of value k of a block of n.
GOSSAMER_HOST_DEVICE int CodeInBlock(Coding coding, const std::byte* block,
                                     uint32_t k, uint32_t n) {
  const auto bits = static_cast<uint32_t>(CodeBits(coding));
  if (bits <= 2) {
    const uint32_t words = (n + 31) / 32, at = k / 32;
    const bool negative = LoadAs<uint32_t>(block + 4 * at) >> k % 32 & 1;
    const bool large =
        bits == 1 || (LoadAs<uint32_t>(block + 4 * (words + at)) >> k % 32 & 1);
    return CodeOfPlanes(coding, negative, large);
  }
  const CodeField field =
      CodeFieldOf(bits, static_cast<uint32_t>(BlockWords(bits, n)), k);
  return CodeOfField(bits,
                     LoadAs<uint32_t>(block + 4 * field.word) >> field.shift);
}

// Index i of those packed at `from` in 12 bits each, lowest bits first.
GOSSAMER_HOST_DEVICE size_t TopKIndex(const std::byte* from, size_t i) {
  const std::byte* pair = from + i / 2 * 3;
  const auto middle = std::to_integer<size_t>(pair[1]);
  return i % 2 == 0 ? std::to_integer<size_t>(pair[0]) | (middle & 15) << 8
                    : middle >> 4 | std::to_integer<size_t>(pair[2]) << 4;
}
// Appends index i; must follow i − 1.
GOSSAMER_HOST_DEVICE void PutTopKIndex(size_t index, size_t i, std::byte* to) {
  std::byte* pair = to + i / 2 * 3;
  if (i % 2 == 0) {
    pair[0] = static_cast<std::byte>(index & 255);
    pair[1] = static_cast<std::byte>(index >> 8);
  } else {
    pair[1] |= static_cast<std::byte>((index & 15) << 4);
    pair[2] = static_cast<std::byte>(index >> 4);
  }
}

// Value i of `n` coded ones, one of those that top-k may keep.
GOSSAMER_HOST_DEVICE float DecodeTopK(const CodedSpan& from, size_t i,
                                      size_t n) {
  const size_t start = i / kChunkSize * kChunkSize;
  const size_t kept =
      KeptOf(from.coding, std::min(size_t{kChunkSize}, n - start));
  const std::byte* codes = from.codes + CodeBytes(from.coding, start);
  // Indices rise, so the place is found by halving.
  size_t low = 0, high = kept;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (TopKIndex(codes + kept, middle) < i - start) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == kept || TopKIndex(codes + kept, low) != i - start) return 0;
  return static_cast<float>(LoadAs<int8_t>(codes + low)) * ScaleOf(from, i);
}

// Value i of `n` coded ones.
GOSSAMER_HOST_DEVICE float DecodeValue(const CodedSpan& from, size_t i,
                                       size_t n) {
  const Coding coding = from.coding;
  if (coding.kind == Coding::kF32) return LoadAs<float>(from.codes + 4 * i);
  if (coding.kind == Coding::kBf16) {
    return FromBf16(LoadAs<uint16_t>(from.codes + 2 * i));
  }
  if (coding.kind == Coding::kTopK) return DecodeTopK(from, i, n);
  const size_t start = i / kBlockSize * kBlockSize;
  const int code = CodeInBlock(
      coding, from.codes + CodeBytes(coding, start),
      static_cast<uint32_t>(i - start),
      static_cast<uint32_t>(std::min(size_t{kBlockSize}, n - start)));
  return static_cast<float>(code) * ScaleOf(from, i);
}

// The rest is about bytes from outside.

// `at` begins ValueBytes of codes of any kind but kTopK.
GOSSAMER_HOST_DEVICE bool CodeIsValid(Coding coding, const std::byte* at,
                                      float largest) {
  if (coding.kind == Coding::kF32) return Within(largest, LoadAs<float>(at));
  if (coding.kind == Coding::kBf16) {
    return Within(largest, FromBf16(LoadAs<uint16_t>(at)));
  }
  const auto byte = std::to_integer<uint8_t>(*at);
  // −128 and −8 are never written: without them codes are symmetric, and
  // negation is exact.
  if (CodeBits(coding) == 8) return byte != 0x80;
  if (CodeBits(coding) == 4) return byte >> 4 != 8 && (byte & 15) != 8;
  return true;
}

// The same of all codes of 4 or 8 bits in a word.
GOSSAMER_HOST_DEVICE bool WordIsValid(uint32_t bits, uint32_t word) {
  const uint32_t lowest = bits == 8 ? 0x80808080u : 0x88888888u;
  const uint32_t one = lowest >> (bits - 1);
  // The lowest code is 0 now, and of all fields this finds whether one is 0
  // (Warren, Hacker's Delight, 6-1).
  word ^= lowest;
  return ((word - one) & ~word & lowest) == 0;
}

// Code i of the `kept` of a chunk of n values.  An index that repeats would add
// twice at one place, and one outside would write beyond the chunk.
GOSSAMER_HOST_DEVICE bool TopKCodeIsValid(const std::byte* codes, size_t i,
                                          size_t kept, size_t n) {
  const std::byte* const indices = codes + kept;
  const size_t index = TopKIndex(indices, i);
  if (codes[i] == std::byte{0x80} || index >= n) return false;
  if (i > 0 && index <= TopKIndex(indices, i - 1)) return false;
  // Four bits belong to no index of an odd number; the encoder writes 0.
  return i + 1 < kept || kept % 2 == 0 ||
         codes[TopKBytes(kept) - 1] < std::byte{0x10};
}

// Scales that BlockScale can give: zero, or normal and at most that of
// kMaxMagnitude.
GOSSAMER_HOST_DEVICE bool ScaleIsValid(Coding coding, const std::byte* at) {
  const auto bits = LoadAs<uint16_t>(at);
  const float largest =
      BlockScale(kMaxMagnitude, static_cast<float>(LargestCode(coding)));
  const uint32_t limit = std::bit_cast<uint32_t>(largest) >> 16;
  constexpr uint32_t kSmallestNormal = 0x0080;
  return bits == 0 || (bits >= kSmallestNormal && bits <= limit);
}

// Of a last block of n < kBlockSize values: the bits of word `word` that belong
// to no value, which an encoder leaves zero.  Not of kTopK.
GOSSAMER_HOST_DEVICE uint32_t PaddingOfWord(Coding coding, uint32_t n,
                                            uint32_t word) {
  const auto bits = static_cast<uint32_t>(CodeBits(coding));
  const bool planes = bits <= 2;
  const uint32_t width = planes ? 1 : bits;
  const auto words = static_cast<uint32_t>(BlockWords(width, n));
  uint32_t used = 0;
  for (uint32_t f = 0; f < 32 / width; ++f) {
    const uint32_t k = planes ? word % words * 32 + f : word + f * words;
    if (k < n) used |= ((1u << width) - 1) << (f * width);
  }
  return ~used;
}
// False if the codes of `n` values end in bits that belong to none and are set.
GOSSAMER_HOST_DEVICE bool PaddingIsZero(Coding coding, size_t n,
                                        const std::byte* codes) {
  const auto left = static_cast<uint32_t>(n % kBlockSize);
  if (left == 0 || !HasBlocks(coding) || coding.kind == Coding::kTopK) {
    return true;
  }
  const std::byte* const block = codes + CodeBytes(coding, n - left);
  const auto words = static_cast<uint32_t>(BlockWords(CodeBits(coding), left));
  uint32_t found = 0;
  for (uint32_t w = 0; w < words; ++w) {
    found |= LoadAs<uint32_t>(block + 4 * w) & PaddingOfWord(coding, left, w);
  }
  return found == 0;
}

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_KERNELS_CODED_BYTES_H_
