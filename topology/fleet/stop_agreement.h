// The agreement of a fleet on one last round: proposal, acknowledgements,
// commit (StopState).
//
// This header knows nothing of who asked for it.

#ifndef GOSSAMER_TOPOLOGY_FLEET_STOP_AGREEMENT_H_
#define GOSSAMER_TOPOLOGY_FLEET_STOP_AGREEMENT_H_

#include <cstdint>

#include "absl/time/time.h"
#include "topology/fleet/member_rounds.h"
#include "topology/fleet/membership.h"
#include "topology/fleet/roster.h"
#include "topology/fleet/views.h"

namespace gossamer {

// Moves a stop from its proposal to its commit.  A committed stop never
// changes, since peers may have ended at its round.
class StopAgreement {
 public:
  // All of them outlive this object, which alone writes `state`.
  StopAgreement(StopState& state, absl::Duration lease, const Roster& roster,
                const MemberRounds& rounds, const Views& views)
      : state_(state),
        lease_(lease),
        roster_(roster),
        rounds_(rounds),
        views_(views) {}

  const StopState& state() const { return state_; }
  bool proposed() const { return state_.round != 0; }
  // Another run begins, or goes on.
  void Clear() { state_ = {}; }
  // Proposes a last round, unless one is proposed or the run is over.
  void Propose(absl::Time now);
  // A peer has acknowledged this round; 0: none.  A round that this service
  // has not proposed is one that its disk has forgotten.
  void OnAcknowledged(uint64_t round);
  // Moves the proposal behind a member that is past it, or commits it.
  void Advance(absl::Time now);
  // The state for a peer whose run is over.
  StopState Ended() const;

  uint64_t version() const { return version_; }

 private:
  StopState& state_;
  const absl::Duration lease_;
  const Roster& roster_;
  const MemberRounds& rounds_;
  const Views& views_;
  uint64_t version_ = 0;
};

}  // namespace gossamer

#endif  // GOSSAMER_TOPOLOGY_FLEET_STOP_AGREEMENT_H_
