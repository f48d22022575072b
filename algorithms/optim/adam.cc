#include "algorithms/optim/adam.h"

#include <cassert>
#include <cmath>

#include "algorithms/kernels/device_state.h"

namespace gossamer {
namespace {

constexpr char kMoment[] = "a moment of the optimizer";

}  // namespace

Adam::Adam(const OptimizerSpec& spec, size_t size, const DeviceQueue& queue)
    : queue_(queue),
      m_(queue, size, kMoment),
      v_(queue, size, kMoment),
      spec_(spec) {}

AdamStep Adam::NextStep(double scale) {
  // All coefficients are computed in double and rounded once: 1 − β₂^t of a β₂
  // near 1 has few digits in float.
  const double t = static_cast<double>(++steps_);
  return {
      .beta1 = static_cast<float>(spec_.beta1),
      .gain1 = static_cast<float>(1 - spec_.beta1),
      .beta2 = static_cast<float>(spec_.beta2),
      .gain2 = static_cast<float>(1 - spec_.beta2),
      .correction1 = static_cast<float>(1 / (1 - std::pow(spec_.beta1, t))),
      .correction2 = static_cast<float>(1 / (1 - std::pow(spec_.beta2, t))),
      .epsilon = static_cast<float>(spec_.epsilon),
      .rate = static_cast<float>(spec_.learning_rate * scale),
  };
}

void Adam::Step(DeviceSpan<float> x, DeviceSpan<const float> gradient,
                double scale) {
  assert(x.size == m_.size() && gradient.size == m_.size());
  queue_.Run(&DeviceKernels::adam, NextStep(scale), gradient, m_, v_, x);
}

// The moments stay with their peer and are not mixed, so a checkpoint has them
// and an exchange does not.
void Adam::VisitState(StateVisitor& visitor) {
  visitor.Counter("steps", steps_);
  VisitFloats(visitor, "m", queue_, m_);
  VisitFloats(visitor, "v", queue_, v_);
}

OAdam::OAdam(const OptimizerSpec& spec, size_t size, const DeviceQueue& queue)
    : Adam(spec, size, queue),
      previous_(queue, size, "the optimizer's last step") {}

void OAdam::Step(DeviceSpan<float> x, DeviceSpan<const float> gradient,
                 double scale) {
  assert(x.size == m_.size() && gradient.size == m_.size());
  // The last direction is kept without its rate: a decay of the rate acts on
  // both terms of the step.
  queue_.Run(&DeviceKernels::oadam, NextStep(scale), gradient, m_, v_,
             previous_, x);
}

void OAdam::VisitState(StateVisitor& visitor) {
  Adam::VisitState(visitor);
  VisitFloats(visitor, "previous_direction", queue_, previous_);
}

}  // namespace gossamer
