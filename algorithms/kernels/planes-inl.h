// Codes of one and two bits for one Highway target, in and out of bit planes.
//
// A plane has bit k mod 32 of word k / 32 for value k of a block: what a vector
// unit's comparison gives and takes.

#if defined(GOSSAMER_ALGORITHMS_KERNELS_PLANES_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef GOSSAMER_ALGORITHMS_KERNELS_PLANES_INL_H_
#undef GOSSAMER_ALGORITHMS_KERNELS_PLANES_INL_H_
#else
#define GOSSAMER_ALGORITHMS_KERNELS_PLANES_INL_H_
#endif

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "algorithms/kernels/coding.h"
#include "algorithms/kernels/innovation-inl.h"
#include "algorithms/kernels/vectors-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace gossamer {
namespace HWY_NAMESPACE {

constexpr size_t kPlaneWords = kBlockSize / 32;

// A plane of a whole block.
class Plane {
 public:
  HWY_INLINE void Put(size_t k, hn::Mask<Floats> mask) {
    words_[k / 32] |= MaskBits(mask) << (k % 32);
  }
  HWY_INLINE float Count() const {
    int count = 0;
    for (const uint32_t word : words_) count += std::popcount(word);
    return static_cast<float>(count);
  }
  HWY_INLINE void Store(std::byte* to) const {
    std::memcpy(to, words_, sizeof(words_));
  }
  HWY_INLINE void Load(const std::byte* from) {
    std::memcpy(words_, from, sizeof(words_));
  }
  HWY_INLINE hn::Mask<Floats> Get(size_t k) const {
    const auto lanes = hn::Shl(hn::Set(kWords, 1u), hn::Iota(kWords, 0u));
    const auto word = hn::Set(kWords, words_[k / 32] >> (k % 32));
    return hn::RebindMask(kFloats, hn::TestBit(word, lanes));
  }

 private:
  uint32_t words_[kPlaneWords] = {};
};

// |v|, at most kMaxMagnitude.
template <bool kReplica>
HWY_INLINE FloatVector Magnitude(const float* x, const float* replica,
                                 size_t k) {
  return hn::Min(hn::Abs(Innovation<kReplica>(x, replica, k)),
                 hn::Set(kFloats, kMaxMagnitude));
}

template <bool kReplica>
HWY_INLINE float SumOfMagnitudes(const float* x, const float* replica) {
  BlockSums sums;
  for (size_t k = 0; k < kBlockSize; k += kLanes) {
    PrefetchAhead(x + k);
    sums.Add(k, Magnitude<kReplica>(x, replica, k));
  }
  return sums.Finish();
}

// kLm2: the plane of the values of the larger magnitude, and the scale.
template <bool kReplica>
HWY_INLINE float ChooseLevels(const float* x, const float* replica,
                              float threshold, Plane& large) {
  const auto limit = hn::Set(kFloats, threshold);
  const auto three = hn::Set(kFloats, kLm2Small);
  const auto ten = hn::Set(kFloats, kLm2Large);
  BlockSums sums;
  for (size_t k = 0; k < kBlockSize; k += kLanes) {
    const auto magnitude = Magnitude<kReplica>(x, replica, k);
    const auto is_large = hn::Gt(magnitude, limit);
    large.Put(k, is_large);
    sums.Add(k, hn::Mul(magnitude, hn::IfThenElse(is_large, ten, three)));
  }
  const float count = large.Count();
  const float squares = (kBlockSize - count) * (kLm2Small * kLm2Small) +
                        count * (kLm2Large * kLm2Large);
  return NearestScale(sums.Finish() / squares, kLm2Large);
}

// One block of kLm2 or kSign.
template <Coding::Kind kKind, bool kReplica>
HWY_INLINE void EncodePlanes(const float* x, float* replica,
                             std::byte* scale_to, std::byte* codes) {
  constexpr bool kTwo = kKind == Coding::kLm2;
  const float sum = SumOfMagnitudes<kReplica>(x, replica);
  Plane negative, large;
  const float scale =
      kTwo ? ChooseLevels<kReplica>(x, replica,
                                    sum * kLm2Threshold / kBlockSize, large)
           : NearestScale(sum / kBlockSize, 1);
  StoreScale(scale, scale_to);
  // Nothing is below the second: with scale 0, codes are 0, too.
  const auto bound =
      hn::Set(kFloats, scale > 0 ? 0 : -std::numeric_limits<float>::infinity());
  if (scale == 0) large = Plane();
  const auto small_step = hn::Set(kFloats, kTwo ? kLm2Small * scale : scale);
  const auto large_step = hn::Set(kFloats, kLm2Large * scale);
  for (size_t k = 0; k < kBlockSize; k += kLanes) {
    const auto value = Innovation<kReplica>(x, replica, k);
    const auto below = hn::Lt(value, bound);
    negative.Put(k, below);
    if constexpr (kReplica) {
      auto q = small_step;
      if constexpr (kTwo) q = hn::IfThenElse(large.Get(k), large_step, q);
      q = hn::IfThenElse(below, hn::Neg(q), q);
      hn::StoreU(hn::Add(hn::LoadU(kFloats, replica + k), q), kFloats,
                 replica + k);
    }
  }
  negative.Store(codes);
  if constexpr (kTwo) large.Store(codes + 4 * kPlaneWords);
}

// A block of kQsgd with one level: codes -1, 0 and 1.
template <bool kReplica>
HWY_INLINE void PackTernary(const float* x, float* replica, float scale,
                            const Draws& draws, size_t first,
                            std::byte* codes) {
  const auto inverse = hn::Set(kFloats, scale > 0 ? 1 / scale : 0);
  const auto one = hn::Set(kFloats, 1.0f);
  const auto zero = hn::Zero(kFloats);
  Plane negative, nonzero;
  for (size_t k = 0; k < kBlockSize; k += kLanes) {
    const auto scaled = hn::Mul(Innovation<kReplica>(x, replica, k), inverse);
    const auto floor = hn::Floor(hn::Add(scaled, draws.At(first + k)));
    // + 0: a replica never takes in a negative zero.
    const auto code = hn::Add(hn::Min(hn::Max(floor, hn::Neg(one)), one), zero);
    negative.Put(k, hn::Lt(code, zero));
    nonzero.Put(k, hn::Ne(code, zero));
    if constexpr (kReplica) {
      const auto q = hn::Mul(code, hn::Set(kFloats, scale));
      hn::StoreU(hn::Add(hn::LoadU(kFloats, replica + k), q), kFloats,
                 replica + k);
    }
  }
  negative.Store(codes);
  nonzero.Store(codes + 4 * kPlaneWords);
}

// Two planes: kSmall or kLarge times the scale; with one, kLarge is for all.
template <int kPlanes>
HWY_INLINE void DecodePlanes(float small_step, float large_step,
                             const std::byte* codes, float* values) {
  Plane negative, large;
  negative.Load(codes);
  if constexpr (kPlanes == 2) large.Load(codes + 4 * kPlaneWords);
  const auto small_magnitude = hn::Set(kFloats, small_step);
  const auto large_magnitude = hn::Set(kFloats, large_step);
  for (size_t k = 0; k < kBlockSize; k += kLanes) {
    auto q = large_magnitude;
    if constexpr (kPlanes == 2) {
      q = hn::IfThenElse(large.Get(k), q, small_magnitude);
    }
    q = hn::IfThenElse(negative.Get(k), hn::Neg(q), q);
    hn::StoreU(q, kFloats, values + k);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace gossamer
HWY_AFTER_NAMESPACE();

#endif  // GOSSAMER_ALGORITHMS_KERNELS_PLANES_INL_H_
