// Deadlines for gRPC that do not move when the machine's date is set.
//
// This header knows nothing of what waits for them.

#ifndef GOSSAMER_RUNTIME_TRANSPORT_GRPC_STEADY_DEADLINE_H_
#define GOSSAMER_RUNTIME_TRANSPORT_GRPC_STEADY_DEADLINE_H_

#include <grpc/support/time.h>

#include "absl/time/time.h"

namespace gossamer {

// Returns the time that is `limit` from now.
inline gpr_timespec SteadyDeadline(absl::Duration limit) {
  return gpr_time_add(
      gpr_now(GPR_CLOCK_MONOTONIC),
      gpr_time_from_nanos(absl::ToInt64Nanoseconds(limit), GPR_TIMESPAN));
}

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TRANSPORT_GRPC_STEADY_DEADLINE_H_
