// Who may call what of the topology service, and how often.
//
//   Register, Heartbeat   a peer, as itself
//   GetStatus             anybody of the run
//   Stop, MeasureLinks    an operator, or a peer that is a member
//
// Pure: knows nothing of connections or certificates.

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
  PeerId claimed = {};  // whom a peer says to be; 0: nobody
  std::string run_id = {};
  bool member = false;  // the caller is of the fleet
};

// One thread at a time.
class AccessPolicy {
 public:
  // kPermissionDenied for what `caller`, of whom that is proved, may never do;
  // kResourceExhausted for what it does too often.  What it keeps grows with
  // the identities that were issued.
  absl::Status Check(const Identity& caller, const AccessRequest& request,
                     absl::Time now);

 private:
  std::map<std::string, TokenBucket> allowances_;  // by URI
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_SERVICE_ACCESS_H_
