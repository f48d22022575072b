// Parameters from members to peers that join, at both ends: what this peer
// gives, and what it collects when it joins itself.
//
// This header knows nothing of views or of when a peer needs a state.

#ifndef GOSSAMER_RUNTIME_PEER_STATE_SHARING_H_
#define GOSSAMER_RUNTIME_PEER_STATE_SHARING_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <set>

#include "absl/status/statusor.h"
#include "algorithms/base/throttle.h"
#include "runtime/base/event_loop.h"
#include "runtime/base/task.h"
#include "runtime/checkpoint/state_transfer.h"
#include "runtime/peer/health.h"
#include "runtime/peer/peer_spec.h"
#include "runtime/peer/reporter.h"
#include "runtime/peer/training_state.h"
#include "runtime/peer/waiter.h"
#include "runtime/transport/transport.h"
#include "topology/fleet/membership.h"

namespace gossamer {

class StateSharing {
 public:
  struct Parts {
    EventLoop* loop = nullptr;
    ComputeEngine* compute = nullptr;
    Transport* transport = nullptr;
    Membership* membership = nullptr;
    Waiter* waiter = nullptr;
    TrainingState* state = nullptr;
    Health* health = nullptr;
    Reporter* reporter = nullptr;
    // This peer is in a view: its state is the fleet's.
    std::function<bool()> in_fleet;
    // An edge needs the connection to this peer.
    std::function<bool(PeerId)> has_edge;
  };
  // All of them outlive this object.
  StateSharing(const PeerSpec& spec, Parts parts);

  // Connects to those that join, and lets the others go.
  void ServeJoiners();
  bool serves(PeerId peer) const { return served_.contains(peer); }
  void OnFrame(PeerId peer, const Frame& frame);
  // Forgets what nobody reads any more; a few times a second.
  void Tick();
  // Gives a state if one is asked for.  At any moment at which no step is under
  // way the parameters are a state of their own; a peer that waits for the very
  // one that joins can give it.
  void OfferIfWanted();

  // Collects states of members and restores the median of them, until `enough`.
  // False if it has none.
  Task<absl::StatusOr<bool>> Collect(std::function<bool()> enough);

  // Bytes of states that it gives or gets.
  size_t held() const {
    return donor_.held() + (collector_ ? collector_->held() : 0);
  }

 private:
  SendState SendFrames();
  void Offer(Checkpoint state);
  absl::StatusOr<std::unique_ptr<StateCollector>> MakeCollector();
  void RefreshDonors();

  const PeerSpec& spec_;
  const Parts parts_;
  StateDonor donor_;
  std::unique_ptr<StateCollector> collector_;
  std::set<PeerId> served_;  // joiners
  std::set<PeerId> donors_;  // that this peer has connected to
  Throttle unoffered_;
  uint64_t not_offered_ = 0;  // states that a peer asked for
  // Work that the compute engine finishes after this has gone holds it weakly.
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_PEER_STATE_SHARING_H_
