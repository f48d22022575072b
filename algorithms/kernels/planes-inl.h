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
struct Plane {
  uint32_t words[kPlaneWords] = {};

  HWY_INLINE void Store(std::byte* to) const {
    std::memcpy(to, words, sizeof(words));
  }
  HWY_INLINE void Load(const std::byte* from) {
    std::memcpy(words, from, sizeof(words));
  }
};

// The lowest bits of a word, as lanes.
HWY_INLINE hn::Mask<Floats> MaskOf(uint32_t bits) {
  const auto lanes = hn::Load(kWords, kLaneBits);
  return hn::RebindMask(kFloats,
                        hn::Eq(hn::And(hn::Set(kWords, bits), lanes), lanes));
}

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
  for (size_t k = 0; k < kBlockSize; k += kSumLanes) {
    PrefetchAhead(x + k);
    for (size_t i = 0; i < BlockSums::kVectors; ++i) {
      sums.Add(i, Magnitude<kReplica>(x, replica, k + i * kLanes));
    }
  }
  return sums.Finish();
}

// kLm2: which values have the larger magnitude, and the scale.
template <bool kReplica>
HWY_INLINE float ChooseLevels(const float* x, const float* replica,
                              float threshold, Plane& large) {
  const auto limit = hn::Set(kFloats, threshold);
  const auto three = hn::Set(kFloats, kLm2Small);
  const auto ten = hn::Set(kFloats, kLm2Large);
  BlockSums sums;
  int large_count = 0;
  for (size_t w = 0; w < kPlaneWords; ++w) {
    uint32_t bits = 0;
    for (size_t j = 0; j < 32; j += kLanes) {
      const auto magnitude = Magnitude<kReplica>(x, replica, 32 * w + j);
      const auto is_large = hn::Gt(magnitude, limit);
      bits |= MaskBits(is_large) << j;
      sums.Add(j % kSumLanes / kLanes,
               hn::Mul(magnitude, hn::IfThenElse(is_large, ten, three)));
    }
    large.words[w] = bits;
    large_count += std::popcount(bits);
  }
  const auto count = static_cast<float>(large_count);
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
  if (scale == 0) large = Plane();
  // No value is below the second bound: with scale 0, codes are 0, too.
  const auto bound =
      hn::Set(kFloats, scale > 0 ? 0 : -std::numeric_limits<float>::infinity());
  const auto small_step = hn::Set(kFloats, kTwo ? kLm2Small * scale : scale);
  const auto large_step = hn::Set(kFloats, kLm2Large * scale);
  for (size_t w = 0; w < kPlaneWords; ++w) {
    uint32_t bits = 0;
    for (size_t j = 0; j < 32; j += kLanes) {
      const size_t k = 32 * w + j;
      const auto below = hn::Lt(Innovation<kReplica>(x, replica, k), bound);
      bits |= MaskBits(below) << j;
      if constexpr (kReplica) {
        auto q = small_step;
        if constexpr (kTwo) {
          q = hn::IfThenElse(MaskOf(large.words[w] >> j), large_step, q);
        }
        q = hn::IfThenElse(below, hn::Neg(q), q);
        hn::StoreU(hn::Add(hn::LoadU(kFloats, replica + k), q), kFloats,
                   replica + k);
      }
    }
    negative.words[w] = bits;
  }
  negative.Store(codes);
  if constexpr (kTwo) large.Store(codes + 4 * kPlaneWords);
}

// A block of kUnit.
template <bool kReplica>
HWY_INLINE void PackSigns(const float* x, float* replica, float step,
                          std::byte* codes) {
  const auto zero = hn::Zero(kFloats);
  const auto up = hn::Set(kFloats, step);
  Plane negative;
  for (size_t w = 0; w < kPlaneWords; ++w) {
    for (size_t j = 0; j < 32; j += kLanes) {
      const size_t k = 32 * w + j;
      const auto below = hn::Lt(Innovation<kReplica>(x, replica, k), zero);
      negative.words[w] |= MaskBits(below) << j;
      if constexpr (kReplica) {
        const auto q = hn::IfThenElse(below, hn::Neg(up), up);
        hn::StoreU(hn::Add(hn::LoadU(kFloats, replica + k), q), kFloats,
                   replica + k);
      }
    }
  }
  negative.Store(codes);
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
  for (size_t w = 0; w < kPlaneWords; ++w) {
    for (size_t j = 0; j < 32; j += kLanes) {
      const size_t k = 32 * w + j;
      const auto scaled = hn::Mul(Innovation<kReplica>(x, replica, k), inverse);
      const auto floor = hn::Floor(hn::Add(scaled, draws.At(first + k)));
      // + 0: a replica never takes in a negative zero.
      const auto code =
          hn::Add(hn::Min(hn::Max(floor, hn::Neg(one)), one), zero);
      negative.words[w] |= MaskBits(hn::Lt(code, zero)) << j;
      nonzero.words[w] |= MaskBits(hn::Ne(code, zero)) << j;
      if constexpr (kReplica) {
        const auto q = hn::Mul(code, hn::Set(kFloats, scale));
        hn::StoreU(hn::Add(hn::LoadU(kFloats, replica + k), q), kFloats,
                   replica + k);
      }
    }
  }
  negative.Store(codes);
  nonzero.Store(codes + 4 * kPlaneWords);
}

// Values of two magnitudes; with one plane, all have the larger.
template <int kPlanes>
HWY_INLINE void DecodePlanes(float small_step, float large_step,
                             const std::byte* codes, float* values) {
  Plane negative, large;
  negative.Load(codes);
  if constexpr (kPlanes == 2) large.Load(codes + 4 * kPlaneWords);
  const auto small_magnitude = hn::Set(kFloats, small_step);
  const auto large_magnitude = hn::Set(kFloats, large_step);
  for (size_t w = 0; w < kPlaneWords; ++w) {
    for (size_t j = 0; j < 32; j += kLanes) {
      auto q = large_magnitude;
      if constexpr (kPlanes == 2) {
        q = hn::IfThenElse(MaskOf(large.words[w] >> j), q, small_magnitude);
      }
      q = hn::IfThenElse(MaskOf(negative.words[w] >> j), hn::Neg(q), q);
      hn::StoreU(q, kFloats, values + 32 * w + j);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace gossamer
HWY_AFTER_NAMESPACE();

#endif  // GOSSAMER_ALGORITHMS_KERNELS_PLANES_INL_H_
