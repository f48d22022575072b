// Checks that a lab's links behave as its scenario demands.
//
// Compares and prints; knows nothing of how a link is made or measured.

#ifndef GOSSAMER_RUNTIME_CLI_LAB_CHECK_H_
#define GOSSAMER_RUNTIME_CLI_LAB_CHECK_H_

#include "absl/status/status.h"
#include "runtime/cli/fleet_process.h"
#include "runtime/lab/lab.h"
#include "runtime/lab/scenario.h"

namespace gossamer {

// Measures every pair and prints demanded and measured values and the error.
// Returns kAborted after a signal; kInternal if a link without loss never
// answers.
absl::Status CheckLab(const Lab& lab, const Scenario& scenario,
                      SignalWaiter& signals, bool json);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_CLI_LAB_CHECK_H_
