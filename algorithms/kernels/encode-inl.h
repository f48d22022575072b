// Encoding for one Highway target; included once per target by kernels.cc.
//
// Codes lie in words such that value k of a block is in word k mod (words of a
// block): neighbouring values are in neighbouring lanes, and packing needs
// shifts and ors only, for every vector length.

#if defined(GOSSAMER_ALGORITHMS_KERNELS_ENCODE_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef GOSSAMER_ALGORITHMS_KERNELS_ENCODE_INL_H_
#undef GOSSAMER_ALGORITHMS_KERNELS_ENCODE_INL_H_
#else
#define GOSSAMER_ALGORITHMS_KERNELS_ENCODE_INL_H_
#endif

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "algorithms/kernels/kernels.h"
#include "algorithms/kernels/reference_kernels.h"
#include "algorithms/kernels/vectors-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace gossamer {
namespace HWY_NAMESPACE {

// 1.5·2^23: adding it leaves a float of |t| <= 2^22 rounded half to even, with
// the integer in the low bits, as two's complement.
constexpr float kRounder = 12582912.0f;

// What is to be coded at k: x − replica, or x.
template <bool kReplica>
HWY_INLINE FloatVector Innovation(const float* x, const float* replica,
                                  size_t k) {
  const auto value = hn::LoadU(kFloats, x + k);
  if constexpr (kReplica) {
    return hn::Sub(value, hn::LoadU(kFloats, replica + k));
  } else {
    return value;
  }
}

template <bool kReplica>
HWY_INLINE float MaxMagnitude(const float* x, const float* replica) {
  auto even = hn::Zero(kFloats);
  auto odd = hn::Zero(kFloats);
  for (size_t k = 0; k < kBlockSize; k += 2 * kLanes) {
    PrefetchAhead(x + k);
    even = hn::Max(even, hn::Abs(Innovation<kReplica>(x, replica, k)));
    odd = hn::Max(odd, hn::Abs(Innovation<kReplica>(x, replica, k + kLanes)));
  }
  return hn::GetLane(hn::MaxOfLanes(kFloats, hn::Max(even, odd)));
}

template <int kBits, bool kReplica>
HWY_INLINE void EncodeBlock(const float* x, float* replica, std::byte* scale_to,
                            std::byte* codes) {
  constexpr float kLevels = kBits == 8 ? 127 : 7;
  constexpr size_t kPerWord = 32 / kBits;
  constexpr size_t kStride = kBlockSize / kPerWord;
  const float scale = BlockScale(MaxMagnitude<kReplica>(x, replica), kLevels);
  const auto bf16 = static_cast<uint16_t>(std::bit_cast<uint32_t>(scale) >> 16);
  std::memcpy(scale_to, &bf16, sizeof(bf16));

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
      const auto clamped = hn::Min(hn::Max(hn::Mul(value, inverse), low), high);
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

// kBlockSize values without scales.
template <Coding kCoding, bool kReplica>
HWY_INLINE void EncodeValues(const float* x, float* replica, std::byte* codes) {
  const auto low = hn::Set(kFloats, -kMaxMagnitude);
  const auto high = hn::Set(kFloats, kMaxMagnitude);
  for (size_t k = 0; k < kBlockSize; k += kLanes) {
    const auto value = Innovation<kReplica>(x, replica, k);
    auto q = hn::Min(hn::Max(value, low), high);
    if constexpr (kCoding == Coding::kBf16) {
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

template <Coding kCoding, bool kReplica>
void EncodeBlocks(size_t blocks, const float* x, float* replica,
                  std::byte* scales, std::byte* codes) {
  for (size_t b = 0; b < blocks; ++b) {
    if constexpr (kCoding == Coding::kInt8) {
      EncodeBlock<8, kReplica>(x, replica, scales, codes);
    } else if constexpr (kCoding == Coding::kInt4) {
      EncodeBlock<4, kReplica>(x, replica, scales, codes);
    } else {
      EncodeValues<kCoding, kReplica>(x, replica, codes);
    }
    x += kBlockSize;
    if constexpr (kReplica) replica += kBlockSize;
    scales += 2;
    codes += CodeBytes(kCoding, kBlockSize);
  }
}

template <bool kReplica>
void EncodeAs(Coding coding, size_t blocks, const float* x, float* replica,
              std::byte* scales, std::byte* codes) {
  switch (coding) {
    case Coding::kF32:
      return EncodeBlocks<Coding::kF32, kReplica>(blocks, x, replica, scales,
                                                  codes);
    case Coding::kBf16:
      return EncodeBlocks<Coding::kBf16, kReplica>(blocks, x, replica, scales,
                                                   codes);
    case Coding::kInt8:
      return EncodeBlocks<Coding::kInt8, kReplica>(blocks, x, replica, scales,
                                                   codes);
    case Coding::kInt4:
      return EncodeBlocks<Coding::kInt4, kReplica>(blocks, x, replica, scales,
                                                   codes);
  }
}

void Encode(Coding coding, std::span<const float> x, std::span<float> replica,
            std::byte* scales, std::byte* codes) {
  const size_t blocks = x.size() / kBlockSize;
  const size_t whole = blocks * kBlockSize;
  if (replica.empty()) {
    EncodeAs<false>(coding, blocks, x.data(), nullptr, scales, codes);
  } else {
    EncodeAs<true>(coding, blocks, x.data(), replica.data(), scales, codes);
    replica = replica.subspan(whole);
  }
  ReferenceKernels().encode(coding, x.subspan(whole), replica,
                            scales + ScaleBytes(coding, whole),
                            codes + CodeBytes(coding, whole));
}

}  // namespace HWY_NAMESPACE
}  // namespace gossamer
HWY_AFTER_NAMESPACE();

#endif  // GOSSAMER_ALGORITHMS_KERNELS_ENCODE_INL_H_
