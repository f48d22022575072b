// The local step of a program's own training loop: whatever its caller did to x
// between two rounds.

#include <memory>

#include "algorithms/method/method.h"

namespace gossamer {
namespace {

// The caller has moved x before its game says that the step is done, so there
// is nothing left to do.  Its optimizer's state is the caller's, too.
class CallersRule final : public Optimizer {
 public:
  void Step(DeviceSpan<float> x, DeviceSpan<const float> gradient,
            double scale) override {}
  void VisitState(StateVisitor& visitor) override {}
};

void Check(const MethodSettings& settings, Problems& problems) {
  if (settings.n_critic != 1) {
    problems.Refuse("step.n_critic", "is ", settings.n_critic,
                    ", but the step is the caller's, who moves either player as "
                    "often as it likes: leave it out");
  }
  if (settings.steps_per_round != 1) {
    problems.Refuse("step.steps_per_round", "is ", settings.steps_per_round,
                    ", but a round is one mix() of the caller, after as many "
                    "steps as it likes: leave it out");
  }
  if (settings.gradient_clip != 0) {
    problems.Refuse("step.gradient_clip", "is ", settings.gradient_clip,
                    ", but gradients are the caller's to clip: leave it out");
  }
}

}  // namespace

GOSSAMER_METHOD(caller) = {
    .name = "caller",
    .help = {.summary = "the steps of a program's own training loop, mixed",
             .property = "the mean moves by the mean of all steps",
             .bits = "–",
             .state = "the caller's",
             .needs = "game caller, and a program that joins",
             .gamma = "the codec's",
             .source = "gossamer's own",
             .page = "caller"},
    .defaults = {.optimizer = "caller"},
    .is_its_optimizer = true,
    .callers_step = true,
    .check = Check,
    .rule = [](const OptimizerSpec&, size_t,
               const DeviceQueue&) -> std::unique_ptr<Optimizer> {
      return std::make_unique<CallersRule>();
    },
};

}  // namespace gossamer
