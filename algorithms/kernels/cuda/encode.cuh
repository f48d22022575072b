// x − replica → codes, replica updated, in one pass, on a GPU.
//
// A warp takes a block of 128 values, or a bucket of blocks; a block of threads
// takes a chunk of top-k.

#ifndef GOSSAMER_ALGORITHMS_KERNELS_CUDA_ENCODE_CUH_
#define GOSSAMER_ALGORITHMS_KERNELS_CUDA_ENCODE_CUH_

#include <bit>
#include <cstddef>
#include <cstdint>

#include "algorithms/kernels/coded_bytes.h"
#include "algorithms/kernels/cuda/launch.cuh"
#include "algorithms/kernels/values.h"

namespace gossamer::cuda {

// The arguments of a call of `encode`, but for the array's size.
struct EncodeArguments {
  Coding coding;
  const float* x;
  float* replica;  // null: none
  uint64_t key;
  std::byte* scales;
  std::byte* codes;
};

__device__ inline float Innovation(const EncodeArguments& a, size_t i) {
  return a.replica == nullptr ? a.x[i] : a.x[i] - a.replica[i];
}

__global__ void EncodeValues(EncodeArguments a, size_t n) {
  for (size_t i = Thread(); i < n; i += Threads()) {
    const float q = StoreValue(a.coding, Innovation(a, i),
                               a.codes + ValueBytes(a.coding) * i);
    if (a.replica != nullptr) a.replica[i] = a.replica[i] + q;
  }
}

// This lane's part of a block of `size` values; what is beyond is 0.
struct LaneValues {
  uint32_t size;
  float replica[kPerLane];  // as it was, so that it is read once
  float v[kPerLane];        // to be coded
  int code[kPerLane];

