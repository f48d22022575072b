// Encoding for one Highway target; included once per target by kernels.cc.
//
// Which codings there are, and over how many values each runs at a time.

#if defined(GOSSAMER_ALGORITHMS_KERNELS_ENCODE_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef GOSSAMER_ALGORITHMS_KERNELS_ENCODE_INL_H_
#undef GOSSAMER_ALGORITHMS_KERNELS_ENCODE_INL_H_
#else
#define GOSSAMER_ALGORITHMS_KERNELS_ENCODE_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <span>

#include "algorithms/kernels/innovation-inl.h"
#include "algorithms/kernels/kernels.h"
#include "algorithms/kernels/planes-inl.h"
#include "algorithms/kernels/reference_kernels.h"
#include "algorithms/kernels/topk-inl.h"
#include "algorithms/kernels/vectors-inl.h"
#include "algorithms/kernels/words-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace gossamer {
namespace HWY_NAMESPACE {

template <int kBits, bool kReplica>
HWY_INLINE void EncodeBlock(const float* x, float* replica, std::byte* scale_to,
                            std::byte* codes) {
  const float scale = BlockScale(MaxMagnitude<kReplica>(x, replica, kBlockSize),
                                 kBits == 8 ? 127 : 7);
  StoreScale(scale, scale_to);
  PackBlock<kBits, kReplica, Rounding::kNearest>(x, replica, scale, Draws(0), 0,
                                                 codes);
}

// One bucket of QSGD; `first` is its place in the array.
template <bool kReplica>
void EncodeBucket(Coding coding, const float* x, float* replica,
                  const Draws& draws, size_t first, std::byte* scale_to,
                  std::byte* codes) {
  const float norm = coding.norm == Coding::kMax
                         ? MaxMagnitude<kReplica>(x, replica, coding.bucket)
                         : EuclideanNorm<kReplica>(x, replica, coding.bucket);
  const float scale = BlockScale(norm, coding.levels);
  StoreScale(scale, scale_to);
  for (size_t k = 0; k < coding.bucket; k += kBlockSize) {
    float* const r = kReplica ? replica + k : nullptr;
    if (coding.levels == 1) {
      PackTernary<kReplica>(x + k, r, scale, draws, first + k, codes);
    } else if (coding.levels == 7) {
      PackBlock<4, kReplica, Rounding::kStochastic>(x + k, r, scale, draws,
                                                    first + k, codes);
    } else {
      PackBlock<8, kReplica, Rounding::kStochastic>(x + k, r, scale, draws,
                                                    first + k, codes);
    }
    codes += CodeBytes(coding, kBlockSize);
  }
}

// kBlockSize values without scales.
template <Coding::Kind kKind, bool kReplica>
HWY_INLINE void EncodeValues(const float* x, float* replica, std::byte* codes) {
  const auto low = hn::Set(kFloats, -kMaxMagnitude);
  const auto high = hn::Set(kFloats, kMaxMagnitude);
  for (size_t k = 0; k < kBlockSize; k += kLanes) {
    const auto value = Innovation<kReplica>(x, replica, k);
    auto q = hn::Min(hn::Max(value, low), high);
    if constexpr (kKind == Coding::kBf16) {
      const auto bits = hn::BitCast(kWords, q);
      const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(kWords, 1));
      const auto rounded = hn::ShiftRight<16>(hn::Add(hn::Add(bits, odd),  //
                                                      hn::Set(kWords, 0x7fff)));
      StoreBytes(hn::DemoteTo(kHalves, hn::BitCast(kInts, rounded)), kHalves,
                 codes + 2 * k);
      q = hn::BitCast(kFloats, hn::ShiftLeft<16>(rounded));
    } else {
      StoreBytes(hn::BitCast(kWords, q), kWords, codes + 4 * k);
    }
    if constexpr (kReplica) {
      hn::StoreU(hn::Add(hn::LoadU(kFloats, replica + k), q), kFloats,
                 replica + k);
    }
  }
}

