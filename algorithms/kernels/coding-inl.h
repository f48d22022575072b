// Encoding and applying coded arrays for one Highway target; included once per
// target by kernels.cc.
//
// Codes lie in words such that value k of a block is in word k mod (words of a
// block): neighbouring values are in neighbouring lanes, and packing needs
// shifts and ors only, for every vector length.

#if defined(GOSSAMER_ALGORITHMS_KERNELS_CODING_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef GOSSAMER_ALGORITHMS_KERNELS_CODING_INL_H_
#undef GOSSAMER_ALGORITHMS_KERNELS_CODING_INL_H_
#else
#define GOSSAMER_ALGORITHMS_KERNELS_CODING_INL_H_
#endif

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "algorithms/kernels/elementwise-inl.h"
#include "algorithms/kernels/kernels.h"
#include "algorithms/kernels/reference_kernels.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace gossamer {
namespace HWY_NAMESPACE {

using Halves = hn::Rebind<uint16_t, Floats>;
constexpr Halves kHalves;
constexpr hn::RebindToSigned<Floats> kInts;
using WordVector = hn::Vec<Words>;

// 1.5·2^23: adding it leaves a float of |t| <= 2^22 rounded half to even, with
// the integer in the low bits, as two's complement.
constexpr float kRounder = 12582912.0f;

HWY_INLINE WordVector LoadWords(const std::byte* from) {
  return hn::LoadU(kWords, reinterpret_cast<const uint32_t*>(from));
}
HWY_INLINE void StoreWords(WordVector words, std::byte* to) {
  hn::StoreU(words, kWords, reinterpret_cast<uint32_t*>(to));
}

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
    StoreWords(word, codes + 4 * j);
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
      hn::StoreU(hn::DemoteTo(kHalves, hn::BitCast(kInts, rounded)), kHalves,
                 reinterpret_cast<uint16_t*>(codes + 2 * k));
      q = hn::BitCast(kFloats, hn::ShiftLeft<16>(rounded));
    } else {
      StoreWords(hn::BitCast(kWords, q), codes + 4 * k);
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

template <int kBits>
HWY_INLINE void DecodeBlock(const std::byte* scale_from, const std::byte* codes,
                            float* values) {
  constexpr size_t kPerWord = 32 / kBits;
  constexpr size_t kStride = kBlockSize / kPerWord;
  uint16_t bf16;
  std::memcpy(&bf16, scale_from, sizeof(bf16));
  const auto scale =
      hn::Set(kFloats, std::bit_cast<float>(static_cast<uint32_t>(bf16) << 16));
  for (size_t j = 0; j < kStride; j += kLanes) {
    auto word = hn::BitCast(kInts, LoadWords(codes + 4 * j));
    for (size_t i = kPerWord; i-- > 0;) {
      // The highest field, sign-extended.
      const auto code = hn::ShiftRight<32 - kBits>(word);
      word = hn::ShiftLeft<kBits>(word);
      hn::StoreU(hn::Mul(hn::ConvertTo(kFloats, code), scale), kFloats,
                 values + i * kStride + j);
    }
  }
}

// Block `b` of `from`.
HWY_INLINE void DecodeBlock(const CodedSpan& from, size_t b, float* values) {
  const std::byte* codes = from.codes + b * CodeBytes(from.coding, kBlockSize);
  switch (from.coding) {
    case Coding::kF32:
      std::memcpy(values, codes, kBlockSize * sizeof(float));
      break;
    case Coding::kBf16:
      for (size_t k = 0; k < kBlockSize; k += kLanes) {
        const auto half = hn::LoadU(
            kHalves, reinterpret_cast<const uint16_t*>(codes + 2 * k));
        const auto bits = hn::ShiftLeft<16>(hn::PromoteTo(kWords, half));
        hn::StoreU(hn::BitCast(kFloats, bits), kFloats, values + k);
      }
      break;
    case Coding::kInt8:
      DecodeBlock<8>(from.scales + 2 * b, codes, values);
      break;
    case Coding::kInt4:
      DecodeBlock<4>(from.scales + 2 * b, codes, values);
      break;
  }
}

template <bool kDifference, bool kMix>
void ApplyBlocks(size_t blocks, const CodedSpan* theirs, const CodedSpan* mine,
                 float c, float* difference, float* x) {
  alignas(64) float t[kBlockSize] = {};
  alignas(64) float m[kBlockSize] = {};
  const auto factor = hn::Set(kFloats, c);
  for (size_t b = 0; b < blocks; ++b) {
    if (theirs != nullptr) DecodeBlock(*theirs, b, t);
    if (mine != nullptr) DecodeBlock(*mine, b, m);
    for (size_t k = 0; k < kBlockSize; k += kLanes) {
      auto d = hn::Sub(hn::Load(kFloats, t + k), hn::Load(kFloats, m + k));
      if constexpr (kDifference) {
        d = hn::Add(hn::LoadU(kFloats, difference + k), d);
        hn::StoreU(d, kFloats, difference + k);
      }
      if constexpr (kMix) {
        const auto change = hn::Mul(factor, d);
        hn::StoreU(hn::Add(hn::LoadU(kFloats, x + k), change), kFloats, x + k);
      }
    }
    if constexpr (kDifference) difference += kBlockSize;
    if constexpr (kMix) x += kBlockSize;
  }
}

// `from` without its first `blocks` blocks.
HWY_INLINE CodedSpan Advance(CodedSpan from, size_t blocks) {
  from.scales += ScaleBytes(from.coding, blocks * kBlockSize);
  from.codes += CodeBytes(from.coding, blocks * kBlockSize);
  return from;
}

void Apply(const CodedSpan* theirs, const CodedSpan* mine, float c,
           std::span<float> difference, std::span<float> x) {
  const bool mix = theirs != nullptr && mine != nullptr;
  const size_t n = difference.empty() ? x.size() : difference.size();
  const size_t blocks = n / kBlockSize;
  if (difference.empty()) {
    if (!mix) return;
    ApplyBlocks<false, true>(blocks, theirs, mine, c, nullptr, x.data());
  } else {
    const auto apply = mix ? ApplyBlocks<true, true> : ApplyBlocks<true, false>;
    apply(blocks, theirs, mine, c, difference.data(), x.data());
    difference = difference.subspan(blocks * kBlockSize);
  }
  if (n == blocks * kBlockSize) return;
  const CodedSpan their_rest =
      theirs != nullptr ? Advance(*theirs, blocks) : CodedSpan();
  const CodedSpan my_rest =
      mine != nullptr ? Advance(*mine, blocks) : CodedSpan();
  ReferenceKernels().apply(theirs != nullptr ? &their_rest : nullptr,
                           mine != nullptr ? &my_rest : nullptr, c, difference,
                           x.subspan(blocks * kBlockSize));
}

// True in the top bit of every field of `kBits` that is not 10…0.
template <int kBits>
HWY_INLINE WordVector NotLowest(WordVector word) {
  constexpr uint32_t kTop = kBits == 8 ? 0x80808080u : 0x88888888u;
  const auto low = hn::Set(kWords, ~kTop);
  const auto x = hn::Xor(word, hn::Set(kWords, kTop));
  return hn::Or(x, hn::Add(hn::And(x, low), low));
}

bool Valid(Coding coding, std::span<const std::byte> codes) {
  constexpr size_t kStep = 4 * kLanes;
  const auto limit = hn::BitCast(kWords, hn::Set(kFloats, kMaxMagnitude));
  auto all = hn::Set(kWords, ~0u);
  auto worst = hn::Zero(kWords);
  size_t i = 0;
  for (; i + kStep <= codes.size(); i += kStep) {
    const auto word = LoadWords(codes.data() + i);
    if (coding == Coding::kInt8) {
      all = hn::And(all, NotLowest<8>(word));
    } else if (coding == Coding::kInt4) {
      all = hn::And(all, NotLowest<4>(word));
    } else if (coding == Coding::kF32) {
      const auto bits = hn::And(word, hn::Set(kWords, 0x7fffffffu));
      worst = hn::Max(worst, bits);
    } else {
      const auto high = hn::And(word, hn::Set(kWords, 0x7fff0000u));
      const auto low = hn::And(hn::ShiftLeft<16>(word),  //
                               hn::Set(kWords, 0x7fff0000u));
      worst = hn::Max(worst, hn::Max(high, low));
    }
  }
  const auto top = hn::Set(kWords, coding == Coding::kInt8   ? 0x80808080u
                                   : coding == Coding::kInt4 ? 0x88888888u
                                                             : 0u);
  return hn::AllTrue(kWords, hn::Eq(hn::And(all, top), top)) &&
         hn::AllTrue(kWords, hn::Eq(hn::Max(worst, limit), limit)) &&
         ReferenceKernels().valid(coding, codes.subspan(i));
}

}  // namespace HWY_NAMESPACE
}  // namespace gossamer
HWY_AFTER_NAMESPACE();

#endif  // GOSSAMER_ALGORITHMS_KERNELS_CODING_INL_H_
