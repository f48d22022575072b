// The table of device kernels that this folder's sources make: by nvcc for
// GPUs, by a C++ compiler as fibers for the tests.

#ifndef GOSSAMER_ALGORITHMS_KERNELS_CUDA_KERNELS_H_
#define GOSSAMER_ALGORITHMS_KERNELS_CUDA_KERNELS_H_

#include "algorithms/kernels/device_kernels.h"

namespace gossamer {

const DeviceKernels& CudaKernels();

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_KERNELS_CUDA_KERNELS_H_
