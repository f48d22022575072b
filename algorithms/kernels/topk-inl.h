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
#include <limits>

#include "algorithms/kernels/coding.h"
#include "algorithms/kernels/innovation-inl.h"
#include "algorithms/kernels/reference_kernels.h"
#include "algorithms/kernels/vectors-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace gossamer {
namespace HWY_NAMESPACE {

// Magnitudes as bits, below 2^31; beyond the last, zeros for the loops that
// look at this many at once.
struct Magnitudes {
  static constexpr size_t kStride = 64;
  alignas(64) int32_t bits[kChunkSize + kStride];
  size_t size = 0;

  HWY_INLINE void Pad() {
    for (size_t k = 0; k < kStride; k += kLanes) {
      hn::StoreU(hn::Zero(kInts), kInts, bits + size + k);
    }
  }
};

// State that selection keeps from one chunk to the next.
struct Selection {
  Magnitudes chunk, candidates;
  uint16_t indices[kChunkSize];  // of the candidates
  int32_t largest = 0;           // magnitude of the chunk
  // All candidates, and no others, are at least this, unless this is 0.
  int32_t bound = 0;
  // The distance below a chunk's k-th largest at which the next chunk's is
  // looked for.
  int32_t margin = 1 << 20;
};

// Adds to the candidates those of the 64 from `start` on that `found` has.
HWY_INLINE void AddCandidates(uint64_t found, size_t start, Selection& s) {
  size_t count = s.candidates.size;
  for (; found != 0; found &= found - 1) {
    const size_t k = start + static_cast<size_t>(std::countr_zero(found));
    s.indices[count] = static_cast<uint16_t>(k);
    s.candidates.bits[count++] = s.chunk.bits[k];
  }
  s.candidates.size = count;
}

// Reads 64 magnitudes into `to`; returns which are at least the bound.
template <bool kReplica>
HWY_INLINE uint64_t LoadMagnitudes(const float* x, const float* replica,
                                   hn::Vec<decltype(kInts)> below, int32_t* to,
                                   FloatVector& largest) {
  const auto limit = hn::Set(kFloats, kMaxMagnitude);
  uint64_t found = 0;
  for (size_t k = 0; k < 64; k += kLanes) {
    if (k % 16 == 0) PrefetchAhead(x + k);
    const auto magnitude =
        hn::Min(hn::Abs(Innovation<kReplica>(x, replica, k)), limit);
    largest = hn::Max(largest, magnitude);
    const auto bits = hn::BitCast(kInts, magnitude);
    hn::Store(bits, kInts, to + k);
    found |= uint64_t{MaskBits(hn::RebindMask(kFloats, hn::Gt(bits, below)))}
             << k;
  }
  return found;
}

// Reads a chunk; its candidates are those that are at least s.bound.
template <bool kReplica>
HWY_INLINE void LoadChunk(const float* x, const float* replica, size_t n,
                          Selection& s) {
  const auto below = hn::Set(kInts, s.bound - 1);
  auto largest = hn::Zero(kFloats);
  s.candidates.size = 0;
  size_t k = 0;
  for (; k + 64 <= n; k += 64) {
    const uint64_t found =
        LoadMagnitudes<kReplica>(x + k, kReplica ? replica + k : nullptr, below,
                                 s.chunk.bits + k, largest);
    AddCandidates(found, k, s);
  }
  if (k < n) {
    float rest[64] = {};
    for (size_t i = k; i < n; ++i) {
      rest[i - k] = kReplica ? x[i] - replica[i] : x[i];
    }
    const uint64_t found =
        LoadMagnitudes<false>(rest, nullptr, below, s.chunk.bits + k, largest);
    AddCandidates(found & ((uint64_t{1} << (n - k)) - 1), k, s);
  }
  s.chunk.size = n;
  s.chunk.Pad();
  s.candidates.Pad();
  s.largest =
      std::bit_cast<int32_t>(hn::GetLane(hn::MaxOfLanes(kFloats, largest)));
}

// The number of magnitudes that are at least `bound`, which is above 0.
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

// A bound in [low, high] that at least `k` reach, and no more than `enough`;
// the k-th largest if, for ties, there is none.  All of `from` may reach low.
HWY_INLINE int32_t Bisect(const Magnitudes& from, size_t k, size_t enough,
                          int32_t low, int32_t high) {
  while (low < high) {
    const int32_t middle = low + (high - low + 1) / 2;
    const size_t count = CountFrom(from, middle);
    if (count < k) {
      high = middle - 1;
    } else {
      low = middle;
      if (count <= enough) break;
    }
  }
  return low;
}

// Cuts the candidates of the chunk down to its `k` largest, of equal ones the
// first.
HWY_INLINE void SelectLargest(size_t k, Selection& s) {
  const size_t found = s.candidates.size;
  // The margin is steered to half as many again as are needed.
  const size_t aim = k + k / 2 + 16;
  if (found < (k + aim) / 2 && s.margin < 1 << 23) s.margin *= 2;
  if (found > 2 * aim && s.margin > 1) s.margin /= 2;
  if (found < k || found > 2 * aim + 64) {
    s.bound = Bisect(s.chunk, k, aim, 0, s.largest);
    s.candidates.size = 0;
    const auto below = hn::Set(kInts, s.bound - 1);
    for (size_t start = 0; start < s.chunk.size; start += 64) {
      uint64_t reach = 0;
      for (size_t j = 0; j < 64; j += kLanes) {
        const auto bits = hn::Load(kInts, s.chunk.bits + start + j);
        reach |=
            uint64_t{MaskBits(hn::RebindMask(kFloats, hn::Gt(bits, below)))}
            << j;
      }
      const size_t left = s.chunk.size - start;
      if (left < 64) reach &= (uint64_t{1} << left) - 1;
      AddCandidates(reach, start, s);
    }
    s.candidates.Pad();
  }
  const int32_t bound = Bisect(s.candidates, k, k, s.bound, s.largest);
  size_t ties = k - CountFrom(s.candidates, bound + 1);
  // The loop has no branches: which values stay is as good as random.
  for (size_t c = 0, i = 0; c < s.candidates.size; ++c) {
    const int32_t bits = s.candidates.bits[c];
    const bool tie = (bits == bound) & (ties > 0);
    ties -= tie;
    s.indices[i] = s.indices[c];
    i += (bits > bound) | tie;
  }
  s.bound = std::max(bound - s.margin, 0);
}

template <bool kReplica>
HWY_INLINE void EncodeChunk(size_t kept, size_t n, const float* x,
                            float* replica, Selection& s, std::byte* scale_to,
                            std::byte* codes) {
  LoadChunk<kReplica>(x, replica, n, s);
  SelectLargest(kept, s);
  const float scale = BlockScale(std::bit_cast<float>(s.largest), 127);
  const float inverse = scale > 0 ? 1 / scale : 0;
  StoreScale(scale, scale_to);
  for (size_t i = 0; i < kept; ++i) {
    const size_t k = s.indices[i];
    const float value = kReplica ? x[k] - replica[k] : x[k];
    const float clamped =
        std::min(std::max(value, -kMaxMagnitude), kMaxMagnitude);
    const float scaled = std::min(std::max(clamped * inverse, -127.0f), 127.0f);
    const float code = (scaled + kRounder) - kRounder;
    if constexpr (kReplica) replica[k] = replica[k] + code * scale;
    codes[i] = static_cast<std::byte>(static_cast<int>(code));
    PutTopKIndex(k, i, codes + kept);
  }
}

template <bool kReplica>
void EncodeChunks(Coding coding, size_t n, const float* x, float* replica,
                  std::byte* scales, std::byte* codes) {
  Selection selection;
  // The first threshold is not known: the first chunk is searched as a whole.
  selection.bound = std::numeric_limits<int32_t>::max();
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
