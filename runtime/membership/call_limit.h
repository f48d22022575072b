// The time that a call to the topology service may take, learnt from the calls
// before it.
//
// An answer over a link that is long, or full of payloads, takes seconds.  Were
// the limit a constant below that, a peer would not hear the service again
// before the link is empty; were it a large one, a call to a machine that is
// gone would cost a lease.  This header is pure and knows no clock.

#ifndef GOSSAMER_RUNTIME_MEMBERSHIP_CALL_LIMIT_H_
#define GOSSAMER_RUNTIME_MEMBERSHIP_CALL_LIMIT_H_

#include <algorithm>

#include "absl/time/time.h"

namespace gossamer {

class CallLimit {
 public:
  // The limit is at least `least` and at most twice that, as a lease is.
  explicit CallLimit(absl::Duration least) : least_(least), limit_(least) {}

  absl::Duration limit() const { return limit_; }

  // A call was answered after so long.
  void Answered(absl::Duration took) { Set(2 * took); }
  // A call had no answer within the limit.
  void TimedOut() { Set(2 * limit_); }

 private:
  void Set(absl::Duration limit) {
    limit_ = std::clamp(limit, least_, 2 * least_);
  }

  const absl::Duration least_;
  absl::Duration limit_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_MEMBERSHIP_CALL_LIMIT_H_
