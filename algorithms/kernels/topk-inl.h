// Top-k of every chunk for one Highway target: selection, coding, decoding.
//
// The k-th largest magnitude is found exactly, by bisection over the bits of a
// float (which order as floats do): first over the chunk until few values are
// above, from where the last chunk's was, then over those few.  So the result
// does not depend on the way to it.

#if defined(GOSSAMER_ALGORITHMS_KERNELS_TOPK_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef GOSSAMER_ALGORITHMS_KERNELS_TOPK_INL_H_
#undef GOSSAMER_ALGORITHMS_KERNELS_TOPK_INL_H_
#else
#define GOSSAMER_ALGORITHMS_KERNELS_TOPK_INL_H_
#endif

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "algorithms/kernels/coding.h"
#include "algorithms/kernels/innovation-inl.h"
#include "algorithms/kernels/reference_kernels.h"
#include "algorithms/kernels/vectors-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace gossamer {
namespace HWY_NAMESPACE {

// Magnitudes as bits, below 2^31; beyond the last, zeros to a whole word of 64.
struct Magnitudes {
  alignas(64) int32_t bits[kChunkSize + 64];
  size_t size = 0;
  int32_t largest = 0;

  void Pad() { std::memset(bits + size, 0, 64 * sizeof(bits[0])); }
};

template <bool kReplica>
HWY_INLINE void LoadMagnitudes(const float* x, const float* replica, size_t n,
                               Magnitudes& to) {
  const auto limit = hn::Set(kFloats, kMaxMagnitude);
  auto largest = hn::Zero(kFloats);
  size_t k = 0;
  for (; k + kLanes <= n; k += kLanes) {
    PrefetchAhead(x + k);
    const auto magnitude =
        hn::Min(hn::Abs(Innovation<kReplica>(x, replica, k)), limit);
    largest = hn::Max(largest, magnitude);
    hn::Store(hn::BitCast(kInts, magnitude), kInts, to.bits + k);
  }
  to.largest =
      std::bit_cast<int32_t>(hn::GetLane(hn::MaxOfLanes(kFloats, largest)));
  for (; k < n; ++k) {
    const float value = kReplica ? x[k] - replica[k] : x[k];
    const float magnitude = std::min(std::abs(value), kMaxMagnitude);
    to.bits[k] = std::bit_cast<int32_t>(magnitude);
    to.largest = std::max(to.largest, to.bits[k]);
  }
  to.size = n;
  to.Pad();
}

// How many are at least `bound`, which is above 0.
HWY_INLINE size_t CountFrom(const Magnitudes& from, int32_t bound) {
  const auto below = hn::Set(kInts, bound - 1);
  auto even = hn::Zero(kInts), odd = hn::Zero(kInts);
  for (size_t k = 0; k < from.size; k += 2 * kLanes) {
    const auto a = hn::Load(kInts, from.bits + k);
    const auto b = hn::Load(kInts, from.bits + k + kLanes);
    even = hn::Sub(even, hn::VecFromMask(kInts, hn::Gt(a, below)));
    odd = hn::Sub(odd, hn::VecFromMask(kInts, hn::Gt(b, below)));
  }
  return static_cast<size_t>(
      hn::GetLane(hn::SumOfLanes(kInts, hn::Add(even, odd))));
}

// A bound of which at least `k` are, and no more than `enough` if there is
// one: the largest, if `enough` is k.  Lies in [low, high], both included.
HWY_INLINE int32_t Bisect(const Magnitudes& from, size_t k, size_t enough,
                          int32_t low, int32_t high) {
  while (low < high) {
    const int32_t middle = low + (high - low + 1) / 2;
    const size_t count = CountFrom(from, middle);
    if (count < k) {
      high = middle - 1;
    } else {
      low = middle;
      if (count <= enough && enough > k) break;
    }
  }
  return low;
}

// The places of those that are at least `bound`, rising, and their magnitudes.
HWY_INLINE void Collect(const Magnitudes& from, int32_t bound, uint16_t* places,
                        Magnitudes& to) {
  const auto below = hn::Set(kInts, bound - 1);
  size_t count = 0;
  for (size_t k = 0; k < from.size; k += 64) {
    uint64_t found = 0;
    for (size_t j = 0; j < 64; j += kLanes) {
      const auto bits = hn::Load(kInts, from.bits + k + j);
      found |= uint64_t{MaskBits(hn::RebindMask(kFloats, hn::Gt(bits, below)))}
               << j;
    }
    for (; found != 0; found &= found - 1) {
      const size_t place = k + static_cast<size_t>(std::countr_zero(found));
      if (place >= from.size) break;
      places[count] = static_cast<uint16_t>(place);
      to.bits[count++] = from.bits[place];
    }
  }
  to.size = count;
  to.Pad();
}

// What selection keeps from one chunk to the next.
struct Selection {
  Magnitudes chunk, candidates;
  uint16_t places[kChunkSize];
  // Where the next chunk's k-th largest is expected: above this.
  int32_t guess = 0;
  // How far below the last chunk's that is.
  int32_t margin = 1 << 20;
};

// The k-th largest magnitude of s.chunk; s.candidates has all that are not
// smaller, and some more.
HWY_INLINE int32_t SelectLargest(size_t k, Selection& s) {
  const size_t enough = 3 * k + 64;
  const int32_t largest = s.chunk.largest;
  Collect(s.chunk, std::clamp(s.guess, 0, largest), s.places, s.candidates);
  const size_t found = s.candidates.size;
  // The margin is steered to half as many again as are needed.
  const size_t aim = k + k / 2 + 16;
  if (found < (k + aim) / 2 && s.margin < 1 << 23) s.margin *= 2;
  if (found > 2 * aim && s.margin > 1) s.margin /= 2;
  if (found < k || found > enough) {
    const int32_t bound = Bisect(s.chunk, k, enough, 0, largest);
    Collect(s.chunk, bound, s.places, s.candidates);
  }
  const int32_t kth = Bisect(s.candidates, k, k, 0, largest);
  s.guess = std::max(kth - s.margin, 0);
  return kth;
}

template <bool kReplica>
HWY_INLINE void EncodeChunk(size_t kept, size_t n, const float* x,
                            float* replica, Selection& s, std::byte* scale_to,
                            std::byte* codes) {
  LoadMagnitudes<kReplica>(x, replica, n, s.chunk);
  const int32_t kth = SelectLargest(kept, s);
  const float scale = BlockScale(std::bit_cast<float>(s.chunk.largest), 127);
  const float inverse = scale > 0 ? 1 / scale : 0;
  StoreScale(scale, scale_to);
  size_t ties = kept - CountFrom(s.candidates, kth + 1);
  for (size_t c = 0, i = 0; i < kept; ++c) {
    const int32_t bits = s.candidates.bits[c];
    if (bits < kth || (bits == kth && ties == 0)) continue;
    if (bits == kth) --ties;
    const size_t k = s.places[c];
    const float magnitude =
        std::min(std::bit_cast<float>(bits) * inverse, 127.0f);
    const float rounded = (magnitude + kRounder) - kRounder;
    const bool negative = (kReplica ? x[k] - replica[k] : x[k]) < 0;
    const int code = static_cast<int>(negative ? -rounded : rounded);
    if constexpr (kReplica) {
      replica[k] = replica[k] + static_cast<float>(code) * scale;
    }
    codes[i] = static_cast<std::byte>(code);
    PutTopKIndex(k, i++, codes + kept);
  }
}

template <bool kReplica>
void EncodeChunks(Coding coding, size_t n, const float* x, float* replica,
                  std::byte* scales, std::byte* codes) {
  Selection selection;
  for (size_t start = 0; start < n; start += kChunkSize) {
    const size_t size = std::min(kChunkSize, n - start);
    EncodeChunk<kReplica>(KeptOf(coding, size), size, x + start,
                          kReplica ? replica + start : nullptr, selection,
                          scales + ScaleBytes(coding, start),
                          codes + CodeBytes(coding, start));
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace gossamer
HWY_AFTER_NAMESPACE();

#endif  // GOSSAMER_ALGORITHMS_KERNELS_TOPK_INL_H_
