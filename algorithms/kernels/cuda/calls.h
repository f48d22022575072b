// CUDA's runtime as the table of device_calls.h.

#ifndef GOSSAMER_ALGORITHMS_KERNELS_CUDA_CALLS_H_
#define GOSSAMER_ALGORITHMS_KERNELS_CUDA_CALLS_H_

#include "algorithms/kernels/device_calls.h"

namespace gossamer {

const DeviceCalls& CudaCalls();

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_KERNELS_CUDA_CALLS_H_
