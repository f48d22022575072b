#include "gan_models/graph_runner.h"

#include <utility>

namespace gossamer {

GraphRunner::GraphRunner(DeviceQueue queue, Options options)
    : queue_(std::move(queue)),
      options_(std::move(options)),
      captures_(options_.graphs && !queue_.on_host()) {}

absl::Status GraphRunner::Run(uint64_t kind, Enqueue enqueue, Capture capture) {
  if (!captures_) return enqueue();
  Kind& of = kinds_[kind];
  if (!of.captured && of.runs < options_.warm_ups) {
    const absl::Status enqueued = enqueue();
    if (enqueued.ok()) ++of.runs;
    return enqueued;
  }
  if (!of.captured) {
    // The capture gives memory back to the device, which must not be in use.
    if (const absl::Status waited = queue_.Wait(); !waited.ok()) return waited;
    absl::StatusOr<CapturedWork> work = capture();
    if (!work.ok()) {
      // A failure is of the kernels or the driver, so others would follow.
      captures_ = false;
      kinds_.clear();
      if (options_.on_failure) {
        options_.on_failure(std::string(work.status().message()));
      }
      return enqueue();
    }
    of.work = *std::move(work);
    of.captured = true;
  }
  queue_.Replay(of.work);
  return absl::OkStatus();
}

}  // namespace gossamer
