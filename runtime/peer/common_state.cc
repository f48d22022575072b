#include "runtime/peer/common_state.h"

#include <vector>

#include "algorithms/kernels/kernels.h"

namespace gossamer {
namespace {

// The bound is relative and squared.  The sums of edges are added in another
// order than the state that they are compared with, so a smaller rest is
// rounding, not an edge without a record.
constexpr double kRounding = 1e-6;

}  // namespace

void CommonState::OnEdgeEnd(DeviceSpan<const float> sum) {
  // The step reads the common state on the compute engine.
  if (!stepping_) return hooks_->OnEdgeEnd(sum);
  ended_.EnsureSize(queue_, sum.size, "sums of edges that ended");
  queue_.Run(&DeviceKernels::axpy, 1.0f, sum, ended_);
}

void CommonState::EndStep() {
  stepping_ = false;
  if (!ended_.empty()) hooks_->OnEdgeEnd(ended_);
  ended_ = {};
}

void CommonState::Restored(const SavedEdges& edges) {
  if (hooks_ == nullptr) return;
  const Kernels& kernels = HostKernels();
  // All that edges have ever added, less what the edges with a record still
  // stand for, is owed back.
  std::vector<float> rest = hooks_->Added();
  double squares = kernels.squared_norm(rest);
  for (const auto& [peer, edge] : edges) {
    const std::vector<float>& sum = edge.codec_state.sum;
    if (sum.size() != rest.size()) continue;
    kernels.axpy(-1, sum, rest);
    squares += kernels.squared_norm(sum);
  }
  // The bits of a checkpoint stay as they are if they can.
  if (!(kernels.squared_norm(rest) > kRounding * squares)) return;
  hooks_->OnEdgeEnd(DeviceCopy<float>(queue_, rest));
}

}  // namespace gossamer
