// The device of the program that runs where there is a GPU.

#include "algorithms/kernels/cuda/calls.h"
#include "algorithms/kernels/cuda/kernels.h"
#include "tests/algorithms/kernels/device_as_host.h"

namespace gossamer {

const Kernels& TestedDevice() {
  return DeviceAsHost(CudaKernels(), CudaCalls());
}

}  // namespace gossamer
