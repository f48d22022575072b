// DPOSG whose mixing runs while the step is computed: a variant of this
// project, not of the paper.

#include "algorithms/method/method.h"

namespace gossamer {
namespace {

void Check(const MethodSettings& s, Problems& problems) {
  if (s.overlap_steps == 0) {
    problems.Refuse("mixing.overlap_steps",
                    "is 0, but dposg-overlap mixes while it steps: leave it "
                    "out, or take algorithm dposg, which mixes first");
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
    .defaults = {.optimizer = "osg", .overlap_steps = 1},
    .is_its_optimizer = true,
    .with_another_optimizer = "dp-oadam",
    .check = Check,
};

}  // namespace gossamer
