// CUDA's language for a C++ compiler: the threads of a block are fibers of one
// host thread, so that device code runs in a test on any machine.
//
// Included before a .cu file by the compiler's option -include.  Has blocks and
// grids of one dimension, shared memory, barriers, shuffles, votes and atomics.
// A warp's lanes run one after the other until all wait for the same operation;
// lanes or threads that wait for different ones, or that have left, end the
// process with a message, where a GPU would hang or give other values.  Blocks
// run one after the other, so races between blocks are not found; a barrier
// that is missing is found if one of two orders of warps gives other values.

#ifndef GOSSAMER_TESTS_ALGORITHMS_KERNELS_CUDA_FIBERS_H_
#define GOSSAMER_TESTS_ALGORITHMS_KERNELS_CUDA_FIBERS_H_

#include <math.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <functional>
#include <type_traits>

// NOLINTBEGIN: these names are CUDA's.
#define __global__ static
#define __device__
#define __host__
#define __forceinline__ inline
// One block runs at a time, so its shared memory may be static.
#define __shared__ static

struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(16) uint4 {
  uint32_t x, y, z, w;
};
inline float4 make_float4(float x, float y, float z, float w) {
  return {x, y, z, w};
}

namespace gossamer {
struct DeviceStream;
}  // namespace gossamer

namespace fibers {

struct Index {
  uint32_t x;
};
struct Place {
  Index thread, block, threads, blocks;
};
// The place of the fiber that runs.
const Place& Here();

// The operations for which lanes wait.
enum class Wait : uint8_t { kNothing, kBarrier, kShuffle, kVote, kSync };
// Waits until all lanes of `mask` are here; returns the value that lane `from`
// has brought, or with kVote the lanes that have brought something but 0.
uint64_t Meet(Wait what, uint32_t mask, uint64_t value, uint32_t from);
void Barrier();

// Runs a grid to its end; the stream does not matter, as work is done at once.
void Run(gossamer::DeviceStream* stream, size_t blocks, uint32_t threads,
         const std::function<void()>& kernel);

template <typename T>
T Exchange(uint32_t mask, T value, uint32_t from) {
  static_assert(sizeof(T) <= sizeof(uint64_t));
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(value));
  bits = Meet(Wait::kShuffle, mask, bits, from);
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

}  // namespace fibers

#define threadIdx (::fibers::Here().thread)
#define blockIdx (::fibers::Here().block)
#define blockDim (::fibers::Here().threads)
#define gridDim (::fibers::Here().blocks)

template <typename T>
T __shfl_xor_sync(uint32_t mask, T value, uint32_t distance) {
  return fibers::Exchange(mask, value, threadIdx.x % 32 ^ distance);
}
template <typename T>
T __shfl_sync(uint32_t mask, T value, int lane) {
  return fibers::Exchange(mask, value, static_cast<uint32_t>(lane) % 32);
}
inline uint32_t __ballot_sync(uint32_t mask, bool vote) {
  return static_cast<uint32_t>(
      fibers::Meet(fibers::Wait::kVote, mask, vote, 0));
}
inline void __syncwarp(uint32_t mask = 0xffffffffu) {
  fibers::Meet(fibers::Wait::kSync, mask, 0, 0);
}
inline void __syncthreads() { fibers::Barrier(); }

inline uint32_t __popc(uint32_t bits) {
  return static_cast<uint32_t>(std::popcount(bits));
}
inline uint32_t atomicOr(uint32_t* at, uint32_t bits) {
  const uint32_t before = *at;
  *at = before | bits;
  return before;
}
inline uint32_t atomicMax(uint32_t* at, uint32_t value) {
  const uint32_t before = *at;
  *at = std::max(before, value);
  return before;
}
inline uint32_t max(uint32_t a, uint32_t b) { return std::max(a, b); }
inline uint32_t min(uint32_t a, uint32_t b) { return std::min(a, b); }
// NOLINTEND

#endif  // GOSSAMER_TESTS_ALGORITHMS_KERNELS_CUDA_FIBERS_H_
