// The departure of members in good order: a view has them as departures, or the
// fleet stops as a whole.
//
// This header knows nothing of evictions.

#ifndef GOSSAMER_TOPOLOGY_FLEET_DEPARTURES_H_
#define GOSSAMER_TOPOLOGY_FLEET_DEPARTURES_H_

#include "absl/time/time.h"
#include "topology/fleet/fleet_sizes.h"
#include "topology/fleet/member_rounds.h"
#include "topology/fleet/roster.h"
#include "topology/fleet/stop_agreement.h"
#include "topology/fleet/suspicion.h"
#include "topology/fleet/views.h"

namespace gossamer {

// Lets members go that have asked to, and finds those that have gone.  It keeps
// nothing of its own.
class Departures {
 public:
  // All of them outlive this object.
  Departures(absl::Duration heartbeat, Roster& roster,
             const MemberRounds& rounds, const Suspicion& suspicion,
             Views& views, FleetSizes& sizes, StopAgreement& stop)
      : heartbeat_(heartbeat),
        roster_(roster),
        rounds_(rounds),
        suspicion_(suspicion),
        views_(views),
        sizes_(sizes),
        stop_(stop) {}

  // A member in the view asks to leave.
  bool Awaited(absl::Time now) const;
  // Makes a view with those that ask as departures, or proposes a stop if all
  // ask or the fleet cannot be without them.
  void LetLeave(absl::Time now);
  // `member` reports for the first time that it has finished.
  void OnFinished(MemberRecord& member, absl::Time now);
  // Takes a silent leaver for one that has left, once no member waits for it.
  void NoteGone(absl::Time now);

 private:
  bool Asks(const MemberRecord& m, absl::Time now) const;
  void SetLeft(MemberRecord& m);

  const absl::Duration heartbeat_;
  Roster& roster_;
  const MemberRounds& rounds_;
  const Suspicion& suspicion_;
  Views& views_;
  FleetSizes& sizes_;
  StopAgreement& stop_;
};

}  // namespace gossamer

#endif  // GOSSAMER_TOPOLOGY_FLEET_DEPARTURES_H_
