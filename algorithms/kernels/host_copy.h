// Values of a device for host code that reads them: pictures, scores, files.
//
// On the host they are the values themselves.  This header knows nothing of who
// reads.

#ifndef GOSSAMER_ALGORITHMS_KERNELS_HOST_COPY_H_
#define GOSSAMER_ALGORITHMS_KERNELS_HOST_COPY_H_

#include <span>
#include <vector>

#include "algorithms/kernels/device_queue.h"

namespace gossamer {

// The values outlive it where they are the host's.
template <typename T>
class HostCopy {
 public:
  // Blocks until a device's values have come.
  HostCopy(const DeviceQueue& queue, DeviceSpan<const T> values) {
    if (queue.on_host()) {
      span_ = HostSpan(values);
      return;
    }
    copy_ = queue.ToHost(values);
    span_ = copy_;
  }
  HostCopy(const HostCopy&) = delete;
  HostCopy& operator=(const HostCopy&) = delete;
  std::span<const T> span() const { return span_; }

 private:
  std::vector<T> copy_;
  std::span<const T> span_;
};

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_KERNELS_HOST_COPY_H_
