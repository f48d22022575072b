// torch's work in the order of a device's queue, and torch's tensors on the
// queue's memory.
//
// The only place that knows both torch's streams and DeviceQueue.  Everything
// of CUDA goes through torch's own tables, so that programs are linked with its
// CPU half alone.  Includes no torch; at::Tensor is only named.

#ifndef GOSSAMER_GAN_MODELS_TORCH_QUEUE_H_
#define GOSSAMER_GAN_MODELS_TORCH_QUEUE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "algorithms/kernels/device_queue.h"

namespace at {
class Tensor;
}

namespace gossamer {

// A handle, as DeviceQueue is.
class TorchQueue {
 public:
  using Work = std::function<void()>;
  // Does pieces of work in the order of a queue whose memory torch's CPU can
  // work on while they run: the fake device of tests.
  using Executor = std::function<void(Work)>;

  // torch on the host's memory: work is done when a call returns.
  static const TorchQueue& Host();
  // For a queue of the host, or of a CUDA device, which torch is made ready
  // for: TF32 is off.  kFailedPrecondition: torch's CUDA half is not open or
  // has no device.
  static absl::StatusOr<TorchQueue> Open(DeviceQueue queue);
  TorchQueue(DeviceQueue queue, Executor executor);

  const DeviceQueue& queue() const { return queue_; }
  // Whether tensors are of torch's CUDA devices.
  bool cuda() const { return cuda_; }

  // Tensors whose values are those of the memory, of as many elements.
  at::Tensor View(DeviceSpan<float> values,
                  const std::vector<int64_t>& shape) const;
  at::Tensor View(DeviceSpan<int64_t> values,
                  const std::vector<int64_t>& shape) const;

  // Enqueues work, which calls torch; what it refers to lives until it is done.
  // kInternal or kResourceExhausted: torch's exception.
  absl::Status Enqueue(const Work& work) const;
  // DeviceQueue::Capture of such work.
  absl::StatusOr<CapturedWork> Capture(const Work& work) const;
  // The first exception since the last call of work that an executor has done
  // later than its call; OK if there was none.  Once what is enqueued is done.
  absl::Status TakeLateError() const;

 private:
  TorchQueue(DeviceQueue queue, bool cuda, Executor executor);
  absl::Status On(DeviceStream* stream, const Work& work) const;

  DeviceQueue queue_;
  bool cuda_;
  Executor executor_;
  std::shared_ptr<absl::Status> late_;
};

}  // namespace gossamer

#endif  // GOSSAMER_GAN_MODELS_TORCH_QUEUE_H_
