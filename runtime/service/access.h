// The rights of callers of the topology service, and their rates.
//
//   Register, Heartbeat   a peer, as itself
//   GetStatus             every identity of the run
//   Stop, MeasureLinks    an operator, or a peer that is a member
//
// This header is pure and knows nothing of connections or certificates.

#ifndef GOSSAMER_RUNTIME_SERVICE_ACCESS_H_
#define GOSSAMER_RUNTIME_SERVICE_ACCESS_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "algorithms/base/ids.h"
#include "runtime/base/token_bucket.h"
#include "runtime/identity/identity.h"

namespace gossamer {

enum class Call { kRegister, kHeartbeat, kGetStatus, kStop, kMeasure };

struct AccessRequest {
  Call call;
  PeerId claimed = {};  // the peer that the caller claims to be; 0: none
  std::string run_id = {};
  bool member = false;  // the caller is a member of the fleet
};

// Used by one thread at a time.
class AccessPolicy {
 public:
  // Returns kPermissionDenied for a call that `caller`, whose identity is
  // proved, may never make; kResourceExhausted for one that it makes too often.
  // The state grows with the number of issued identities.
  absl::Status Check(const Identity& caller, const AccessRequest& request,
                     absl::Time now);

 private:
  std::map<std::string, TokenBucket> allowances_;  // by URI
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_SERVICE_ACCESS_H_
