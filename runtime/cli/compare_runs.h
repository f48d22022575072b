// The runs of a comparison, one after the other: kept, resumed or begun.
//
// Each is a command of its own.  Knows nothing of what is made of the results.

#ifndef GOSSAMER_RUNTIME_CLI_COMPARE_RUNS_H_
#define GOSSAMER_RUNTIME_CLI_COMPARE_RUNS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "runtime/cli/compare_plan.h"
#include "runtime/cli/comparison.h"

namespace gossamer {

// In the plan's order; says on stderr what it does with each.  A signal is
// passed on to the run at hand: kAborted, saying how the same command goes on.
// Other errors name the run that failed.
absl::StatusOr<std::vector<ComparedRun>> RunAll(const ComparePlan& plan);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_CLI_COMPARE_RUNS_H_
