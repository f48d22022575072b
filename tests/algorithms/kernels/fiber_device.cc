// The device of the tests that run on any machine.

#include "algorithms/kernels/cuda/kernels.h"
#include "tests/algorithms/kernels/device_as_host.h"

namespace gossamer {

const Kernels& TestedDevice() {
  return DeviceAsHost(CudaKernels(), FiberCalls());
}

}  // namespace gossamer
