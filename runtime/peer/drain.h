// The end of a peer's rounds: it answers until its neighbours have all they
// need of it, or have been waited for enough.
//
// This header knows nothing of checkpoints or of why the rounds are over.

#ifndef GOSSAMER_RUNTIME_PEER_DRAIN_H_
#define GOSSAMER_RUNTIME_PEER_DRAIN_H_

#include "runtime/base/event_loop.h"
#include "runtime/base/task.h"
#include "runtime/neighborhood/neighborhood.h"
#include "runtime/peer/lifecycle.h"
#include "runtime/peer/peer_spec.h"
#include "runtime/peer/reporter.h"
#include "runtime/peer/trainer.h"
#include "runtime/peer/training_state.h"
#include "runtime/peer/waiter.h"
#include "runtime/replay/decisions.h"

namespace gossamer {

class Drain {
 public:
  struct Parts {
    EventLoop* loop = nullptr;
    Waiter* waiter = nullptr;
    const Decisions* decisions = nullptr;
    Neighborhood* neighborhood = nullptr;
    const Lifecycle* lifecycle = nullptr;
    const TrainingState* state = nullptr;
    Trainer* trainer = nullptr;
    Reporter* reporter = nullptr;
  };
  // All of them outlive this object.
  Drain(const PeerSpec& spec, Parts parts);

  // True: everybody has what they need.
  Task<bool> Run();

 private:
  bool Settled();
  bool MaySettle() const;
  void ReportUnsettled(bool settled);

  const PeerSpec& spec_;
  const Parts parts_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_PEER_DRAIN_H_
