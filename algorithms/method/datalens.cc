// DataLens with TopAgg (Wang et al., CCS 2021): peer 1 is a student that
// generates, the others are groups of teachers on private data, and the student
// learns from noisy sums of their votes.

#include "algorithms/method/method.h"

namespace gossamer {
namespace {

void Check(const MethodSettings& s, Problems& problems) {
  if (s.peers < 2) {
    problems.Refuse("peers", "is ", s.peers,
                    ", but peer 1 is the student, and teachers need a peer, "
                    "too: set 2 or more");
  }
  const auto refuse = [&problems](const char* key, const char* instead) {
    problems.Refuse(key,
                    "is set, but a round of datalens is one question: "
                    "leave it out",
                    instead);
  };
  if (s.steps_per_round != 1) {
    refuse("step.steps_per_round", ", or set game.datalens.student_steps");
  }
  if (s.n_critic != 1) {
    refuse("step.n_critic", ", or set game.datalens.discriminator_steps");
  }
  if (s.gradient_clip > 0) {
    refuse("step.gradient_clip", ", or set game.datalens.clip");
  }
}

}  // namespace

GOSSAMER_METHOD(datalens) = {
    .name = "datalens",
    .help = {.summary = "a generator learns from noisy votes of teachers",
             .property = "(ε, δ)-differential privacy",
             .bits = "votes",
             .state = "a network per teacher",
             .needs = "every message, game datalens",
             .gamma = "–",
             .source = "Wang et al., CCS 2021",
             .page = "datalens"},
    .averaging = Averaging::kVotes,
    // The step is the game's own: its optimizers are not these.
    .defaults = {.graph = "complete", .optimizer = "sgd", .overlap_steps = 0},
    .check = Check,
};

}  // namespace gossamer