  __device__ static uint32_t Place(uint32_t j) { return Lane() + kWarp * j; }
  __device__ bool Has(uint32_t j) const { return Place(j) < size; }
};

__device__ inline LaneValues LoadBlock(const EncodeArguments& a, size_t start,
                                       size_t n) {
  LaneValues block;
  block.size =
      static_cast<uint32_t>(n - start < kBlockSize ? n - start : kBlockSize);
  for (uint32_t j = 0; j < kPerLane; ++j) {
    const size_t i = start + LaneValues::Place(j);
    const bool there = block.Has(j);
    block.replica[j] = there && a.replica != nullptr ? a.replica[i] : 0;
    block.v[j] = there ? a.x[i] : 0;
    // Without a replica it stays as it is: x − 0 is x, and −0 − 0 is −0.
    block.v[j] = block.v[j] - block.replica[j];
    block.code[j] = 0;
  }
  return block;
}

__device__ inline void UpdateReplica(const EncodeArguments& a, size_t start,
                                     const LaneValues& block, float scale) {
  if (a.replica == nullptr) return;
  for (uint32_t j = 0; j < kPerLane; ++j) {
    if (!block.Has(j)) continue;
    a.replica[start + LaneValues::Place(j)] =
        Follow(block.replica[j], block.code[j], scale);
  }
}

// Bit k of a plane's word belongs to value k of 32, and a vote of a warp has
// that order.
__device__ inline void PackPlanes(Coding coding, const LaneValues& block,
                                  std::byte* to) {
  const uint32_t words = (block.size + 31) / 32;
  const auto planes = static_cast<uint32_t>(CodeBits(coding));
  uint32_t mine = 0;
  for (uint32_t plane = 0; plane < planes; ++plane) {
    for (uint32_t j = 0; j < kPerLane; ++j) {
      const uint32_t word = __ballot_sync(
          kAllLanes, block.Has(j) && PlaneBit(coding, plane, block.code[j]));
      if (j < words && Lane() == plane * words + j) mine = word;
    }
  }
  if (Lane() < planes * words) StoreAs(mine, to + 4 * Lane());
}

__device__ inline void PackWords(Coding coding, const LaneValues& block,
                                 std::byte* to) {
  __shared__ uint32_t shared[kWarps][kWarp];
  const auto bits = static_cast<uint32_t>(CodeBits(coding));
  const auto words = static_cast<uint32_t>(BlockWords(bits, block.size));
  uint32_t word = 0;
  if (block.size == kBlockSize) {
    // A lane's values lie in one word: its own, or that of two lanes.
    for (uint32_t j = 0; j < kPerLane; ++j) {
      const CodeField field = CodeFieldOf(bits, words, LaneValues::Place(j));
      word |= FieldBits(bits, block.code[j]) << field.shift;
    }
    if (words < kWarp) word |= __shfl_xor_sync(kAllLanes, word, 16u);
  } else {
    uint32_t* const packed = shared[threadIdx.x / kWarp];
    packed[Lane()] = 0;
    __syncwarp();
    for (uint32_t j = 0; j < kPerLane; ++j) {
      if (!block.Has(j)) continue;
      const CodeField field = CodeFieldOf(bits, words, LaneValues::Place(j));
      atomicOr(&packed[field.word], FieldBits(bits, block.code[j])
                                        << field.shift);
    }
    __syncwarp();
    word = packed[Lane()];
    __syncwarp();
  }
  if (Lane() < words) StoreAs(word, to + 4 * Lane());
}

__device__ inline float RoundToNearest(LaneValues& block, float levels) {
  float absmax = 0;
  for (const float v : block.v) absmax = fmaxf(absmax, fabsf(v));
  const float scale = BlockScale(MaxOfLanes(absmax), levels);
  const float inverse = InverseOf(scale);
  for (uint32_t j = 0; j < kPerLane; ++j) {
    block.code[j] = NearestCode(block.v[j], inverse, levels);
  }
  return scale;
}

__device__ inline float RoundToLevels(LaneValues& block, bool two_magnitudes) {
  float magnitude[kPerLane];
  for (uint32_t j = 0; j < kPerLane; ++j) {
    magnitude[j] = fabsf(Clamped(block.v[j]));
  }
  float threshold = 0;
  if (two_magnitudes) {
    float sum = 0;
    for (const float m : magnitude) AddToLanes(m, sum);
    threshold = FoldLanes(sum) * kLm2Threshold / static_cast<float>(block.size);
  }
  float sum = 0, squares = 0;
  for (uint32_t j = 0; j < kPerLane; ++j) {
    const float c = LevelOf(two_magnitudes, magnitude[j], threshold);
    AddToLanes(magnitude[j] * c, sum);
    // These are whole numbers: their order does not matter.
    if (block.Has(j)) squares += c * c;
  }
  const float scale = NearestScale(FoldLanes(sum) / SumOfLanes(squares),
                                   two_magnitudes ? kLm2Large : 1);
  for (uint32_t j = 0; j < kPerLane; ++j) {
    block.code[j] = LevelCode(
        block.v[j], LevelOf(two_magnitudes, magnitude[j], threshold), scale);
  }
  return scale;
}

template <Coding::Kind kKind>
__global__ void EncodeBlocks(EncodeArguments a, size_t n) {
  a.coding.kind = kKind;  // known to the compiler from here on
  for (size_t b = Warp(); b * kBlockSize < n; b += WarpsInAll()) {
    const size_t start = b * kBlockSize;
    LaneValues block = LoadBlock(a, start, n);
    float scale = a.coding.step;
    if constexpr (kKind == Coding::kUnit) {
      for (uint32_t j = 0; j < kPerLane; ++j) {
        block.code[j] = SignCode(block.v[j]);
      }
    } else if constexpr (kKind == Coding::kLm2 || kKind == Coding::kSign) {
      scale = RoundToLevels(block, kKind == Coding::kLm2);
    } else {
      scale = RoundToNearest(block, static_cast<float>(LargestCode(a.coding)));
    }
    std::byte* const to = a.codes + CodeBytes(a.coding, start);
    if constexpr (kKind == Coding::kInt8 || kKind == Coding::kInt4) {
      PackWords(a.coding, block, to);
    } else {
      PackPlanes(a.coding, block, to);
    }
    if (HasScales(a.coding) && Lane() == 0) StoreScale(scale, a.scales + 2 * b);
    UpdateReplica(a, start, block, scale);
  }
}

// A warp reads a bucket once for its scale, and again, from a cache, for its
// codes.
__global__ void EncodeBuckets(EncodeArguments a, size_t n) {
  const size_t bucket = a.coding.bucket;
  const auto levels = static_cast<float>(a.coding.levels);
  for (size_t b = Warp(); b * bucket < n; b += WarpsInAll()) {
    const size_t first = b * bucket;
    const size_t end = first + bucket < n ? first + bucket : n;
    float absmax = 0;
    double squares = 0;
    for (size_t at = first; at < end; at += kWarp) {
      const size_t i = at + Lane();
      const float value = i < end ? Clamped(Innovation(a, i)) : 0;
      absmax = fmaxf(absmax, fabsf(value));
      AddToLanes(static_cast<double>(value) * value, squares);
    }
    const float norm = a.coding.norm == Coding::kMax
                           ? MaxOfLanes(absmax)
                           : static_cast<float>(sqrt(FoldLanes(squares)));
    const float scale = BlockScale(norm, levels);
    const float inverse = InverseOf(scale);
    if (Lane() == 0) StoreScale(scale, a.scales + 2 * b);
    for (size_t start = first; start < end; start += kBlockSize) {
      LaneValues block = LoadBlock(a, start, end);
      for (uint32_t j = 0; j < kPerLane; ++j) {
        block.code[j] =
            RandomCode(block.v[j], inverse, levels, a.key,
                       static_cast<uint32_t>(start + LaneValues::Place(j)));
      }
      std::byte* const to = a.codes + CodeBytes(a.coding, start);
      CodeBits(a.coding) == 2 ? PackPlanes(a.coding, block, to)
                              : PackWords(a.coding, block, to);
      UpdateReplica(a, start, block, scale);
    }
  }
}

// Top-k of a chunk by all threads of a block: value k is that of thread k mod
// kThreads.
constexpr uint32_t kPerThread = kChunkSize / kThreads;

// The sum over the block, for all threads.
__device__ inline uint32_t SumOfBlock(uint32_t v, uint32_t* shared) {
  v = SumOfLanes(v);
  if (Lane() == 0) shared[threadIdx.x / kWarp] = v;
  __syncthreads();
  uint32_t sum = 0;
  for (uint32_t w = 0; w < kWarps; ++w) sum += shared[w];
  __syncthreads();
  return sum;
}

// Indices of the `kept` largest of a chunk, of equal ones the first, rising:
// `indices` gets them.  Returns the magnitude of the largest.  Bits of floats
// that are not negative order as they do.
__device__ inline float ChooseLargest(const EncodeArguments& a, size_t start,
                                      uint32_t n, uint32_t kept,
                                      uint16_t* indices) {
  constexpr uint32_t kRows = kPerThread * kWarps;
  __shared__ uint32_t partial[kWarps], above[kRows], equal[kRows];
  // One more than the bits of a value that is there, so that none is 0.
  uint32_t keys[kPerThread], largest = 0;
  for (uint32_t j = 0; j < kPerThread; ++j) {
    const uint32_t k = threadIdx.x + kThreads * j;
    keys[j] = k < n ? 1 + std::bit_cast<uint32_t>(
                              fabsf(Clamped(Innovation(a, start + k))))
                    : 0;
    largest = max(largest, keys[j]);
  }
  for (uint32_t d = kWarp / 2; d > 0; d /= 2) {
    largest = max(largest, __shfl_xor_sync(kAllLanes, largest, d));
  }
  if (Lane() == 0) partial[threadIdx.x / kWarp] = largest;
  __syncthreads();
  for (uint32_t w = 0; w < kWarps; ++w) largest = max(largest, partial[w]);
  __syncthreads();
  // The largest key that at least `kept` values reach, by halving.
  uint32_t low = 1, high = largest;
  while (low < high) {
    const uint32_t middle = low + (high - low + 1) / 2;
    uint32_t count = 0;
    for (const uint32_t key : keys) count += key >= middle;
    if (SumOfBlock(count, partial) >= kept) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  uint32_t larger = 0;
  for (const uint32_t key : keys) larger += key > low;
  const uint32_t ties = kept - SumOfBlock(larger, partial);
  // Row j·kWarps + w has the 32 values of warp w's lanes with number j: rows,
  // and lanes in them, are in the order of indices.
  for (uint32_t j = 0; j < kPerThread; ++j) {
    const uint32_t row = j * kWarps + threadIdx.x / kWarp;
    const uint32_t more = __ballot_sync(kAllLanes, keys[j] > low);
    const uint32_t same = __ballot_sync(kAllLanes, keys[j] == low);
    if (Lane() == 0) {
      above[row] = __popc(more);
      equal[row] = __popc(same);
    }
  }
  __syncthreads();
  // A thread counts what is before its row.
  uint32_t more_before = 0, same_before = 0;
  for (uint32_t r = 0; r < threadIdx.x && r < kRows; ++r) {
    more_before += above[r];
    same_before += equal[r];
  }
  __syncthreads();
  if (threadIdx.x < kRows) {
    above[threadIdx.x] = more_before;
    equal[threadIdx.x] = same_before;
  }
  __syncthreads();
  for (uint32_t j = 0; j < kPerThread; ++j) {
    const uint32_t row = j * kWarps + threadIdx.x / kWarp;
    const uint32_t before = (1u << Lane()) - 1;
    const uint32_t more =
        above[row] + __popc(__ballot_sync(kAllLanes, keys[j] > low) & before);
    const uint32_t same =
        equal[row] + __popc(__ballot_sync(kAllLanes, keys[j] == low) & before);
    if (keys[j] > low || (keys[j] == low && same < ties)) {
      indices[more + min(same, ties)] =
          static_cast<uint16_t>(threadIdx.x + kThreads * j);
    }
  }
  __syncthreads();
  return std::bit_cast<float>(largest - 1);
}

__global__ void EncodeChunks(EncodeArguments a, size_t n) {
  __shared__ uint16_t indices[kChunkSize];
  for (size_t chunk = blockIdx.x; chunk * kChunkSize < n; chunk += gridDim.x) {
    const size_t start = chunk * kChunkSize;
    const auto size =
        static_cast<uint32_t>(n - start < kChunkSize ? n - start : kChunkSize);
    const auto kept = static_cast<uint32_t>(KeptOf(a.coding, size));
    std::byte* const codes = a.codes + CodeBytes(a.coding, start);
    const float scale =
        BlockScale(ChooseLargest(a, start, size, kept, indices), 127);
    const float inverse = InverseOf(scale);
    if (threadIdx.x == 0) StoreScale(scale, a.scales + 2 * chunk);
    for (uint32_t i = threadIdx.x; i < kept; i += kThreads) {
      const size_t at = start + indices[i];
      const int code = NearestCode(Clamped(Innovation(a, at)), inverse, 127);
      if (a.replica != nullptr) {
        a.replica[at] = Follow(a.replica[at], code, scale);
      }
      codes[i] = static_cast<std::byte>(code);
    }
    // Two indices share a byte, so one thread writes both.
    for (uint32_t i = 2 * threadIdx.x; i < kept; i += 2 * kThreads) {
      PutTopKIndex(indices[i], i, codes + kept);
      if (i + 1 < kept) PutTopKIndex(indices[i + 1], i + 1, codes + kept);
    }
    __syncthreads();
  }
}

inline void Encode(DeviceStream* stream, Coding coding,
                   DeviceSpan<const float> x, DeviceSpan<float> replica,
                   uint64_t key, std::byte* scales, std::byte* codes) {
  const EncodeArguments a = {coding, x.data, replica.data, key, scales, codes};
  const size_t n = x.size, unit = UnitSize(coding);
  const size_t warps = (n + unit - 1) / unit * kWarp;
  switch (coding.kind) {
    case Coding::kF32:
    case Coding::kBf16:
      return Launch(EncodeValues, stream, n, a, n);
    case Coding::kUnit:
      return Launch(EncodeBlocks<Coding::kUnit>, stream, warps, a, n);
    case Coding::kInt8:
      return Launch(EncodeBlocks<Coding::kInt8>, stream, warps, a, n);
    case Coding::kInt4:
      return Launch(EncodeBlocks<Coding::kInt4>, stream, warps, a, n);
    case Coding::kLm2:
      return Launch(EncodeBlocks<Coding::kLm2>, stream, warps, a, n);
    case Coding::kSign:
      return Launch(EncodeBlocks<Coding::kSign>, stream, warps, a, n);
    case Coding::kTopK:
      return Launch(EncodeChunks, stream, (n + unit - 1) / unit * kThreads, a,
                    n);
    case Coding::kQsgd:
      return Launch(EncodeBuckets, stream, warps, a, n);
  }
}

}  // namespace gossamer::cuda

#endif  // GOSSAMER_ALGORITHMS_KERNELS_CUDA_ENCODE_CUH_
