// The host as a device: the table of device_kernels.h on its own memory, with
// streams that do their work at once.
//
// A stream of the host is a table of kernels, so that functions of one table
// serve every instruction set.  This header knows nothing of other devices.

#ifndef GOSSAMER_ALGORITHMS_KERNELS_HOST_STREAM_H_
#define GOSSAMER_ALGORITHMS_KERNELS_HOST_STREAM_H_

#include "algorithms/kernels/device_kernels.h"
#include "algorithms/kernels/kernels.h"

namespace gossamer {

// The stream on which `table` does the work.
DeviceStream* HostStream(const Kernels& table);

const DeviceKernels& HostDeviceKernels();

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_KERNELS_HOST_STREAM_H_
