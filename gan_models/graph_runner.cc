#include "gan_models/graph_runner.h"

#include <utility>

namespace gossamer {
namespace {

// A game has two kinds, of one player and of both.  More than a few shapes mean
// that shapes change all the time, and each graph holds the memory of a step.
constexpr size_t kMostKinds = 4;

}  // namespace

GraphRunner::GraphRunner(DeviceQueue queue, Options options)
    : queue_(std::move(queue)),
      options_(std::move(options)),
      captures_(options_.graphs && !queue_.on_host()) {}

absl::Status GraphRunner::Run(uint64_t kind, Enqueue enqueue, Capture capture) {
  if (!captures_) return enqueue();
  if (!kinds_.contains(kind) && kinds_.size() >= kMostKinds) {
    // Their memory is given back, so none of them may be under way.
    if (const absl::Status waited = queue_.Wait(); !waited.ok()) return waited;
    kinds_.clear();
  }
  Kind& of = kinds_[kind];
  if (!of.captured && of.runs < options_.warm_ups) {
    ++of.runs;
    return enqueue();
  }
  if (!of.captured) {
    // The device is idle while its memory is divided anew.
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
