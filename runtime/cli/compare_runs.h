// Makes the runs of a comparison, one after the other: kept, resumed or begun.
//
// Each run is a command of its own.  This header knows nothing of the use of
// the results.

#ifndef GOSSAMER_RUNTIME_CLI_COMPARE_RUNS_H_
#define GOSSAMER_RUNTIME_CLI_COMPARE_RUNS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "runtime/cli/compare_plan.h"
#include "runtime/cli/comparison.h"

namespace gossamer {

// Makes the runs in the plan's order, and reports each on stderr.  A signal is
// passed on to the current run; the result is then kAborted, with the way to go
// on.  Other errors name the run that failed.
absl::StatusOr<std::vector<ComparedRun>> RunAll(const ComparePlan& plan);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_CLI_COMPARE_RUNS_H_
