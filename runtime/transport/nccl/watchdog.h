// The watchdog's rule: when a wait has taken too long.
//
// This header is pure and knows nothing of what is waited for.

#ifndef GOSSAMER_RUNTIME_TRANSPORT_NCCL_WATCHDOG_H_
#define GOSSAMER_RUNTIME_TRANSPORT_NCCL_WATCHDOG_H_

#include "absl/time/time.h"
#include "algorithms/base/seeded_bug.h"

namespace gossamer {

inline bool IsLate(absl::Time since, absl::Duration limit, absl::Time now) {
  return !SeededBug("nccl-no-watchdog") && now - since >= limit;
}

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TRANSPORT_NCCL_WATCHDOG_H_
