// The rounds of a peer, one after the other: adopt the view that has begun,
// stop where the fleet stops, train for a round, report and save; then drain.
//
// This header knows nothing of how any of these is done: each is another part.

#ifndef GOSSAMER_RUNTIME_PEER_ROUND_LOOP_H_
#define GOSSAMER_RUNTIME_PEER_ROUND_LOOP_H_

#include "absl/status/status.h"
#include "runtime/base/event_loop.h"
#include "runtime/base/task.h"
#include "runtime/peer/adopted_view.h"
#include "runtime/peer/checkpointer.h"
#include "runtime/peer/drain.h"
#include "runtime/peer/evaluation.h"
#include "runtime/peer/health.h"
#include "runtime/peer/joiner.h"
#include "runtime/peer/lifecycle.h"
#include "runtime/peer/peer_spec.h"
#include "runtime/peer/reporter.h"
#include "runtime/peer/stop_rule.h"
#include "runtime/peer/trainer.h"
#include "runtime/peer/training_state.h"
#include "runtime/peer/waiter.h"
#include "runtime/replay/decisions.h"
#include "topology/fleet/membership.h"

namespace gossamer {

class RoundLoop {
 public:
  struct Parts {
    EventLoop* loop = nullptr;
    Waiter* waiter = nullptr;
    Membership* membership = nullptr;
    Decisions* decisions = nullptr;
    Neighborhood* neighborhood = nullptr;
    Lifecycle* lifecycle = nullptr;
    TrainingState* state = nullptr;
    Health* health = nullptr;
    AdoptedView* views = nullptr;
    StopRule* stop = nullptr;
    Trainer* trainer = nullptr;
    Joiner* joiner = nullptr;
    Evaluation* evaluation = nullptr;
    Checkpointer* checkpointer = nullptr;
    Drain* drain = nullptr;
    Reporter* reporter = nullptr;
  };
  // All of them outlive this object.
  RoundLoop(const PeerSpec& spec, Parts parts) : spec_(spec), parts_(parts) {}

  // Peer::Run.
  Task<absl::Status> Run();

 private:
  Task<absl::Status> Begin();
  Task<absl::Status> Round();
  Task<absl::Status> RecoverIfDiverged();
  // Gives whether the state can be saved: false if this peer has no time left
  // to wait for it, and `least` is over.
  Task<bool> PrepareState(absl::Duration least);
  Task<absl::Status> Finish();
  uint64_t DecideNextRound();

  const PeerSpec& spec_;
  const Parts parts_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_PEER_ROUND_LOOP_H_
