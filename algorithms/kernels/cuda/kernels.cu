// The table of device_kernels.h, by CUDA.

#include "algorithms/kernels/cuda/apply.cuh"
#include "algorithms/kernels/cuda/elementwise.cuh"
#include "algorithms/kernels/cuda/encode.cuh"
#include "algorithms/kernels/cuda/kernels.h"

namespace gossamer {

const DeviceKernels& CudaKernels() {
#if defined(__CUDACC__)
  constexpr const char* kName = "CUDA";
#else
  constexpr const char* kName = "fibers";
#endif
  static constexpr DeviceKernels table = {
      .name = kName,
      .add = cuda::Add,
      .scale = cuda::Scale,
      .axpy = cuda::Axpy,
      .compensated_axpy = cuda::CompensatedAxpy,
      .ema = cuda::Ema,
      .optimistic = cuda::Optimistic,
      .adam = cuda::Adam,
      .oadam = cuda::OAdam,
      .clip = cuda::Clip,
      .all_within = cuda::AllWithin,
      .squared_norm = cuda::SquaredNorm,
      .sketch = cuda::Sketch,
      .transposed_product = cuda::TransposedProduct,
      .product = cuda::Product,
      .add_outer = cuda::AddOuter,
      .normalize = cuda::Normalize,
      .argmax_abs = cuda::ArgmaxAbs,
      .encode = cuda::Encode,
      .apply = cuda::Apply,
      .valid_within = cuda::ValidWithin,
      .valid_scales = cuda::ValidScales,
      .largest_scale = cuda::LargestScale,
  };
  return table;
}

}  // namespace gossamer
