// The admission of registered incarnations to a view: of all together to the
// first one, or to one that follows.
//
// This header knows nothing of why a peer waits, and of who gives it parameters
// (Donors).

#ifndef GOSSAMER_TOPOLOGY_FLEET_ADMISSION_H_
#define GOSSAMER_TOPOLOGY_FLEET_ADMISSION_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "algorithms/base/ids.h"
#include "topology/fleet/batch_window.h"
#include "topology/fleet/departures.h"
#include "topology/fleet/fleet_notes.h"
#include "topology/fleet/fleet_options.h"
#include "topology/fleet/fleet_sizes.h"
#include "topology/fleet/roster.h"
#include "topology/fleet/stop_agreement.h"
#include "topology/fleet/views.h"

namespace gossamer {

// Decides when a peer that waits becomes a member, and whether members begin
// together or one by one.  Nothing of it is saved.
class Admission {
 public:
  // If all incarnations of a fleet end, those that come back wait so long for
  // the next one of them.
  static constexpr absl::Duration kAbsent = absl::Minutes(2);

  // All of them outlive this object.
  Admission(const FleetOptions& options, Roster& roster,
            const MemberRounds& rounds, Views& views,
            const Departures& departures, StopAgreement& stop,
            FleetSizes& sizes, FleetNotes& notes)
      : options_(options),
        roster_(roster),
        rounds_(rounds),
        views_(views),
        departures_(departures),
        stop_(stop),
        sizes_(sizes),
        notes_(notes),
        joining_(options.heartbeat) {}

  // Admits registered incarnations to a view as soon as it is known how.
  void AdmitPending(absl::Time now);
  // The peers to admit: those that wait to join and have a lease, as many as
  // the fleet can have, by id.
  std::vector<PeerId> Joining(absl::Time now);
  // kFailedPrecondition: `m` waits in a fleet that admits no peer under way.
  // `trained`: when the last member that trains in the view was heard.
  absl::Status CheckAdmissible(const MemberRecord& m, absl::Time trained) const;
  // True if the run that `m` waits for is over, and no other one has begun.
  bool EndedWithout(const MemberRecord& m, absl::Time now) const;

 private:
  // True if a peer that registered lately goes on with parameters: others may
  // then train by a view that is not known yet.
  bool AwaitsView(absl::Time now) const;
  // The peer waits for a view and has what it takes.
  bool MayBeAdmitted(const MemberRecord& m) const;
  void BeginTogether();
  // Lets the others begin without the members that have been silent for too
  // long.
  void BeginWithoutAbsent(absl::Time now);
  void AdmitWaiting(absl::Time now);
  // Each of the next two returns true if another view has to follow.  Members
  // that have come back:
  bool AdmitReturned(uint64_t from_round, absl::Time now);
  // Peers that join, if all members train by the present view, together with
  // those that are about to have what it takes:
  // `at_once`: another view follows anyway.
  bool AdmitJoining(uint64_t from_round, std::vector<PeerId> joining,
                    bool at_once, absl::Time now);
  // Keeps as many of `joining` as the fleet can have.
  void Trim(std::vector<PeerId>& joining);

  const FleetOptions& options_;
  Roster& roster_;
  const MemberRounds& rounds_;
  Views& views_;
  const Departures& departures_;
  StopAgreement& stop_;
  FleetSizes& sizes_;
  FleetNotes& notes_;
  BatchWindow joining_;
};

}  // namespace gossamer

#endif  // GOSSAMER_TOPOLOGY_FLEET_ADMISSION_H_
