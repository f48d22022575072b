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

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "algorithms/kernels/innovation-inl.h"
#include "algorithms/kernels/kernels.h"
#include "algorithms/kernels/planes-inl.h"
#include "algorithms/kernels/reference_kernels.h"
#include "algorithms/kernels/vectors-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace gossamer {
namespace HWY_NAMESPACE {

template <size_t kBits>
HWY_INLINE void UnpackBlock(float scale, const std::byte* codes,
                            float* values) {
  constexpr size_t kPerWord = 32 / kBits;
  constexpr size_t kStride = kBlockSize / kPerWord;
  const auto step = hn::Set(kFloats, scale);
  for (size_t j = 0; j < kStride; j += kLanes) {
    auto word = hn::BitCast(kInts, LoadBytes(kWords, codes + 4 * j));
    for (size_t i = kPerWord; i-- > 0;) {
      // The highest field, sign-extended.
      const auto code = hn::ShiftRight<32 - kBits>(word);
      word = hn::ShiftLeft<kBits>(word);
      hn::StoreU(hn::Mul(hn::ConvertTo(kFloats, code), step), kFloats,
                 values + i * kStride + j);
    }
  }
}

// The blocks of a coded array of `n` values, in order.
class BlockReader {
 public:
  HWY_INLINE BlockReader(const CodedSpan& from, size_t n)
      : from_(from), n_(n) {}

  // Block `b`, which is whole.
  HWY_INLINE void Read(size_t b, float* values) {
    const Coding coding = from_.coding;
    if (coding.kind == Coding::kTopK) return ReadTopK(b, values);
    const std::byte* codes = from_.codes + b * CodeBytes(coding, kBlockSize);
    if (coding.kind == Coding::kF32) {
      std::memcpy(values, codes, kBlockSize * sizeof(float));
      return;
    }
    if (coding.kind == Coding::kBf16) return ReadBf16(codes, values);
    const size_t unit = b * kBlockSize / UnitSize(coding);
    const float scale =
        HasScales(coding) ? LoadScale(from_.scales + 2 * unit) : coding.step;
    switch (CodeBits(coding)) {
      case 1:
        return DecodePlanes<1>(0, scale, codes, values);
      case 2:
        return coding.kind == Coding::kLm2
                   ? DecodePlanes<2>(kLm2Small * scale, kLm2Large * scale,
                                     codes, values)
                   : DecodePlanes<2>(0, scale, codes, values);
      case 4:
        return UnpackBlock<4>(scale, codes, values);
      default:
        return UnpackBlock<8>(scale, codes, values);
    }
  }

 private:
  static HWY_INLINE void ReadBf16(const std::byte* codes, float* values) {
    for (size_t k = 0; k < kBlockSize; k += kLanes) {
      const auto half = LoadBytes(kHalves, codes + 2 * k);
      const auto bits = hn::ShiftLeft<16>(hn::PromoteTo(kWords, half));
      hn::StoreU(hn::BitCast(kFloats, bits), kFloats, values + k);
    }
  }
  void ReadTopK(size_t b, float* values) {
    const size_t start = b * kBlockSize / kChunkSize * kChunkSize;
    if (b * kBlockSize == start) {
      kept_ = KeptOf(from_.coding, std::min(kChunkSize, n_ - start));
      next_ = 0;
    }
    const std::byte* codes = from_.codes + CodeBytes(from_.coding, start);
    const float scale = LoadScale(from_.scales + 2 * (start / kChunkSize));
    const size_t begin = b * kBlockSize - start;
    std::memset(values, 0, kBlockSize * sizeof(float));
    for (; next_ < kept_; ++next_) {
      const size_t place = TopKIndex(codes + kept_, next_) - begin;
      if (place >= kBlockSize) break;
      const auto code = static_cast<int8_t>(codes[next_]);
      values[place] = static_cast<float>(code) * scale;
    }
  }

