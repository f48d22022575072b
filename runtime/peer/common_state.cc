#include "runtime/peer/common_state.h"

#include <vector>

#include "algorithms/kernels/kernels.h"

namespace gossamer {
namespace {

// Squared, of what edges have brought: sums are rounded otherwise than what
// they were added to.
constexpr double kRounding = 1e-6;

}  // namespace

void CommonState::OnEdgeEnd(std::span<const float> sum) {
  if (!stepping_) return hooks_->OnEdgeEnd(sum);
  ended_.resize(sum.size());
  HostKernels().axpy(1, sum, ended_);
}

void CommonState::EndStep() {
  stepping_ = false;
  if (!ended_.empty()) hooks_->OnEdgeEnd(ended_);
  ended_.clear();
}

void CommonState::Restored(const SavedEdges& edges) {
  if (hooks_ == nullptr) return;
  const Kernels& kernels = HostKernels();
  std::vector<float> rest = hooks_->Added();
  double squares = kernels.squared_norm(rest);
  for (const auto& [peer, edge] : edges) {
    const std::vector<float>& sum = edge.side.sum;
    if (sum.size() != rest.size()) continue;
    kernels.axpy(-1, sum, rest);
    squares += kernels.squared_norm(sum);
  }
  // The bits of a checkpoint stay as they are if they can.
  if (kernels.squared_norm(rest) > kRounding * squares) hooks_->OnEdgeEnd(rest);
}

}  // namespace gossamer