template <Coding::Kind kKind, bool kReplica>
void EncodeBlocks(size_t blocks, const float* x, float* replica,
                  std::byte* scales, std::byte* codes) {
  for (size_t b = 0; b < blocks; ++b) {
    if constexpr (kKind == Coding::kInt8) {
      EncodeBlock<8, kReplica>(x, replica, scales, codes);
    } else if constexpr (kKind == Coding::kInt4) {
      EncodeBlock<4, kReplica>(x, replica, scales, codes);
    } else if constexpr (kKind == Coding::kLm2 || kKind == Coding::kSign) {
      EncodePlanes<kKind, kReplica>(x, replica, scales, codes);
    } else {
      EncodeValues<kKind, kReplica>(x, replica, codes);
    }
    x += kBlockSize;
    if constexpr (kReplica) replica += kBlockSize;
    scales += 2;
    codes += CodeBytes(kKind, kBlockSize);
  }
}

template <bool kReplica>
void EncodeSteps(Coding coding, size_t blocks, const float* x, float* replica,
                 std::byte* codes) {
  for (size_t b = 0; b < blocks; ++b) {
    PrefetchAhead(x);
    PackSigns<kReplica>(x, replica, coding.step, codes);
    x += kBlockSize;
    if constexpr (kReplica) replica += kBlockSize;
    codes += CodeBytes(coding, kBlockSize);
  }
}

template <bool kReplica>
void EncodeBuckets(Coding coding, size_t buckets, const float* x,
                   float* replica, uint64_t key, std::byte* scales,
                   std::byte* codes) {
  const Draws draws(key);
  for (size_t b = 0; b < buckets; ++b) {
    const size_t first = b * coding.bucket;
    EncodeBucket<kReplica>(coding, x + first,
                           kReplica ? replica + first : nullptr, draws, first,
                           scales + 2 * b, codes + CodeBytes(coding, first));
  }
}

// The whole units of an array; returns how many values these are.
template <bool kReplica>
size_t EncodeUnits(Coding coding, size_t n, const float* x, float* replica,
                   uint64_t key, std::byte* scales, std::byte* codes) {
  const size_t units = n / UnitSize(coding);
  switch (coding.kind) {
    case Coding::kF32:
      EncodeBlocks<Coding::kF32, kReplica>(units, x, replica, scales, codes);
      break;
    case Coding::kBf16:
      EncodeBlocks<Coding::kBf16, kReplica>(units, x, replica, scales, codes);
      break;
    case Coding::kUnit:
      EncodeSteps<kReplica>(coding, units, x, replica, codes);
      break;
    case Coding::kInt8:
      EncodeBlocks<Coding::kInt8, kReplica>(units, x, replica, scales, codes);
      break;
    case Coding::kInt4:
      EncodeBlocks<Coding::kInt4, kReplica>(units, x, replica, scales, codes);
      break;
    case Coding::kLm2:
      EncodeBlocks<Coding::kLm2, kReplica>(units, x, replica, scales, codes);
      break;
    case Coding::kSign:
      EncodeBlocks<Coding::kSign, kReplica>(units, x, replica, scales, codes);
      break;
    case Coding::kTopK:  // no unit is left over: the last may be short
      EncodeChunks<kReplica>(coding, n, x, replica, scales, codes);
      return n;
    case Coding::kQsgd:
      EncodeBuckets<kReplica>(coding, units, x, replica, key, scales, codes);
      break;
  }
  return units * UnitSize(coding);
}

void Encode(Coding coding, std::span<const float> x, std::span<float> replica,
            uint64_t key, std::byte* scales, std::byte* codes) {
  const size_t done =
      replica.empty() ? EncodeUnits<false>(coding, x.size(), x.data(), nullptr,
                                           key, scales, codes)
                      : EncodeUnits<true>(coding, x.size(), x.data(),
                                          replica.data(), key, scales, codes);
  EncodeFrom(done, coding, x, replica, key, scales, codes);
}

}  // namespace HWY_NAMESPACE
}  // namespace gossamer
HWY_AFTER_NAMESPACE();

#endif  // GOSSAMER_ALGORITHMS_KERNELS_ENCODE_INL_H_
