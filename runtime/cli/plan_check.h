// Predictions against runs: some candidates of a plan, trained for real in the
// lab with the synthetic game.
//
// Needs root, as the lab does.  Knows nothing of printing.

#ifndef GOSSAMER_RUNTIME_CLI_PLAN_CHECK_H_
#define GOSSAMER_RUNTIME_CLI_PLAN_CHECK_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/cli/plan_input.h"
#include "runtime/plan/planner.h"

namespace gossamer {

struct PlanCheck {
  std::string why;  // "the recommendation"
  Candidate predicted;
  std::string folder;
  // Of the later half of the rounds, when connections have found their speed.
  double rounds_per_second = 0;  // of the slowest peer
  double step_seconds = 0;       // gradient and optimizer, mean of the peers
  double exchange_seconds = 0;   // median of a run's exchanges
  double whole_run_rounds_per_second = 0;  // with its beginning
  // Predicted anew with the steps as long as they were.
  double predicted_with_that_step = 0;  // rounds/s

  double error() const {
    return 1 / predicted.seconds_per_round / rounds_per_second - 1;
  }
  double error_with_that_step() const {
    return predicted_with_that_step / rounds_per_second - 1;
  }
};

// The recommendation; the same without overlap; and what a configuration has
// that says nothing: the ring as numbered, innov-int4, overlap 1.  Repeats are
// left out.  Runs are in RUNS/plan-NETWORK/, and replace those of a check
// before.  What a run shows goes to stderr.
absl::StatusOr<std::vector<PlanCheck>> CheckPlan(const PlanOptions& options,
                                                 const PlanInput& input,
                                                 const Plan& plan);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_CLI_PLAN_CHECK_H_
