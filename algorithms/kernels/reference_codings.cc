#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "algorithms/kernels/reference_kernels.h"

namespace gossamer {
namespace {

// The value to be coded at k: x − replica, or x.
float Innovation(std::span<const float> x, std::span<const float> replica,
                 size_t k) {
  return replica.empty() ? x[k] : x[k] - replica[k];
}

// Values of a block, and what they are coded as.
struct Block {
  size_t n = 0;
  float values[kBlockSize] = {};
  int codes[kBlockSize] = {};
};

// In lanes, because vector units add in lanes and the sum of floats depends on
// its order.
float SumOfMagnitudes(const Block& block) {
  SumLanes lanes{};
  for (size_t k = 0; k < block.n; ++k) {
    lanes[k % kSumLanes] += std::abs(Clamped(block.values[k]));
  }
  return AddLanes(lanes);
}

// Fills in codes; returns the scale.
float RoundToNearest(Block& block, float levels) {
  float absmax = 0;
  for (const float value : std::span(block.values, block.n)) {
    absmax = std::max(absmax, std::abs(value));
  }
  const float scale = BlockScale(absmax, levels);
  const float inverse = InverseOf(scale);
  for (size_t k = 0; k < block.n; ++k) {
    block.codes[k] = NearestCode(block.values[k], inverse, levels);
  }
  return scale;
}

// The scale Σ|v|·c / Σc² is the one that leaves the least error for these
// magnitudes c of codes; with it, what is left is smaller than v, whatever v.
float RoundToLevels(Block& block, bool two_magnitudes) {
  const auto n = static_cast<float>(block.n);
  const float threshold =
      two_magnitudes ? SumOfMagnitudes(block) * kLm2Threshold / n : 0;
  const auto level = [&](size_t k) {
    return LevelOf(two_magnitudes, std::abs(Clamped(block.values[k])),
                   threshold);
  };
  SumLanes lanes{};
  float squares = 0;
  for (size_t k = 0; k < block.n; ++k) {
    const float c = level(k);
    lanes[k % kSumLanes] += std::abs(Clamped(block.values[k])) * c;
    squares += c * c;
  }
  const float scale =
      NearestScale(AddLanes(lanes) / squares, two_magnitudes ? kLm2Large : 1);
  for (size_t k = 0; k < block.n; ++k) {
    block.codes[k] = LevelCode(block.values[k], level(k), scale);
  }
  return scale;
}

// The codes of a block as planes of bits.
void PackPlanes(Coding coding, const Block& block, std::byte* to) {
  const size_t words = (block.n + 31) / 32;
  uint32_t planes[2 * kBlockSize / 32] = {};
  for (size_t k = 0; k < block.n; ++k) {
    for (uint32_t plane = 0; plane < CodeBits(coding); ++plane) {
      planes[plane * words + k / 32] |=
          uint32_t{PlaneBit(coding, plane, block.codes[k])} << k % 32;
    }
  }
  std::memcpy(to, planes, 4 * words * CodeBits(coding));
}

// The codes of a block as fields of words.
void PackWords(Coding coding, const Block& block, std::byte* to) {
  const auto bits = static_cast<uint32_t>(CodeBits(coding));
  const auto words = static_cast<uint32_t>(BlockWords(bits, block.n));
  uint32_t packed[kBlockSize / 4] = {};
  for (uint32_t k = 0; k < block.n; ++k) {
    const CodeField field = CodeFieldOf(bits, words, k);
    packed[field.word] |= FieldBits(bits, block.codes[k]) << field.shift;
  }
  std::memcpy(to, packed, words * 4);
}

void EncodeBlock(Coding coding, std::span<const float> x,
                 std::span<float> replica, std::byte* scale_to,
                 std::byte* codes) {
  Block block{.n = x.size()};
  for (size_t k = 0; k < block.n; ++k) {
    block.values[k] = Innovation(x, replica, k);
  }
  const bool planes = CodeBits(coding) <= 2;
  float scale = coding.step;
  if (coding.kind == Coding::kUnit) {
    for (size_t k = 0; k < block.n; ++k) {
      block.codes[k] = SignCode(block.values[k]);
    }
  } else {
    scale =
        planes ? RoundToLevels(block, coding.kind == Coding::kLm2)
               : RoundToNearest(block, static_cast<float>(LargestCode(coding)));
    StoreScale(scale, scale_to);
  }
  planes ? PackPlanes(coding, block, codes) : PackWords(coding, block, codes);
  for (size_t k = 0; k < block.n && !replica.empty(); ++k) {
    replica[k] = Follow(replica[k], block.codes[k], scale);
  }
}

// One pass for both norms; the Euclidean one sums in double, as floats of 2^100
// have squares that no float holds.
float BucketScale(Coding coding, std::span<const float> x,
                  std::span<const float> replica) {
  const auto levels = static_cast<float>(coding.levels);
  float absmax = 0;
  NormLanes lanes{};
  for (size_t k = 0; k < x.size(); ++k) {
    const float value = Clamped(Innovation(x, replica, k));
    absmax = std::max(absmax, std::abs(value));
    lanes[k % kNormLanes] += static_cast<double>(value) * value;
  }
  if (coding.norm == Coding::kMax) return BlockScale(absmax, levels);
  return BlockScale(static_cast<float>(std::sqrt(FinishSquaredNorm(lanes, {}))),
                    levels);
}

// `first` is the bucket's place in the array.
void EncodeBucket(Coding coding, size_t first, std::span<const float> x,
                  std::span<float> replica, uint64_t key, std::byte* scale_to,
                  std::byte* codes) {
  const float scale = BucketScale(coding, x, replica);
  const float inverse = InverseOf(scale);
  const auto levels = static_cast<float>(coding.levels);
  StoreScale(scale, scale_to);
  for (size_t start = 0; start < x.size(); start += kBlockSize) {
    Block block{.n = std::min(kBlockSize, x.size() - start)};
    for (size_t k = 0; k < block.n; ++k) {
      const size_t i = start + k;
      block.codes[k] = RandomCode(Innovation(x, replica, i), inverse, levels,
                                  key, static_cast<uint32_t>(first + i));
      if (!replica.empty()) {
        replica[i] = Follow(replica[i], block.codes[k], scale);
      }
    }
    std::byte* const to = codes + CodeBytes(coding, start);
    CodeBits(coding) == 2 ? PackPlanes(coding, block, to)
                          : PackWords(coding, block, to);
  }
}

// Keeps the largest magnitudes, of equal ones the first.  A key is the
// magnitude's bits and, below them, the place counted from the end: keys are
// distinct, so exactly `kept` of them are at least the smallest that is kept.
void EncodeChunk(Coding coding, std::span<const float> x,
                 std::span<float> replica, std::byte* scale_to,
                 std::byte* codes) {
  const size_t kept = KeptOf(coding, x.size());
  std::array<uint64_t, kChunkSize> keys{};
  float absmax = 0;
  for (size_t k = 0; k < x.size(); ++k) {
    const float magnitude = std::abs(Clamped(Innovation(x, replica, k)));
    absmax = std::max(absmax, magnitude);
    keys[k] = uint64_t{std::bit_cast<uint32_t>(magnitude)} << 12 |
              (kChunkSize - 1 - k);
  }
  std::array<uint64_t, kChunkSize> order = keys;
  std::nth_element(order.begin(), order.begin() + kept - 1,
                   order.begin() + x.size(), std::greater<>());
  const uint64_t smallest = order[kept - 1];

  const float scale = BlockScale(absmax, 127);
  const float inverse = InverseOf(scale);
  StoreScale(scale, scale_to);
  for (size_t k = 0, i = 0; k < x.size(); ++k) {
    if (keys[k] < smallest) continue;
    const int code =
        NearestCode(Clamped(Innovation(x, replica, k)), inverse, 127);
    if (!replica.empty()) replica[k] = Follow(replica[k], code, scale);
    StoreAs(static_cast<int8_t>(code), codes + i);
    PutTopKIndex(k, i++, codes + kept);
  }
}

void EncodeValue(Coding coding, std::span<const float> x,
                 std::span<float> replica, size_t i, std::byte* codes) {
  const float q = StoreValue(coding, Innovation(x, replica, i),
                             codes + ValueBytes(coding) * i);
  if (!replica.empty()) replica[i] = replica[i] + q;
}

}  // namespace

void EncodeFrom(size_t start, Coding coding, std::span<const float> x,
                std::span<float> replica, uint64_t key, std::byte* scales,
                std::byte* codes) {
  if (!HasBlocks(coding)) {
    for (size_t i = start; i < x.size(); ++i) {
      EncodeValue(coding, x, replica, i, codes);
    }
    return;
  }
  const size_t unit = UnitSize(coding);
  for (size_t i = start; i < x.size(); i += unit) {
    const size_t n = std::min(unit, x.size() - i);
    const auto part = x.subspan(i, n);
    const auto replica_part = replica.empty() ? replica : replica.subspan(i, n);
    std::byte* const scale_to = scales + ScaleBytes(coding, i);
    std::byte* const to = codes + CodeBytes(coding, i);
    if (coding.kind == Coding::kTopK) {
      EncodeChunk(coding, part, replica_part, scale_to, to);
    } else if (coding.kind == Coding::kQsgd) {
      EncodeBucket(coding, i, part, replica_part, key, scale_to, to);
    } else {
      EncodeBlock(coding, part, replica_part, scale_to, to);
    }
  }
}

}  // namespace gossamer
