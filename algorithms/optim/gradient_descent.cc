#include "algorithms/optim/gradient_descent.h"

#include <cassert>

namespace gossamer {

Sgd::Sgd(double learning_rate, const Kernels& kernels)
    : learning_rate_(learning_rate), kernels_(kernels) {}

void Sgd::Step(std::span<float> x, std::span<const float> gradient,
               double scale) {
  assert(x.size() == gradient.size());
  kernels_.axpy(static_cast<float>(-learning_rate_ * scale), gradient, x);
}

Ogda::Ogda(double learning_rate, size_t size, const Kernels& kernels)
    : learning_rate_(learning_rate), kernels_(kernels), previous_(size) {}

void Ogda::Step(std::span<float> x, std::span<const float> gradient,
                double scale) {
  assert(x.size() == previous_.size() && gradient.size() == previous_.size());
  const auto rate = static_cast<float>(learning_rate_ * scale);
  // x gets −2η g_t + η g_{t−1}: the second term takes back half of what the
  // step before has extrapolated.
  kernels_.optimistic(2 * rate, rate, gradient, previous_, x);
}

void Ogda::VisitState(StateVisitor& visitor) {
  visitor.Floats("previous_gradient", previous_);
}

Osg::Osg(double learning_rate, size_t size, const Kernels& kernels)
    : learning_rate_(learning_rate), kernels_(kernels), previous_(size) {}

void Osg::Extrapolate(std::span<float> x) {
  assert(x.size() == previous_.size());
  // x is at z already if the step before was skipped: extrapolating again would
  // move it twice.
  if (extrapolated_ != 0) return;
  kernels_.axpy(-previous_rate_, previous_, x);
  extrapolated_ = 1;
}

void Osg::Step(std::span<float> x, std::span<const float> gradient,
               double scale) {
  assert(extrapolated_ != 0 && "Step without Extrapolate");
  assert(x.size() == previous_.size() && gradient.size() == previous_.size());
  const auto rate = static_cast<float>(learning_rate_ * scale);
  // Takes back exactly what Extrapolate took, with its rate, and steps with
  // this one's. x lands at y − η ĝ_t without y being kept, so corrections that
  // came in between stay.
  kernels_.optimistic(rate, previous_rate_, gradient, previous_, x);
  previous_rate_ = rate;
  extrapolated_ = 0;
}

void Osg::VisitState(StateVisitor& visitor) {
  visitor.Floats("previous_gradient", previous_);
  visitor.Floats("previous_rate", std::span(&previous_rate_, 1));
  // After a skipped step x stays at z, over a checkpoint as well; without this
  // it would be extrapolated again after a restore.
  visitor.Counter("extrapolated", extrapolated_);
}

}  // namespace gossamer
