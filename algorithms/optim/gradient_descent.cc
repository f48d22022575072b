#include "algorithms/optim/gradient_descent.h"

#include <cassert>
#include <span>

#include "algorithms/kernels/device_state.h"

namespace gossamer {

Sgd::Sgd(double learning_rate, const DeviceQueue& queue)
    : learning_rate_(learning_rate), queue_(queue) {}

void Sgd::Step(DeviceSpan<float> x, DeviceSpan<const float> gradient,
               double scale) {
  assert(x.size == gradient.size);
  queue_.Run(&DeviceKernels::axpy, static_cast<float>(-learning_rate_ * scale),
             gradient, x);
}

Ogda::Ogda(double learning_rate, size_t size, const DeviceQueue& queue)
    : learning_rate_(learning_rate),
      queue_(queue),
      previous_(queue, size, "the optimizer's last gradient") {}

void Ogda::Step(DeviceSpan<float> x, DeviceSpan<const float> gradient,
                double scale) {
  assert(x.size == previous_.size() && gradient.size == previous_.size());
  const auto rate = static_cast<float>(learning_rate_ * scale);
  // x gets −2η g_t + η g_{t−1}: the second term takes back half of what the
  // step before has extrapolated.
  queue_.Run(&DeviceKernels::optimistic, 2 * rate, rate, gradient, previous_,
             x);
}

void Ogda::VisitState(StateVisitor& visitor) {
  VisitFloats(visitor, "previous_gradient", queue_, previous_);
}

Osg::Osg(double learning_rate, size_t size, const DeviceQueue& queue)
    : learning_rate_(learning_rate),
      queue_(queue),
      previous_(queue, size, "the optimizer's last gradient") {}

void Osg::Extrapolate(DeviceSpan<float> x) {
  assert(x.size == previous_.size());
  // x is at z already if the step before was skipped: extrapolating again would
  // move it twice.
  if (extrapolated_ != 0) return;
  queue_.Run(&DeviceKernels::axpy, -previous_rate_, previous_, x);
  extrapolated_ = 1;
}

void Osg::Step(DeviceSpan<float> x, DeviceSpan<const float> gradient,
               double scale) {
  assert(extrapolated_ != 0 && "Step without Extrapolate");
  assert(x.size == previous_.size() && gradient.size == previous_.size());
  const auto rate = static_cast<float>(learning_rate_ * scale);
  // Takes back exactly what Extrapolate took, with its rate, and steps with
  // this one's. x lands at y − η ĝ_t without y being kept, so corrections that
  // came in between stay.
  queue_.Run(&DeviceKernels::optimistic, rate, previous_rate_, gradient,
             previous_, x);
  previous_rate_ = rate;
  extrapolated_ = 0;
}

void Osg::VisitState(StateVisitor& visitor) {
  VisitFloats(visitor, "previous_gradient", queue_, previous_);
  visitor.Floats("previous_rate", std::span(&previous_rate_, 1));
  // After a skipped step x stays at z, over a checkpoint as well; without this
  // it would be extrapolated again after a restore.
  visitor.Counter("extrapolated", extrapolated_);
}

}  // namespace gossamer
