// Rand-DP-OAdam of Liu et al. (NeurIPS 2020): DP-OAdam on a ring that all peers
// draw anew every round.

#include "algorithms/method/method.h"

namespace gossamer {
namespace {

void Check(const MethodSettings& s, Problems& problems) {
  // Up to three peers have one ring.
  if (!s.static_graph || s.peers <= 3) return;
  problems.Refuse("mixing.graph", "is ", s.graph,
                  ", the same matrix every round; rand-dp-oadam draws anew: "
                  "leave it out, or take permuted-ring, random-matching or "
                  "locality-skewed");
}

}  // namespace

GOSSAMER_METHOD(rand_dp_oadam) = {
    .name = "rand-dp-oadam",
    .help = {.summary = "optimistic Adam on a ring drawn anew every round",
             .property = "mean square disagreement × (M/3 − 1)/(M − 1) by "
                         "mixing, M peers",
             .bits = "–",
             .state = "3 per peer",
             .gamma = "the codec's",
             .source = "Liu et al., NeurIPS 2020",
             .page = "dp_oadam",
             .compared = 2},
    .defaults = {.graph = "permuted-ring"},
    .check = Check,
};

}  // namespace gossamer
