// Brings an incarnation of a peer into a view: with its checkpoint, with the
// state that members give, or with its own; and begins another incarnation if
// need be.
//
// This header knows nothing of what a round does or of how states travel.

#ifndef GOSSAMER_RUNTIME_PEER_JOINER_H_
#define GOSSAMER_RUNTIME_PEER_JOINER_H_

#include <functional>

#include "runtime/base/event_loop.h"
#include "runtime/base/task.h"
#include "runtime/peer/adopted_view.h"
#include "runtime/peer/checkpointer.h"
#include "runtime/peer/health.h"
#include "runtime/peer/lifecycle.h"
#include "runtime/peer/peer_spec.h"
#include "runtime/peer/reporter.h"
#include "runtime/peer/resume_without_service.h"
#include "runtime/peer/state_sharing.h"
#include "runtime/peer/training_state.h"
#include "runtime/peer/waiter.h"
#include "runtime/replay/decisions.h"
#include "topology/fleet/membership.h"

namespace gossamer {

class Joiner {
 public:
  struct Parts {
    EventLoop* loop = nullptr;
    Waiter* waiter = nullptr;
    Membership* membership = nullptr;
    Decisions* decisions = nullptr;
    Lifecycle* lifecycle = nullptr;
    AdoptedView* views = nullptr;
    TrainingState* state = nullptr;
    Health* health = nullptr;
    Checkpointer* checkpointer = nullptr;
    StateSharing* sharing = nullptr;
    ResumeWithoutService* resume = nullptr;
    Reporter* reporter = nullptr;
    // All that is under way with others is given up.
    std::function<void()> give_up_edges;
  };
  // All of them outlive this object.
  Joiner(const PeerSpec& spec, Parts parts);

  // Until the first view of this incarnation is adopted, or the lifecycle's
  // rounds are over.
  Task<absl::Status> Join();
  // The peer was silent for so long that the others went on without it: another
  // incarnation begins, with the parameters that it has.
  Task<absl::Status> Rejoin();
  // The parameters are lost, not the process: another incarnation begins, as
  // after a crash that lost the disk, with what members have.  If that
  // cannot be, the peer goes on and contributes nothing.
  Task<absl::Status> Recover();

  // The state is restored, from members or from the disk, and no view has
  // admitted this peer with it yet.
  bool has_unadmitted_state() const { return unadmitted_state_; }

 private:
  Task<absl::Status> AdoptFirstView();
  Task<absl::Status> ResumeFromLastView();
  Task<absl::Status> Collect();
  absl::Status BeginIncarnation();
  bool Answered() const;
  void ReportRejoined();

  const PeerSpec& spec_;
  const Parts parts_;
  bool unadmitted_state_ = false;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_PEER_JOINER_H_
