// CP-OAdam of Liu et al. (NeurIPS 2020), the centralized baseline: one OAdam
// on the mean gradient of all peers.

#include "algorithms/method/method.h"

namespace gossamer {

GOSSAMER_METHOD(cp_oadam) = {
    .name = "cp-oadam",
    .help = {.summary = "optimistic Adam on the mean gradient of all peers",
             .property = "one optimizer over all batches; the baseline",
             .bits = "32",
             .state = "3 per peer",
             .needs = "every message",
             .gamma = "–",
             .source = "Liu et al., NeurIPS 2020",
             .page = "dp_oadam",
             .compared = 3},
    .averaging = Averaging::kGradients,
    .defaults = {.graph = "complete", .overlap_steps = 0},
};

}  // namespace gossamer
