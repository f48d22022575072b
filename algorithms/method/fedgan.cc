// FedGAN (Rasouli, Sun, Rajagopal, arXiv 2006.07228, 2020): every peer takes
// step.steps_per_round steps by itself, then all take the exact mean of their
// parameters, of both players.

#include "algorithms/method/method.h"

namespace gossamer {

GOSSAMER_METHOD(fedgan) = {
    .name = "fedgan",
    .help = {.summary = "steps of each peer alone, then the mean of all "
                        "parameters",
             .property = "all peers equal after every round",
             .bits = "32",
             .state = "3 per peer",
             .needs = "every message",
             .gamma = "–",
             .source = "Rasouli, Sun, Rajagopal, arXiv 2006.07228",
             .page = "fedgan"},
    .averaging = Averaging::kParameters,
    .defaults = {.graph = "complete", .overlap_steps = 0},
};

}  // namespace gossamer
