// Vector types and memory access for one Highway target; included once per
// target by kernels.cc.

#if defined(GOSSAMER_ALGORITHMS_KERNELS_VECTORS_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef GOSSAMER_ALGORITHMS_KERNELS_VECTORS_INL_H_
#undef GOSSAMER_ALGORITHMS_KERNELS_VECTORS_INL_H_
#else
#define GOSSAMER_ALGORITHMS_KERNELS_VECTORS_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "algorithms/kernels/reference_kernels.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace gossamer {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// At most 16 lanes, the lanes of every sum (kNormLanes, kSumLanes): a wider
// vector would add in another order and give other bits.
using Floats = hn::CappedTag<float, 16>;
using Words = hn::RebindToUnsigned<Floats>;
using FloatVector = hn::Vec<Floats>;
constexpr Floats kFloats;
constexpr Words kWords;
constexpr size_t kLanes = hn::MaxLanes(kFloats);

using Halves = hn::Rebind<uint16_t, Floats>;
constexpr Halves kHalves;
constexpr hn::RebindToSigned<Floats> kInts;
using WordVector = hn::Vec<Words>;

// Vectors at addresses of any alignment; Highway's scalar target would read
// them as one aligned integer.
template <class D>
HWY_INLINE hn::Vec<D> LoadBytes(D d, const std::byte* from) {
  if constexpr (hn::MaxLanes(D()) == 1) {
    hn::TFromD<D> value;
    std::memcpy(&value, from, sizeof(value));
    return hn::Set(d, value);
  } else {
    return hn::LoadU(d, reinterpret_cast<const hn::TFromD<D>*>(from));
  }
}
template <class D>
HWY_INLINE void StoreBytes(hn::Vec<D> vector, D d, std::byte* to) {
  if constexpr (hn::MaxLanes(D()) == 1) {
    const hn::TFromD<D> value = hn::GetLane(vector);
    std::memcpy(to, &value, sizeof(value));
  } else {
    hn::StoreU(vector, d, reinterpret_cast<hn::TFromD<D>*>(to));
  }
}

// Fetches what lies a page ahead of `p`, whether or not the array goes on that
// far.  Kernels that mostly read are bound by latency, as the hardware's own
// prefetch stops at the end of a page: 10 to 30 % faster out of cache.
HWY_INLINE void PrefetchAhead(const float* p) {
  constexpr uintptr_t kPage = 4096;
  hwy::Prefetch(
      reinterpret_cast<const char*>(reinterpret_cast<uintptr_t>(p) + kPage));
}

// The lanes of a chunk of squared_norm, in vectors.
class NormSums {
 public:
  HWY_INLINE NormSums() {
    for (size_t i = 0; i < kVectors; ++i) sums_[i] = hn::Zero(kDoubles);
  }
  // The squares of the next kNormLanes values.
  HWY_INLINE void Add(const float* values) {
    for (size_t i = 0; i < kVectors; ++i) {
      const auto value =
          hn::PromoteTo(kDoubles, hn::LoadU(kHalf, values + i * kStep));
      sums_[i] = hn::Add(sums_[i], hn::Mul(value, value));
    }
  }
  double Finish(std::span<const float> rest) const {
    NormLanes lanes;
    for (size_t i = 0; i < kVectors; ++i) {
      hn::StoreU(sums_[i], kDoubles, lanes.data() + i * kStep);
    }
    return FinishSquaredNorm(lanes, rest);
  }

 private:
  using Doubles = hn::CappedTag<double, 8>;
  static constexpr Doubles kDoubles{};
  static constexpr hn::Rebind<float, Doubles> kHalf{};
  static constexpr size_t kStep = hn::MaxLanes(Doubles());
  static constexpr size_t kVectors = kNormLanes / kStep;
  hn::Vec<Doubles> sums_[kVectors];
};

}  // namespace HWY_NAMESPACE
}  // namespace gossamer
HWY_AFTER_NAMESPACE();

#endif  // GOSSAMER_ALGORITHMS_KERNELS_VECTORS_INL_H_
