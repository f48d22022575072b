// The host as a device: the tables of device_kernels.h and device_calls.h on
// its own memory, with streams that do their work at once.
//
// A stream of the host is a table of kernels, so that functions of one table
// serve every instruction set.  This header knows nothing of other devices.

#ifndef GOSSAMER_ALGORITHMS_KERNELS_HOST_STREAM_H_
#define GOSSAMER_ALGORITHMS_KERNELS_HOST_STREAM_H_

#include "algorithms/kernels/device_calls.h"
#include "algorithms/kernels/device_kernels.h"
#include "algorithms/kernels/kernels.h"

namespace gossamer {

// The stream on which `table` does the work.
DeviceStream* HostStream(const Kernels& table);

const DeviceKernels& HostDeviceKernels();
// Memory and copies; there are no devices to count.  Events are null, and done
// once they are recorded.
const DeviceCalls& HostCalls();

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_KERNELS_HOST_STREAM_H_