  const CodedSpan from_;
  const size_t n_;
  // Of the chunk that the block is in: how many are kept, how many were read.
  size_t kept_ = 0;
  size_t next_ = 0;
};

template <bool kDifference, bool kMix>
void ApplyBlocks(size_t n, const CodedSpan* theirs, const CodedSpan* mine,
                 float c, float* difference, float* x) {
  BlockReader their_blocks(theirs != nullptr ? *theirs : CodedSpan(), n);
  BlockReader my_blocks(mine != nullptr ? *mine : CodedSpan(), n);
  alignas(64) float t[kBlockSize] = {};
  alignas(64) float m[kBlockSize] = {};
  const auto factor = hn::Set(kFloats, c);
  for (size_t b = 0; b < n / kBlockSize; ++b) {
    if (theirs != nullptr) their_blocks.Read(b, t);
    if (mine != nullptr) my_blocks.Read(b, m);
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

void Apply(const CodedSpan* theirs, const CodedSpan* mine, float c,
           std::span<float> difference, std::span<float> x) {
  const bool mix = theirs != nullptr && mine != nullptr;
  const size_t n = difference.empty() ? x.size() : difference.size();
  if (!difference.empty()) {
    const auto apply = mix ? ApplyBlocks<true, true> : ApplyBlocks<true, false>;
    apply(n, theirs, mine, c, difference.data(), x.data());
  } else if (mix) {
    ApplyBlocks<false, true>(n, theirs, mine, c, nullptr, x.data());
  }
  ApplyFrom(n / kBlockSize * kBlockSize, theirs, mine, c, difference, x);
}

// True in the top bit of every field of `kBits` that is not 10…0.
template <int kBits>
HWY_INLINE WordVector NotLowest(WordVector word) {
  constexpr uint32_t kTop = kBits == 8 ? 0x80808080u : 0x88888888u;
  const auto low = hn::Set(kWords, ~kTop);
  const auto x = hn::Xor(word, hn::Set(kWords, kTop));
  return hn::Or(x, hn::Add(hn::And(x, low), low));
}

bool ValidWithin(Coding coding, size_t n, std::span<const std::byte> codes,
                 float largest) {
  if (coding.kind == Coding::kTopK) return ValidTopK(coding, n, codes);
  const size_t field = HasBlocks(coding) ? CodeBits(coding) : 0;
  if (field == 1 || field == 2) return true;
  constexpr size_t kStep = 4 * kLanes;
  const auto limit = hn::BitCast(kWords, hn::Set(kFloats, largest));
  auto all = hn::Set(kWords, ~0u);
  auto worst = hn::Zero(kWords);
  size_t i = 0;
  for (; i + kStep <= codes.size(); i += kStep) {
    PrefetchAhead(reinterpret_cast<const float*>(codes.data() + i));
    const auto word = LoadBytes(kWords, codes.data() + i);
    if (field == 8) {
      all = hn::And(all, NotLowest<8>(word));
    } else if (field == 4) {
      all = hn::And(all, NotLowest<4>(word));
    } else if (coding.kind == Coding::kF32) {
      const auto bits = hn::And(word, hn::Set(kWords, 0x7fffffffu));
      worst = hn::Max(worst, bits);
    } else {
      const auto high = hn::And(word, hn::Set(kWords, 0x7fff0000u));
      const auto low = hn::And(hn::ShiftLeft<16>(word),  //
                               hn::Set(kWords, 0x7fff0000u));
      worst = hn::Max(worst, hn::Max(high, low));
    }
  }
  const auto top = hn::Set(kWords, field == 8   ? 0x80808080u
                                   : field == 4 ? 0x88888888u
                                                : 0u);
  return hn::AllTrue(kWords, hn::Eq(hn::And(all, top), top)) &&
         hn::AllTrue(kWords, hn::Eq(hn::Max(worst, limit), limit)) &&
         ValidCodes(coding, codes.subspan(i), largest);
}

}  // namespace HWY_NAMESPACE
}  // namespace gossamer
HWY_AFTER_NAMESPACE();

#endif  // GOSSAMER_ALGORITHMS_KERNELS_APPLY_INL_H_
