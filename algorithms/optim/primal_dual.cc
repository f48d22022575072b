#include "algorithms/optim/primal_dual.h"

#include <algorithm>
#include <cassert>

namespace gossamer {

Cold::Cold(double learning_rate, size_t size, const Kernels& kernels)
    : learning_rate_(learning_rate),
      kernels_(kernels),
      dual_(size),
      rest_(size) {}

void Cold::Step(std::span<float> x, std::span<const float> gradient,
                double scale) {
  assert(x.size() == dual_.size() && gradient.size() == dual_.size());
  const auto rate = static_cast<float>(learning_rate_ * scale);
  kernels_.axpy(-rate, gradient, x);
  kernels_.axpy(-rate, dual_, x);
}

void Cold::OnCorrection(float c, std::span<const float> difference) {
  assert(difference.size() == dual_.size());
  kernels_.compensated_axpy(static_cast<float>(-c / learning_rate_), difference,
                            dual_, rest_);
}

void Cold::OnEdgeEnd(std::span<const float> sum) { OnCorrection(-1, sum); }

std::vector<float> Cold::Added() const {
  std::vector<float> added(dual_.size());
  for (size_t i = 0; i < added.size(); ++i) {
    added[i] = static_cast<float>(-learning_rate_ *
                                  (static_cast<double>(dual_[i]) + rest_[i]));
  }
  return added;
}

void Cold::OnNewIncarnation() {
  std::ranges::fill(dual_, 0.0f);
  std::ranges::fill(rest_, 0.0f);
}

void Cold::VisitState(StateVisitor& visitor) {
  visitor.Floats("dual", dual_);
  visitor.Floats("dual_rest", rest_);
}

}  // namespace gossamer
