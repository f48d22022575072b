// The curves of a comparison: a line for every run of one game, a style for
// every algorithm and network.
//
// This header knows nothing of how the runs were made or of how curves are
// drawn.

#ifndef GOSSAMER_RUNTIME_CLI_COMPARE_PANELS_H_
#define GOSSAMER_RUNTIME_CLI_COMPARE_PANELS_H_

#include <vector>

#include "runtime/cli/comparison.h"
#include "runtime/telemetry/curves.h"

namespace gossamer {

// Returns panels of scores by round, time and traffic, and of consensus
// distances by round (read from the runs' folders), as far as any run has them.
// A title names the game and the two axes.
std::vector<Panel> ComparisonPanels(const std::vector<ComparedRun>& runs);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_CLI_COMPARE_PANELS_H_
