// The common part of all kernels of this folder: launches, and sums across the
// 32 lanes of a warp.
//
// In the tests the same text is compiled by a C++ compiler, after a header in
// which CUDA's threads are fibers (tests/algorithms/kernels/cuda_fibers.h).  So
// a kernel uses what that header has: blocks in one dimension, shared memory,
// barriers, shuffles, votes and atomics.

#ifndef GOSSAMER_ALGORITHMS_KERNELS_CUDA_LAUNCH_CUH_
#define GOSSAMER_ALGORITHMS_KERNELS_CUDA_LAUNCH_CUH_

#if defined(__CUDACC__)
#include <cuda_runtime.h>
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "algorithms/kernels/device_kernels.h"

namespace gossamer::cuda {

constexpr uint32_t kWarp = 32;
constexpr uint32_t kThreads = 256;
constexpr uint32_t kWarps = kThreads / kWarp;
constexpr uint32_t kAllLanes = 0xffffffffu;
// Beyond this many blocks a kernel's threads take several turns each: enough to
// fill any GPU several times over.
constexpr size_t kMaxBlocks = 4096;

// Enqueues `kernel` with as many threads of `threads` a block as there are
// items of work, or kMaxBlocks blocks; nothing if there is no work.
template <typename... P>
void Launch(void (*kernel)(P...), DeviceStream* stream, size_t threads_of_work,
            std::type_identity_t<P>... arguments) {
  if (threads_of_work == 0) return;
  const size_t blocks =
      std::min(kMaxBlocks, (threads_of_work + kThreads - 1) / kThreads);
#if defined(__CUDACC__)
  kernel<<<static_cast<uint32_t>(blocks), kThreads, 0,
           reinterpret_cast<cudaStream_t>(stream)>>>(arguments...);
#else
  fibers::Run(stream, blocks, kThreads, [&] { kernel(arguments...); });
#endif
}

// The number of this thread among all, and how many there are: item i, i +
// Threads(), … are this thread's.
__device__ inline size_t Thread() {
  return size_t{blockIdx.x} * blockDim.x + threadIdx.x;
}
__device__ inline size_t Threads() { return size_t{gridDim.x} * blockDim.x; }
__device__ inline uint32_t Lane() { return threadIdx.x % kWarp; }
// The same of warps, for items that a whole warp takes.
__device__ inline size_t Warp() { return Thread() / kWarp; }
__device__ inline size_t WarpsInAll() { return Threads() / kWarp; }

// A block of 128 values in a warp: value k is that of lane k mod 32, its
// number k / 32.  Loads and stores of a warp are then of neighbouring values,
// whatever their alignment, and lie as codes lie in words and planes.
constexpr uint32_t kPerLane = kBlockSize / kWarp;

__device__ inline float MaxOfLanes(float v) {
  for (uint32_t d = kWarp / 2; d > 0; d /= 2) {
    v = fmaxf(v, __shfl_xor_sync(kAllLanes, v, d));
  }
  return v;
}

template <typename T>
__device__ T SumOfLanes(T v) {
  for (uint32_t d = kWarp / 2; d > 0; d /= 2) {
    v += __shfl_xor_sync(kAllLanes, v, d);
  }
  return v;
}

// Adds the values of 32 neighbouring places to 16 partial sums in order of
// place: lanes i and i + 16 have those of sum i, which is right in lanes below
// 16.
template <typename T>
__device__ void AddToLanes(T value, T& sum) {
  const T upper = __shfl_xor_sync(kAllLanes, value, 16u);
  sum += value;
  sum += upper;
}
// The 16 pairwise, halves first (AddLanes, FinishSquaredNorm); for all lanes.
template <typename T>
__device__ T FoldLanes(T sum) {
  for (uint32_t d = 8; d > 0; d /= 2) {
    sum += __shfl_xor_sync(kAllLanes, sum, d);
  }
  return __shfl_sync(kAllLanes, sum, 0);
}

}  // namespace gossamer::cuda

#endif  // GOSSAMER_ALGORITHMS_KERNELS_CUDA_LAUNCH_CUH_
