// Recovery of the view by a service whose disk is lost, or older than its
// fleet: a peer that trains by a newer view sends it back.
//
// A view says as much as an older disk would, and the rest goes as with one.
// This header knows nothing of where views and records are kept.

#ifndef GOSSAMER_TOPOLOGY_FLEET_VIEW_RECOVERY_H_
#define GOSSAMER_TOPOLOGY_FLEET_VIEW_RECOVERY_H_

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "topology/fleet/fleet_notes.h"
#include "topology/fleet/fleet_options.h"
#include "topology/fleet/roster.h"
#include "topology/fleet/stop_agreement.h"
#include "topology/fleet/suspicion.h"
#include "topology/fleet/views.h"

namespace gossamer {

// Takes a view from a peer if it is newer than all that is known here, and
// rebuilds the roster from it.
class ViewRecovery {
 public:
  // All of them outlive this object.
  ViewRecovery(const FleetOptions& options, Roster& roster,
               Suspicion& suspicion, Views& views, StopAgreement& stop,
               FleetNotes& notes)
      : options_(options),
        roster_(roster),
        suspicion_(suspicion),
        views_(views),
        stop_(stop),
        notes_(notes) {}

  // `r` holds a view that is newer than the present one, and that can be of
  // this run.
  bool CanRecoverFrom(const Registration& r) const;
  // The peer reports that it has such a view, and is to register again with it:
  // once, because the report may be wrong.
  bool HasNewerView(const FleetHeartbeat& heartbeat) const;
  // Rebuilds the fleet from the view of `r` if CanRecoverFrom(r).
  // kInvalidArgument: the view cannot be; kUnavailable: `r` trains in a fleet
  // that is not known; kFailedPrecondition: its run is over.
  absl::Status Recover(const Registration& r, absl::Time now);
  // The run is over: another one begins, or goes on that was not known.
  void ResetRun();

 private:
  bool BringsNewerView(const Registration& r) const;
  absl::Status CheckView(const Registration& r) const;
  void TakeView(const Registration& r, absl::Time now);
  void EvictOutsiders(const View& view);
  void TakeMember(const Member& m, Standing standing, absl::Time now);

  const FleetOptions& options_;
  Roster& roster_;
  Suspicion& suspicion_;
  Views& views_;
  StopAgreement& stop_;
  FleetNotes& notes_;
};

}  // namespace gossamer

#endif  // GOSSAMER_TOPOLOGY_FLEET_VIEW_RECOVERY_H_
