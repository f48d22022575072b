// DPOSG, algorithm 1 of Liu et al. (NeurIPS 2020): optimistic gradients at a
// point extrapolated from the mixed parameters.

#include "algorithms/method/method.h"

namespace gossamer {
namespace {

void Check(const MethodSettings& s, Problems& problems) {
  if (s.overlap_steps != 0) {
    problems.Refuse("mixing.overlap_steps",
                    "is not 0, but dposg is the paper's algorithm 1, which "
                    "mixes before it extrapolates: leave it out, or take "
                    "algorithm dposg-overlap, ours, which mixes meanwhile");
  }
}

}  // namespace

GOSSAMER_METHOD(dposg) = {
    .name = "dposg",
    .help = {.summary =
                 "mixing, then an optimistic gradient at an extrapolated point",
             .property = "to a first-order stationary point, by the paper",
             .bits = "–",
             .state = "1 per peer",
             .gamma = "the codec's",
             .source = "Liu et al., NeurIPS 2020, algorithm 1",
             .page = "dposg",
             .settings = "step.optimizer=osg"},
    .defaults = {.optimizer = "osg", .overlap_steps = 0},
    .is_its_optimizer = true,
    .with_another_optimizer = "dp-oadam",
    .check = Check,
};

}  // namespace gossamer
