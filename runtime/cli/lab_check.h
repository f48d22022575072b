// Whether a lab's links do what its scenario says.
//
// Knows how to compare and print; nothing of how a link is made or measured.

#ifndef GOSSAMER_RUNTIME_CLI_LAB_CHECK_H_
#define GOSSAMER_RUNTIME_CLI_LAB_CHECK_H_

#include "absl/status/status.h"
#include "runtime/cli/fleet_process.h"
#include "runtime/lab/lab.h"
#include "runtime/lab/scenario.h"

namespace gossamer {

// Measures every pair and prints asked, measured and error.  kAborted after a
// signal; kInternal if a link without loss answers nothing.
absl::Status CheckLab(const Lab& lab, const Scenario& scenario,
                      SignalWaiter& signals, bool json);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_CLI_LAB_CHECK_H_
