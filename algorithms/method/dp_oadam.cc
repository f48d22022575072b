// DP-OAdam of Liu et al. (NeurIPS 2020): DPOSG with the step of OAdam.

#include "algorithms/method/method.h"

namespace gossamer {

GOSSAMER_METHOD(dp_oadam) = {
    .name = "dp-oadam",
    .help = {.summary = "optimistic Adam on a static graph",
             .property = "none proved",
             .bits = "–",
             .state = "3 per peer",
             .gamma = "the codec's",
             .source = "Liu et al., NeurIPS 2020",
             .page = "dp_oadam",
             .compared = 1},
};

}  // namespace gossamer
