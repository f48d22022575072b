// The fibers keep CUDA's rules for warps and barriers, and end what breaks
// them.

#include "tests/algorithms/kernels/cuda_fibers.h"

#include <vector>

#include "gtest/gtest.h"

namespace gossamer {
namespace cuda_fibers_test {

constexpr uint32_t kAll = 0xffffffffu;

TEST(CudaFibersTest, EveryThreadRunsOnce) {
  std::vector<int> runs(3 * 40);
  fibers::Run(nullptr, 3, 40, [&] {
    EXPECT_EQ(gridDim.x, 3u);
    ++runs[blockIdx.x * blockDim.x + threadIdx.x];
  });
  EXPECT_EQ(runs, std::vector<int>(runs.size(), 1));
}

TEST(CudaFibersTest, LanesExchangeWhatTheyHaveAtTheSameCall) {
  fibers::Run(nullptr, 2, 64, [] {
    const uint32_t lane = threadIdx.x % 32;
    double value = threadIdx.x;
    for (int turn = 0; turn < 3; ++turn) {
      value = __shfl_xor_sync(kAll, value + 1, 1u);
    }
    EXPECT_EQ(value, (threadIdx.x ^ 1) + 3.0);
    EXPECT_EQ(__shfl_sync(kAll, lane, 7), 7u);
    EXPECT_EQ(__ballot_sync(kAll, lane % 2 == 1), 0xaaaaaaaau);
    const uint32_t half = lane < 16 ? 0x0000ffffu : 0xffff0000u;
    EXPECT_EQ(__ballot_sync(half, true), half);
  });
}

TEST(CudaFibersTest, BarriersSeparateWhatThreadsWriteAndRead) {
  fibers::Run(nullptr, 2, 96, [] {
    __shared__ uint32_t shared[96];
    for (uint32_t turn = 0; turn < 3; ++turn) {
      shared[threadIdx.x] = threadIdx.x + turn;
      __syncthreads();
      EXPECT_EQ(shared[95 - threadIdx.x], 95 - threadIdx.x + turn);
      __syncthreads();
    }
  });
}

using CudaFibersDeathTest = testing::Test;

TEST(CudaFibersDeathTest, DivergenceEndsTheProcess) {
  EXPECT_DEATH(fibers::Run(nullptr, 1, 64,
                           [] {
                             if (threadIdx.x < 40) __syncthreads();
                           }),
               "waits at a barrier that other threads do not reach");
  EXPECT_DEATH(fibers::Run(nullptr, 1, 32,
                           [] {
                             if (threadIdx.x != 3) __ballot_sync(kAll, true);
                           }),
               "waits for lanes of its warp that are not there");
  EXPECT_DEATH(fibers::Run(nullptr, 1, 32,
                           [] {
                             threadIdx.x == 3 ? __syncwarp()
                                              : void(__ballot_sync(kAll, true));
                           }),
               "waits for lanes of its warp that are not there");
  EXPECT_DEATH(fibers::Run(nullptr, 1, 32,
                           [] {
                             if (threadIdx.x < 16) {
                               __shfl_xor_sync(0x0000ffffu, 1, 16u);
                             }
                           }),
               "takes a value from a lane that is not in its mask");
}

}  // namespace cuda_fibers_test
}  // namespace gossamer
