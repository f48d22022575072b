// The network between the members of a running fleet, as they measure it.
//
// Knows nothing of how a way is measured, and nothing of plans.

#ifndef GOSSAMER_RUNTIME_CLI_MEASURE_H_
#define GOSSAMER_RUNTIME_CLI_MEASURE_H_

#include <string>

#include "absl/status/statusor.h"
#include "runtime/cli/fleet_client.h"
#include "runtime/plan/matrix_text.h"

namespace gossamer {

struct MeasuredNetwork {
  NetworkMatrix matrix;     // names: peer-1, ...
  double busy_seconds = 0;  // of a round without its waiting; 0: not known
};

// Has every pair measure its two ways, one pair per peer at a time, and waits
// for that; says on stderr how far it is.  kUnavailable names ways that were
// not measured.
absl::StatusOr<MeasuredNetwork> MeasureNetwork(FleetClient& client,
                                               const std::string& run);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_CLI_MEASURE_H_
