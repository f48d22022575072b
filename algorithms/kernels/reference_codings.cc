#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "algorithms/kernels/reference_kernels.h"

namespace gossamer {
namespace {

static_assert(std::endian::native == std::endian::little,
              "payloads are little-endian and written in place");

template <typename T>
void Store(T value, std::byte* to) {
  std::memcpy(to, &value, sizeof(T));
}

// Round half to even; |value| is at most kMaxMagnitude, so no carry can reach
// infinity.
uint16_t ToBf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

// The value to be coded at k: x − replica, or x.
float Innovation(std::span<const float> x, std::span<const float> replica,
                 size_t k) {
  return replica.empty() ? x[k] : x[k] - replica[k];
}

// Values beyond the bound are coded as the bound, so that a peer whose
// parameters explode sends payloads that its neighbours accept (kMaxMagnitude).
float Clamped(float value) {
  return std::clamp(value, -kMaxMagnitude, kMaxMagnitude);
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

// Fills in codes; returns the scale.  Values are multiplied by the inverse, as
// in the vector tables: a division would round some of them to another code.
float RoundToNearest(Block& block, float levels) {
  float absmax = 0;
  for (const float value : std::span(block.values, block.n)) {
    absmax = std::max(absmax, std::abs(value));
  }
  const float scale = BlockScale(absmax, levels);
  const float inverse = scale > 0 ? 1 / scale : 0;
  for (size_t k = 0; k < block.n; ++k) {
    block.codes[k] = static_cast<int>(
        std::nearbyint(std::clamp(block.values[k] * inverse, -levels, levels)));
  }
  return scale;
}

// The scale Σ|v|·c / Σc² is the one that leaves the least error for these
// magnitudes c of codes; with it, what is left is smaller than v, whatever v.
float RoundToLevels(Block& block, bool two_magnitudes) {
  const auto n = static_cast<float>(block.n);
  const float threshold =
      two_magnitudes ? SumOfMagnitudes(block) * kLm2Threshold / n : 0;
  SumLanes lanes{};
  float squares = 0;
  for (size_t k = 0; k < block.n; ++k) {
    const float magnitude = std::abs(Clamped(block.values[k]));
    const float c = !two_magnitudes         ? 1
                    : magnitude > threshold ? kLm2Large
                                            : kLm2Small;
    lanes[k % kSumLanes] += magnitude * c;
    squares += c * c;
    block.codes[k] = static_cast<int>(block.values[k] < 0 ? -c : c);
  }
  const float scale =
      NearestScale(AddLanes(lanes) / squares, two_magnitudes ? kLm2Large : 1);
  // A code of ±1 times 0 could add a negative zero to the replica; 0 leaves it
  // as it is.
  if (scale == 0) std::fill_n(block.codes, kBlockSize, 0);
  return scale;
}

// The codes of a block as planes of bits: signs, then, of two bits, which have
// the larger magnitude.
void PackPlanes(Coding coding, const Block& block, std::byte* to) {
  const size_t words = (block.n + 31) / 32;
  uint32_t planes[2 * kBlockSize / 32] = {};
  for (size_t k = 0; k < block.n; ++k) {
    const uint32_t bit = 1u << k % 32;
    if (block.codes[k] < 0) planes[k / 32] |= bit;
    if (std::abs(block.codes[k]) == LargestCode(coding)) {
      planes[words + k / 32] |= bit;
    }
  }
  std::memcpy(to, planes, 4 * words * CodeBits(coding));
}

// The codes of a block lie in words of 32/bits values: value k is number
// k / words of word k mod words, lowest bits first.
void PackWords(Coding coding, const Block& block, std::byte* to) {
  const size_t bits = CodeBits(coding);
  const size_t words = BlockWords(bits, block.n);
  uint32_t packed[kBlockSize / 4] = {};
  for (size_t k = 0; k < block.n; ++k) {
    const uint32_t field =
        static_cast<uint32_t>(block.codes[k]) & ((1u << bits) - 1);
    packed[k % words] |= field << (k / words * bits);
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
      block.codes[k] = block.values[k] < 0 ? -1 : 1;
    }
  } else {
    scale =
        planes ? RoundToLevels(block, coding.kind == Coding::kLm2)
               : RoundToNearest(block, static_cast<float>(LargestCode(coding)));
    Store(ToBf16(scale), scale_to);
  }
  planes ? PackPlanes(coding, block, codes) : PackWords(coding, block, codes);
  // The replica gets what a decoder gets: code times the stored scale, and not
  // the value that was coded.
  for (size_t k = 0; k < block.n && !replica.empty(); ++k) {
    replica[k] = replica[k] + static_cast<float>(block.codes[k]) * scale;
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

// QSGD (Alistarh et al., NIPS 2017): code = ⌊v / scale + u⌋, so that its
// expectation is v / scale.  `first` is the bucket's place in the array.
void EncodeBucket(Coding coding, size_t first, std::span<const float> x,
                  std::span<float> replica, uint64_t key, std::byte* scale_to,
                  std::byte* codes) {
  const float scale = BucketScale(coding, x, replica);
  const float inverse = scale > 0 ? 1 / scale : 0;
  const auto levels = static_cast<float>(coding.levels);
  Store(ToBf16(scale), scale_to);
  for (size_t start = 0; start < x.size(); start += kBlockSize) {
    Block block{.n = std::min(kBlockSize, x.size() - start)};
    for (size_t k = 0; k < block.n; ++k) {
      const size_t i = start + k;
      // The draw is of the place in the array and not in the bucket, so that no
      // two values share one.
      const float u = Dither(key, static_cast<uint32_t>(first + i));
      block.codes[k] = static_cast<int>(
          std::clamp(std::floor(Innovation(x, replica, i) * inverse + u),
                     -levels, levels));
      if (!replica.empty()) {
        replica[i] = replica[i] + static_cast<float>(block.codes[k]) * scale;
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
  const float inverse = scale > 0 ? 1 / scale : 0;
  Store(ToBf16(scale), scale_to);
  for (size_t k = 0, i = 0; k < x.size(); ++k) {
    if (keys[k] < smallest) continue;
    const auto code = static_cast<int>(std::nearbyint(std::clamp(
        Clamped(Innovation(x, replica, k)) * inverse, -127.0f, 127.0f)));
    if (!replica.empty()) {
      replica[k] = replica[k] + static_cast<float>(code) * scale;
    }
    Store(static_cast<int8_t>(code), codes + i);
    PutTopKIndex(k, i++, codes + kept);
  }
}

void EncodeValue(Coding coding, std::span<const float> x,
                 std::span<float> replica, size_t i, std::byte* codes) {
  float q = Clamped(Innovation(x, replica, i));
  if (coding.kind == Coding::kBf16) {
    const uint16_t bits = ToBf16(q);
    Store(bits, codes + 2 * i);
    q = FromBf16(bits);
  } else {
    Store(q, codes + 4 * i);
  }
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

float BlockScale(float absmax, float levels) {
  const float exact = std::min(absmax, kMaxMagnitude) / levels;
  // Below the normal range the inverse could overflow; the negation also sends
  // NaN here.
  if (!(exact >= std::numeric_limits<float>::min())) return 0;
  // Adding all bits below bf16's rounds up whatever is not exact.
  return std::bit_cast<float>((std::bit_cast<uint32_t>(exact) + 0xffff) &
                              0xffff0000u);
}

float NearestScale(float exact, float largest) {
  const float scale = FromBf16(ToBf16(std::min(exact, kMaxMagnitude)));
  if (!(scale >= std::numeric_limits<float>::min())) return 0;
  return std::min(scale, BlockScale(kMaxMagnitude, largest));
}

}  // namespace gossamer
