// The common part of the encoders of every coding, for one Highway target: what
// is to be coded, how it is rounded, random draws, sums.
//
// This header knows nothing of the layout of codes.

#if defined(GOSSAMER_ALGORITHMS_KERNELS_INNOVATION_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef GOSSAMER_ALGORITHMS_KERNELS_INNOVATION_INL_H_
#undef GOSSAMER_ALGORITHMS_KERNELS_INNOVATION_INL_H_
#else
#define GOSSAMER_ALGORITHMS_KERNELS_INNOVATION_INL_H_
#endif

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "algorithms/kernels/coding.h"
#include "algorithms/kernels/reference_kernels.h"
#include "algorithms/kernels/vectors-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace gossamer {
namespace HWY_NAMESPACE {

// 1.5·2^23: adding it leaves a float of |t| <= 2^22 rounded half to even, with
// the integer in the low bits, as two's complement.
constexpr float kRounder = 12582912.0f;

// The value to be coded at k: x − replica, or x.
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

HWY_INLINE float LoadScale(const std::byte* from) {
  uint16_t bf16;
  std::memcpy(&bf16, from, sizeof(bf16));
  return std::bit_cast<float>(static_cast<uint32_t>(bf16) << 16);
}

// Which of the lanes a mask holds, lane 0 in the lowest bit.
HWY_INLINE uint32_t MaskBits(hn::Mask<Floats> mask) {
  uint8_t bytes[8] = {};
  hn::StoreMaskBits(kFloats, mask, bytes);
  uint32_t bits;
  std::memcpy(&bits, bytes, sizeof(bits));
  return bits & ((1u << kLanes) - 1);
}

// Vectors with bit i, and with the number i, in lane i.
alignas(64) constexpr uint32_t kLaneBits[16] = {
    1u << 0,  1u << 1,  1u << 2,  1u << 3, 1u << 4,  1u << 5,
    1u << 6,  1u << 7,  1u << 8,  1u << 9, 1u << 10, 1u << 11,
    1u << 12, 1u << 13, 1u << 14, 1u << 15};
alignas(64) constexpr uint32_t kLaneNumbers[16] = {
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

// Dither of a key, for the values from i on.
class Draws {
 public:
  explicit HWY_INLINE Draws(uint64_t key)
      : start_(hn::Add(
            hn::Mul(hn::Load(kWords, kLaneNumbers), hn::Set(kWords, kStep)),
            hn::Set(kWords, static_cast<uint32_t>(key)))),
        high_(hn::Set(kWords, static_cast<uint32_t>(key >> 32))) {}
  HWY_INLINE FloatVector At(size_t i) const {
    auto z = hn::Add(start_, hn::Set(kWords, static_cast<uint32_t>(i) * kStep));
    z = hn::Xor(z, hn::ShiftRight<16>(z));
    z = hn::Add(hn::Mul(z, hn::Set(kWords, 0x21f0aaadu)), high_);
    z = hn::Xor(z, hn::ShiftRight<15>(z));
    z = hn::Mul(z, hn::Set(kWords, 0x735a2d97u));
    z = hn::ShiftRight<8>(hn::Xor(z, hn::ShiftRight<15>(z)));
    return hn::Mul(hn::ConvertTo(kFloats, hn::BitCast(kInts, z)),
                   hn::Set(kFloats, 0x1p-24f));
  }

 private:
  static constexpr uint32_t kStep = 0x9e3779b9u;
  WordVector start_, high_;
};

// The lanes of a block's sum, in vectors.
class BlockSums {
 public:
  static constexpr size_t kVectors = kSumLanes / kLanes;

  HWY_INLINE BlockSums() {
    for (size_t i = 0; i < kVectors; ++i) sums_[i] = hn::Zero(kFloats);
  }
  // Values from a place on that is i vectors above a multiple of kSumLanes.
  HWY_INLINE void Add(size_t i, FloatVector values) {
    sums_[i] = hn::Add(sums_[i], values);
  }
  HWY_INLINE float Finish() const {
    SumLanes lanes;
    for (size_t i = 0; i < kVectors; ++i) {
      hn::StoreU(sums_[i], kFloats, lanes.data() + i * kLanes);
    }
    return AddLanes(lanes);
  }

 private:
  FloatVector sums_[kVectors];
};

}  // namespace HWY_NAMESPACE
}  // namespace gossamer
HWY_AFTER_NAMESPACE();

#endif  // GOSSAMER_ALGORITHMS_KERNELS_INNOVATION_INL_H_
