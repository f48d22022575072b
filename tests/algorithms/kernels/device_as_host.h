// A device's kernels as a table of the host: each call copies its arguments to
// the device, runs there, and copies the results back.
//
// So what is tested of the host's tables is tested of a device's: fibers on any
// machine, CUDA where there is a GPU.  `indices_at_least` has no device form
// and is the reference's.

#ifndef GOSSAMER_TESTS_ALGORITHMS_KERNELS_DEVICE_AS_HOST_H_
#define GOSSAMER_TESTS_ALGORITHMS_KERNELS_DEVICE_AS_HOST_H_

#include "algorithms/kernels/device_calls.h"
#include "algorithms/kernels/device_kernels.h"
#include "algorithms/kernels/kernels.h"

namespace gossamer {

// The table; one device at a time, as functions of a table have no state.
const Kernels& DeviceAsHost(const DeviceKernels& kernels,
                            const DeviceCalls& calls);
// Spans begin that many values, coded arrays that many bytes, behind the
// aligned place at which a device's memory begins.
void SetMisalignment(size_t misalign);

// The same of functions that the host's tables do not have, on a device that
// DeviceAsHost has been asked for.
void NormalizeOnDevice(std::span<const float> change, std::span<float> unit);
void ClipOnDevice(double limit, double n, double c, std::span<float> x);
bool ScalesAreValidOnDevice(size_t n, const CodedSpan& coded);
uint32_t LargestScaleOnDevice(size_t n, const CodedSpan& coded);

// The host's memory as a device's, for kernels that run as fibers.
const DeviceCalls& FiberCalls();

// The device's table that a test program has been built with, as one of the
// host: of fibers, or of CUDA.
const Kernels& TestedDevice();

}  // namespace gossamer

#endif  // GOSSAMER_TESTS_ALGORITHMS_KERNELS_DEVICE_AS_HOST_H_
