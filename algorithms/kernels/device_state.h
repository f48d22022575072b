// State in a device's memory, for checkpoints.
//
// This header knows nothing of whose state it is.

#ifndef GOSSAMER_ALGORITHMS_KERNELS_DEVICE_STATE_H_
#define GOSSAMER_ALGORITHMS_KERNELS_DEVICE_STATE_H_

#include <string_view>
#include <vector>

#include "algorithms/base/state.h"
#include "algorithms/kernels/device_queue.h"

namespace gossamer {

// Visits values in the memory of the queue's device.  Of a device other than
// the host the visitor sees a copy, which goes back if it loads.  The call
// blocks.
inline void VisitFloats(StateVisitor& visitor, std::string_view name,
                        const DeviceQueue& queue, DeviceSpan<float> values) {
  if (queue.on_host()) return visitor.Floats(name, HostSpan(values));
  std::vector<float> copy = queue.ToHost(values);
  visitor.Floats(name, copy);
  if (visitor.loads()) queue.Upload(copy, values);
}

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_KERNELS_DEVICE_STATE_H_
