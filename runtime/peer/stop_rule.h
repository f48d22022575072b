// Keeps a peer to the round at which the fleet stops, or at which it leaves the
// fleet itself.
//
// This header knows nothing of how the fleet agrees (membership.h), or of what
// a round does.

#ifndef GOSSAMER_RUNTIME_PEER_STOP_RULE_H_
#define GOSSAMER_RUNTIME_PEER_STOP_RULE_H_

#include <functional>

#include "runtime/base/event_loop.h"
#include "runtime/base/task.h"
#include "runtime/peer/lifecycle.h"
#include "runtime/peer/peer_spec.h"
#include "runtime/peer/training_state.h"
#include "runtime/peer/waiter.h"
#include "runtime/replay/decisions.h"
#include "topology/fleet/membership.h"

namespace gossamer {

class StopRule {
 public:
  // All of them outlive this object.  `abandoned`: members have said themselves
  // that they do not take part in the round that comes, though the service may
  // be gone.
  StopRule(const PeerSpec& spec, EventLoop* loop, Waiter* waiter,
           Membership* membership, const Decisions* decisions,
           const Lifecycle* lifecycle, const TrainingState* state,
           std::function<bool()> abandoned);

  // The fleet has stopped at this round or before it, and took this peer for
  // lost: nobody answers what is under way.
  bool EndedBehind() const;
  // True if the fleet ends its run before this round; waits for the answer
  // where it is not known yet.
  Task<bool> AtStop();
  // A view has this peer leave by this round, or its time to leave is over.
  bool Leaves() const;

 private:
  const PeerSpec& spec_;
  EventLoop* const loop_;
  Waiter* const waiter_;
  Membership* const membership_;
  const Decisions* const decisions_;
  const Lifecycle* const lifecycle_;
  const TrainingState* const state_;
  const std::function<bool()> abandoned_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_PEER_STOP_RULE_H_
