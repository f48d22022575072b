// Decoding, applying and checking coded arrays for one Highway target; included
// once per target by kernels.cc.
//
// Both payloads are decoded a block at a time into buffers that stay in the
// first-level cache: one loop then serves every pair of codings.

#if defined(GOSSAMER_ALGORITHMS_KERNELS_APPLY_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef GOSSAMER_ALGORITHMS_KERNELS_APPLY_INL_H_
#undef GOSSAMER_ALGORITHMS_KERNELS_APPLY_INL_H_
#else
#define GOSSAMER_ALGORITHMS_KERNELS_APPLY_INL_H_
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
    auto word = hn::BitCast(kInts, LoadBytes(kWords, codes + 4 * j));
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
        const auto half = LoadBytes(kHalves, codes + 2 * k);
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
    const auto word = LoadBytes(kWords, codes.data() + i);
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

#endif  // GOSSAMER_ALGORITHMS_KERNELS_APPLY_INL_H_
