// Codes of four and eight bits for one Highway target, into words; the norms
// that their scales are fractions of.
//
// Codes lie in words such that value k of a block is in word k mod (words of a
// block): neighbouring values are in neighbouring lanes, and packing needs
// shifts and ors only, for every vector length.

#if defined(GOSSAMER_ALGORITHMS_KERNELS_WORDS_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef GOSSAMER_ALGORITHMS_KERNELS_WORDS_INL_H_
#undef GOSSAMER_ALGORITHMS_KERNELS_WORDS_INL_H_
#else
#define GOSSAMER_ALGORITHMS_KERNELS_WORDS_INL_H_
#endif

#include <cmath>
#include <cstddef>

#include "algorithms/kernels/innovation-inl.h"
#include "algorithms/kernels/kernels.h"
#include "algorithms/kernels/reference_kernels.h"
#include "algorithms/kernels/vectors-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace gossamer {
namespace HWY_NAMESPACE {

// The largest magnitude of `n` innovations, a multiple of kBlockSize.
template <bool kReplica>
HWY_INLINE float MaxMagnitude(const float* x, const float* replica, size_t n) {
  // Two chains of maxima, since each waits for the one before; the maximum does
  // not depend on their order.
  auto even = hn::Zero(kFloats);
  auto odd = hn::Zero(kFloats);
  for (size_t k = 0; k < n; k += 2 * kLanes) {
    PrefetchAhead(x + k);
    even = hn::Max(even, hn::Abs(Innovation<kReplica>(x, replica, k)));
    odd = hn::Max(odd, hn::Abs(Innovation<kReplica>(x, replica, k + kLanes)));
  }
  return hn::GetLane(hn::MaxOfLanes(kFloats, hn::Max(even, odd)));
}

template <bool kReplica>
HWY_INLINE float EuclideanNorm(const float* x, const float* replica, size_t n) {
  NormSums sums;
  alignas(64) float values[kNormLanes];
  const auto low = hn::Set(kFloats, -kMaxMagnitude);
  const auto high = hn::Set(kFloats, kMaxMagnitude);
  for (size_t k = 0; k < n; k += kNormLanes) {
    for (size_t j = 0; j < kNormLanes; j += kLanes) {
      const auto value = Innovation<kReplica>(x, replica, k + j);
      hn::Store(hn::Min(hn::Max(value, low), high), kFloats, values + j);
    }
    sums.Add(values);
  }
  return static_cast<float>(std::sqrt(sums.Finish({})));
}

enum class Rounding { kNearest, kStochastic };

// Codes of kBits in words, rounded to nearest.  With kStochastic, at random:
// code = floor(v / scale + u), `first` being the block's place in the array.
template <int kBits, bool kReplica, Rounding kRounding>
HWY_INLINE void PackBlock(const float* x, float* replica, float scale,
                          const Draws& draws, size_t first, std::byte* codes) {
  static_assert(kBits == 4 || kBits == 8, "fields that fill a word");
  constexpr float kLevels = kBits == 8 ? 127 : 7;
  constexpr size_t kPerWord = 32 / kBits;
  constexpr size_t kStride = kBlockSize / kPerWord;
  const auto step = hn::Set(kFloats, scale);
  const auto inverse = hn::Set(kFloats, scale > 0 ? 1 / scale : 0);
  const auto low = hn::Set(kFloats, -kLevels);
  const auto high = hn::Set(kFloats, kLevels);
  const auto rounder = hn::Set(kFloats, kRounder);
  const auto field = hn::Set(kWords, (1u << kBits) - 1);
  for (size_t j = 0; j < kStride; j += kLanes) {
    auto word = hn::Zero(kWords);
    for (size_t i = kPerWord; i-- > 0;) {
      const size_t k = i * kStride + j;
      const auto value = Innovation<kReplica>(x, replica, k);
      auto scaled = hn::Mul(value, inverse);
      if constexpr (kRounding == Rounding::kStochastic) {
        scaled = hn::Floor(hn::Add(scaled, draws.At(first + k)));
      }
      const auto clamped = hn::Min(hn::Max(scaled, low), high);
      const auto shifted = hn::Add(clamped, rounder);
      word = hn::Or(hn::ShiftLeft<kBits>(word),
                    hn::And(hn::BitCast(kWords, shifted), field));
      if constexpr (kReplica) {
        const auto q = hn::Mul(hn::Sub(shifted, rounder), step);
        hn::StoreU(hn::Add(hn::LoadU(kFloats, replica + k), q), kFloats,
                   replica + k);
      }
    }
    StoreBytes(word, kWords, codes + 4 * j);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace gossamer
HWY_AFTER_NAMESPACE();

#endif  // GOSSAMER_ALGORITHMS_KERNELS_WORDS_INL_H_
