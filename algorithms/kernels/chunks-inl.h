// Indices of the largest of every chunk, and of values at or above its bound,
// for one Highway target; included once per target by kernels.cc.

#if defined(GOSSAMER_ALGORITHMS_KERNELS_CHUNKS_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef GOSSAMER_ALGORITHMS_KERNELS_CHUNKS_INL_H_
#undef GOSSAMER_ALGORITHMS_KERNELS_CHUNKS_INL_H_
#else
#define GOSSAMER_ALGORITHMS_KERNELS_CHUNKS_INL_H_
#endif

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "algorithms/kernels/innovation-inl.h"
#include "algorithms/kernels/reference_kernels.h"
#include "algorithms/kernels/vectors-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace gossamer {
namespace HWY_NAMESPACE {

// |x + y| of a vector from index k on.
template <bool kSum>
HWY_INLINE FloatVector MagnitudeAt(const float* x, const float* y, size_t k) {
  const auto value = hn::LoadU(kFloats, x + k);
  return hn::Abs(kSum ? hn::Add(value, hn::LoadU(kFloats, y + k)) : value);
}

// Of n values, at least a vector; the last vector overlaps the one before.
template <bool kSum>
HWY_INLINE size_t ArgmaxAbsOf(const float* x, const float* y, size_t n) {
  const size_t last = n - kLanes;
  auto even = MagnitudeAt<kSum>(x, y, last), odd = even;
  size_t k = 0;
  for (; k + 2 * kLanes <= n; k += 2 * kLanes) {
    PrefetchAhead(x + k);
    if constexpr (kSum) PrefetchAhead(y + k);
    even = hn::Max(even, MagnitudeAt<kSum>(x, y, k));
    odd = hn::Max(odd, MagnitudeAt<kSum>(x, y, k + kLanes));
  }
  if (k < last) even = hn::Max(even, MagnitudeAt<kSum>(x, y, k));
  const auto largest = hn::MaxOfLanes(kFloats, hn::Max(even, odd));
  for (k = 0; k < last; k += kLanes) {
    const auto found = hn::Eq(MagnitudeAt<kSum>(x, y, k), largest);
    if (!hn::AllFalse(kFloats, found)) {
      return k + static_cast<size_t>(hn::FindFirstTrue(kFloats, found));
    }
  }
  const auto found = hn::Eq(MagnitudeAt<kSum>(x, y, last), largest);
  // Of what is no number, the first.
  return hn::AllFalse(kFloats, found)
             ? 0
             : last + static_cast<size_t>(hn::FindFirstTrue(kFloats, found));
}

template <bool kSum>
void ArgmaxAbsOfChunks(size_t chunk, std::span<const float> x,
                       std::span<const float> y, std::span<uint32_t> indices) {
  for (size_t i = 0, at = 0; at < x.size(); ++i, at += chunk) {
    const size_t n = std::min(chunk, x.size() - at);
    if (n < kLanes) {
      ReferenceKernels().argmax_abs(n, x.subspan(at, n),
                                    kSum ? y.subspan(at, n) : y,
                                    indices.subspan(i, 1));
      indices[i] += static_cast<uint32_t>(at);
      continue;
    }
    indices[i] = static_cast<uint32_t>(
        at +
        ArgmaxAbsOf<kSum>(x.data() + at, kSum ? y.data() + at : nullptr, n));
  }
}

void ArgmaxAbs(size_t chunk, std::span<const float> x, std::span<const float> y,
               std::span<uint32_t> indices) {
  if (y.empty()) {
    ArgmaxAbsOfChunks<false>(chunk, x, y, indices);
  } else {
    ArgmaxAbsOfChunks<true>(chunk, x, y, indices);
  }
}

size_t IndicesAtLeast(size_t chunk, std::span<const float> x,
                      std::span<const float> y, std::span<const float> bounds,
                      std::span<uint32_t> indices) {
  size_t found = 0;
  for (size_t i = 0, at = 0; at < x.size(); ++i, at += chunk) {
    const size_t end = std::min(at + chunk, x.size());
    const auto bound = hn::Set(kFloats, bounds[i]);
    size_t k = at;
    for (; k + kLanes <= end; k += kLanes) {
      const auto at_least =
          hn::Ge(MagnitudeAt<true>(x.data(), y.data(), k), bound);
      for (uint64_t bits = MaskBits(at_least); bits != 0; bits &= bits - 1) {
        indices[found++] = static_cast<uint32_t>(
            k + static_cast<size_t>(std::countr_zero(bits)));
      }
    }
    const size_t before = found;
    found += ReferenceKernels().indices_at_least(
        chunk, x.subspan(k, end - k), y.subspan(k, end - k),
        bounds.subspan(i, 1), indices.subspan(found));
    for (size_t j = before; j < found; ++j) {
      indices[j] += static_cast<uint32_t>(k);
    }
  }
  return found;
}

}  // namespace HWY_NAMESPACE
}  // namespace gossamer
HWY_AFTER_NAMESPACE();

#endif  // GOSSAMER_ALGORITHMS_KERNELS_CHUNKS_INL_H_
