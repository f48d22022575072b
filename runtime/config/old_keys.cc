#include "runtime/config/old_keys.h"

namespace gossamer {
namespace {

struct OldKey {
  std::string_view message, key, advice;
};

constexpr OldKey kOldKeys[] = {
    {"MixingConfig", "schedule",
     "write it as the graph: graph: \"permuted-ring\", \"random-matching\", "
     "\"one-peer-exponential\" or \"locality-skewed\"; leave \"fixed\" out"},
    {"MixingConfig", "weights",
     "leave it out: edges weigh as Metropolis and Hastings have it, which on "
     "regular graphs is uniform"},
    {"MixingConfig", "gossip", "write chebyshev: true, or leave \"plain\" out"},
    {"MixingConfig", "order",
     "leave it out: the algorithm says whether it mixes or steps first"},
    {"MixingConfig", "largest_parameter", "leave it out: it is 1e6"},
    {"StepConfig", "epsilon", "leave it out: it is 1e-8"},
    {"GanConfig", "one_backward",
     "leave it out: one backward pass serves both players where the loss "
     "allows it"},
    {"DataConfig", "shard",
     "write dirichlet_alpha: 0.5 for \"dirichlet\"; leave \"iid\" out"},
    {"DataConfig", "alpha", "write dirichlet_alpha"},
    {"SyntheticConfig", "heterogeneity", "leave it out: it is 1"},
    {"EvaluationConfig", "who", "leave it out: peer 1 evaluates"},
};

}  // namespace

std::string_view KeyReplacement(std::string_view message,
                                std::string_view key) {
  for (const OldKey& old : kOldKeys) {
    if (old.message == message && old.key == key) return old.advice;
  }
  return {};
}

}  // namespace gossamer
