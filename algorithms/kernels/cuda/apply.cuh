// theirs − mine → D and x in one pass, and the check of foreign codes, on a
// GPU.

#ifndef GOSSAMER_ALGORITHMS_KERNELS_CUDA_APPLY_CUH_
#define GOSSAMER_ALGORITHMS_KERNELS_CUDA_APPLY_CUH_

#include <cstddef>
#include <cstdint>

#include "algorithms/kernels/coded_bytes.h"
#include "algorithms/kernels/cuda/launch.cuh"
#include "algorithms/kernels/values.h"

namespace gossamer::cuda {

// A side of an exchange; `given` is false for a skip, which counts as 0.
struct Side {
  CodedSpan coded;
  bool given;
};

// This lane's values of the block from `start` on, of n.
__device__ inline void DecodeBlock(const Side& side, size_t start, size_t n,
                                   float (&values)[kPerLane]) {
  for (float& value : values) value = 0;
  if (!side.given) return;
  const CodedSpan& from = side.coded;
  const auto bits = static_cast<uint32_t>(CodeBits(from.coding));
  const bool has_words =
      HasBlocks(from.coding) && from.coding.kind != Coding::kTopK && bits > 2;
  if (has_words && n - start >= kBlockSize) {
    // All of a lane's values lie in one word.
    const auto words = static_cast<uint32_t>(BlockWords(bits, kBlockSize));
    const auto word = LoadAs<uint32_t>(
        from.codes + CodeBytes(from.coding, start) + 4 * (Lane() % words));
    const float scale = ScaleOf(from, start);
    for (uint32_t j = 0; j < kPerLane; ++j) {
      const CodeField field = CodeFieldOf(bits, words, Lane() + kWarp * j);
      values[j] =
          static_cast<float>(CodeOfField(bits, word >> field.shift)) * scale;
    }
    return;
  }
  for (uint32_t j = 0; j < kPerLane; ++j) {
    const size_t i = start + Lane() + kWarp * j;
    if (i < n) values[j] = DecodeValue(from, i, n);
  }
}

// kKind: the kind of both sides, known to the compiler; -1: of each its own.
template <int kKind>
__global__ void ApplyBlocks(Side theirs, Side mine, float c, size_t n,
                            float* difference, float* x) {
  if constexpr (kKind >= 0) {
    theirs.coded.coding.kind = static_cast<Coding::Kind>(kKind);
    mine.coded.coding.kind = static_cast<Coding::Kind>(kKind);
  }
  for (size_t b = Warp(); b * kBlockSize < n; b += WarpsInAll()) {
    const size_t start = b * kBlockSize;
    // All is asked for before the first of it is needed: the compiler cannot
    // know that no store changes what a later load reads.
    float old_difference[kPerLane], old_x[kPerLane];
    for (uint32_t j = 0; j < kPerLane; ++j) {
      const size_t i = start + Lane() + kWarp * j;
      old_difference[j] = difference != nullptr && i < n ? difference[i] : 0;
      old_x[j] = x != nullptr && i < n ? x[i] : 0;
    }
    float their_values[kPerLane], my_values[kPerLane];
    DecodeBlock(theirs, start, n, their_values);
    DecodeBlock(mine, start, n, my_values);
    for (uint32_t j = 0; j < kPerLane; ++j) {
      const size_t i = start + Lane() + kWarp * j;
      if (i >= n) continue;
      ApplyValue(their_values[j], my_values[j], c,
                 difference == nullptr ? nullptr : &old_difference[j],
                 x == nullptr ? nullptr : &old_x[j]);
      if (difference != nullptr) difference[i] = old_difference[j];
      if (x != nullptr) x[i] = old_x[j];
    }
  }
}

inline void Apply(DeviceStream* stream, const CodedSpan* theirs,
                  const CodedSpan* mine, float c, DeviceSpan<float> difference,
                  DeviceSpan<float> x) {
  const bool both = theirs != nullptr && mine != nullptr;
  if (difference.empty() && !both) return;
  const size_t n = difference.empty() ? x.size : difference.size;
  const auto side = [](const CodedSpan* given) {
    return given != nullptr ? Side{*given, true} : Side{{}, false};
  };
  const auto launch = [&](auto* kernel) {
    Launch(kernel, stream, (n + kBlockSize - 1) / kBlockSize * kWarp,
           side(theirs), side(mine), c, n,
           difference.empty() ? nullptr : difference.data,
           both ? x.data : nullptr);
  };
  const Coding::Kind kind = theirs != nullptr ? theirs->coding.kind
                            : mine != nullptr ? mine->coding.kind
                                              : Coding::kF32;
  if (both && mine->coding.kind != kind) return launch(ApplyBlocks<-1>);
  switch (kind) {
    case Coding::kInt8:
      return launch(ApplyBlocks<Coding::kInt8>);
    case Coding::kInt4:
      return launch(ApplyBlocks<Coding::kInt4>);
    case Coding::kLm2:
      return launch(ApplyBlocks<Coding::kLm2>);
    case Coding::kUnit:
      return launch(ApplyBlocks<Coding::kUnit>);
    case Coding::kSign:
      return launch(ApplyBlocks<Coding::kSign>);
    case Coding::kBf16:
      return launch(ApplyBlocks<Coding::kBf16>);
    case Coding::kF32:
      return launch(ApplyBlocks<Coding::kF32>);
    default:
      return launch(ApplyBlocks<-1>);
  }
}

__global__ void FindInvalidCodes(Coding coding, const std::byte* codes,
                                 size_t n, float largest, uint32_t* invalid) {
  bool good = true;
  if (coding.kind == Coding::kTopK) {
    const size_t chunks = (n + kChunkSize - 1) / kChunkSize;
    for (size_t i = Thread(); i < chunks * coding.kept; i += Threads()) {
      const size_t start = i / coding.kept * kChunkSize, at = i % coding.kept;
      const size_t size = n - start < kChunkSize ? n - start : kChunkSize;
      const size_t kept = KeptOf(coding, size);
      good &= at >= kept ||
              TopKCodeIsValid(codes + CodeBytes(coding, start), at, kept, size);
    }
  } else {
    const size_t bytes = ValueBytes(coding);
    for (size_t i = Thread(); i < n; i += Threads()) {
      good &= CodeIsValid(coding, codes + bytes * i, largest);
    }
  }
  // Threads that write at once write the same.
  if (!good) *invalid = 1;
}

// The same of codes that are packed into words, four of which are read at once
// where they are aligned.
__global__ void FindInvalidWords(uint32_t bits, const std::byte* codes,
                                 size_t words, uint32_t* invalid) {
  const bool aligned = reinterpret_cast<uintptr_t>(codes) % sizeof(uint4) == 0;
  const size_t fours = aligned ? words / 4 : 0;
  bool good = true;
  for (size_t i = Thread(); i < fours; i += Threads()) {
    const uint4 w = reinterpret_cast<const uint4*>(codes)[i];
    good &= WordIsValid(bits, w.x) && WordIsValid(bits, w.y) &&
            WordIsValid(bits, w.z) && WordIsValid(bits, w.w);
  }
  for (size_t i = 4 * fours + Thread(); i < words; i += Threads()) {
    good &= WordIsValid(bits, LoadAs<uint32_t>(codes + 4 * i));
  }
  if (!good) *invalid = 1;
}
inline void ValidWithin(DeviceStream* stream, Coding coding, size_t n,
                        const std::byte* codes, float largest,
                        uint32_t* invalid) {
  if (!HasBlocks(coding) || coding.kind == Coding::kTopK) {
    return Launch(FindInvalidCodes, stream, (n + 3) / 4, coding, codes, n,
                  largest, invalid);
  }
  // Every bit of a plane is a code.
  const auto bits = static_cast<uint32_t>(CodeBits(coding));
  if (bits <= 2) return;
  const size_t words = CodeBytes(coding, n) / 4;
  Launch(FindInvalidWords, stream, words / 4 + 4, bits, codes, words, invalid);
}

__global__ void FindInvalidScales(CodedSpan coded, size_t n,
                                  uint32_t* invalid) {
  const size_t count = ScaleBytes(coded.coding, n) / 2;
  bool good = Thread() != 0 || PaddingIsZero(coded.coding, n, coded.codes);
  for (size_t i = Thread(); i < count; i += Threads()) {
    good &= ScaleIsValid(coded.coding, coded.scales + 2 * i);
  }
  if (!good) *invalid = 1;
}
inline void ValidScales(DeviceStream* stream, size_t n, const CodedSpan& coded,
                        uint32_t* invalid) {
  Launch(FindInvalidScales, stream, ScaleBytes(coded.coding, n) / 2 + 1, coded,
         n, invalid);
}

__global__ void FindLargestScale(const std::byte* scales, size_t count,
                                 uint32_t* bits) {
  uint32_t largest = 0;  // they are not negative
  for (size_t i = Thread(); i < count; i += Threads()) {
    largest = max(largest, uint32_t{LoadAs<uint16_t>(scales + 2 * i)});
  }
  atomicMax(bits, largest);
}
inline void LargestScale(DeviceStream* stream, size_t n, const CodedSpan& coded,
                         uint32_t* bits) {
  const size_t count = ScaleBytes(coded.coding, n) / 2;
  Launch(FindLargestScale, stream, count, coded.scales, count, bits);
}

}  // namespace gossamer::cuda

#endif  // GOSSAMER_ALGORITHMS_KERNELS_CUDA_APPLY_CUH_
