// DPOSG whose mixing runs while the step is computed: a variant of this
// project, not of the paper.

#include "algorithms/method/method.h"

namespace gossamer {
namespace {

void Check(const MethodSettings& s, Misfits& misfits) {
  if (s.overlap_steps == 0) {
    misfits.Refuse("mixing.overlap_steps",
                   "is 0, but dposg-overlap mixes while it steps: leave it "
                   "out, or take algorithm dposg, which mixes first");
  }
  if (s.order != "mix-then-step") {
    misfits.Refuse("mixing.order", "is ", s.order,
                   ", but dposg-overlap extrapolates from what has been mixed: "
                   "leave it out");
  }
}

}  // namespace

GOSSAMER_METHOD(dposg_overlap) = {
    .name = "dposg-overlap",
    .help = {.summary = "dposg with mixing hidden behind the step",
             .property = "none proved",
             .bits = "–",
             .state = "1 per peer",
             .gamma = "the codec's",
             .source = "this project, after Liu et al., NeurIPS 2020",
             .page = "dposg",
             .settings = "step.optimizer=osg"},
    .defaults = {.optimizer = "osg",
                 .order = "mix-then-step",
                 .overlap_steps = 1},
    .is_its_optimizer = true,
    .with_another_optimizer = "dp-oadam",
    .check = Check,
};

}  // namespace gossamer
