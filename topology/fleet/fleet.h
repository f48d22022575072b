// The fleet as the topology service sees it: its peers, the valid view, the
// members' rounds, and the stop.
//
// A state machine: events come in with their time, answers go out.  Its parts
// decide, each about its own record; this class calls them in order.  This
// header knows nothing of gRPC, clocks, threads or files; `record()` is what a
// store saves.

#ifndef GOSSAMER_TOPOLOGY_FLEET_FLEET_H_
#define GOSSAMER_TOPOLOGY_FLEET_FLEET_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "algorithms/base/ids.h"
#include "topology/fleet/admission.h"
#include "topology/fleet/departures.h"
#include "topology/fleet/donors.h"
#include "topology/fleet/evictions.h"
#include "topology/fleet/fleet_notes.h"
#include "topology/fleet/fleet_options.h"
#include "topology/fleet/fleet_record.h"
#include "topology/fleet/fleet_sizes.h"
#include "topology/fleet/member_rounds.h"
#include "topology/fleet/registrar.h"
#include "topology/fleet/roster.h"
#include "topology/fleet/stop_agreement.h"
#include "topology/fleet/suspicion.h"
#include "topology/fleet/view_recovery.h"
#include "topology/fleet/views.h"

namespace gossamer {

// One run's fleet, from its first registration to its end.  It owns the record
// and the parts, of which its callers see none.
class Fleet {
 public:
  static constexpr absl::Duration kAbsent = Admission::kAbsent;

  // `stored`: the record of an earlier incarnation of the service.
  // kInvalidArgument: the schedule cannot be for so many peers, or its gap is
  // below the floor; kFailedPrecondition: the stored fleet is another one and
  // still under way.
  static absl::StatusOr<std::unique_ptr<Fleet>> Create(
      FleetOptions options, std::optional<FleetRecord> stored, absl::Time now);
  // The parts refer to each other.
  Fleet(const Fleet&) = delete;
  Fleet& operator=(const Fleet&) = delete;

  // The peer's id.  Idempotent for the same incarnation; a new incarnation of a
  // peer takes the place of the old one.  kFailedPrecondition: it does not fit
  // the run; kInvalidArgument: the request is malformed; kUnavailable: not now;
  // kAborted: another incarnation has begun since.
  absl::StatusOr<PeerId> Register(const Registration& registration,
                                  absl::Time now);
  // kNotFound: register first; kAborted: another incarnation of this peer has
  // registered since; kFailedPrecondition, kInvalidArgument as above.
  absl::StatusOr<FleetAnswer> Heartbeat(const FleetHeartbeat& heartbeat,
                                        absl::Time now);
  // Proposes a last round, unless one is proposed already, and returns it.
  // kFailedPrecondition before there is a view.
  absl::StatusOr<uint64_t> RequestStop(absl::Time now);
  // Evicts a member at once, also one that is heard, if the fleet can be
  // without it: no peer may go on with it, for this reason.  The caller repeats
  // it for as long as the reason holds.
  void Evict(PeerId id, const std::string& why, absl::Time now) {
    evictions_.Evict(id, why, now);
  }
  // Notices what no event says: leases that ran out.
  void Tick(absl::Time now);
  // Lines for people since the last call, about what the record does not show.
  std::vector<std::string> TakeNotes() { return notes_.Take(); }

  FleetSnapshot Snapshot(absl::Time now) const;
  // The reason of the last eviction by this incarnation of the service; empty:
  // the member was silent and suspected.
  std::string WhyEvicted(PeerId id) const;
  // Every member has trained to the end.
  bool Finished() const { return views_.Finished(); }
  // Unfinished members without a lease; once all others have finished the fleet
  // waits for these alone.
  std::vector<PeerId> Lost(absl::Time now) const { return roster_.Lost(now); }

  const FleetOptions& options() const { return options_; }
  const FleetRecord& record() const { return record_; }
  // Grows whenever record() has changed.
  uint64_t version() const {
    return roster_.version() + views_.version() + stop_.version();
  }
  // Members, and peers that wait for the first view.
  int registered() const { return roster_.registered(); }
  // The peer is a member that the present view has.
  bool Has(PeerId id) const;

 private:
  // The parts of an answer that are the same for all members.
  struct Outlook {
    uint64_t fleet_round = 0, second_round = 0;
    double fleet_busy = 0;
    int registered = 0;
    int heard = 0;  // peers with a lease, which send heartbeats
    // When the last of the members that train in the view was heard.
    absl::Time trained = absl::InfinitePast();
  };

  Fleet(FleetOptions options, FleetRecord record, absl::Time now);
  absl::Status CheckStored() const;
  absl::Status RegisterIncarnation(const Registration& r, PeerId id,
                                   absl::Time now);
  absl::Status CheckHeartbeat(const FleetHeartbeat& heartbeat) const;
  void Learn(const FleetHeartbeat& heartbeat, MemberRecord& member,
             absl::Time now);
  // Takes the decisions that what was heard allows, and looks at the fleet that
  // they leave.
  void Decide(absl::Time now);
  // Another run begins, or one goes on that was not known.
  void ResetDecisions();
  FleetAnswer Answer(const FleetHeartbeat& heartbeat, absl::Time now);
  // The present view for a member that resumes from that round.
  std::shared_ptr<const View> ViewFrom(uint64_t resume_round);
  void AnswerOutside(const MemberRecord& m, absl::Time now,
                     FleetAnswer& answer);

  const FleetOptions options_;
  FleetRecord record_;
  FleetNotes notes_;
  FleetSizes sizes_;
  Roster roster_;
  MemberRounds rounds_;
  Suspicion suspicion_;
  Views views_;
  StopAgreement stop_;
  Evictions evictions_;
  Departures departures_;
  Registrar registrar_;
  Admission admission_;
  Donors donors_;
  ViewRecovery view_recovery_;
  Outlook outlook_;
  // The views that answers share, by the round to resume from: the one part
  // that differs between members.
  std::map<uint64_t, std::shared_ptr<const View>> shared_;
  uint64_t shared_version_ = 0;  // of `views_`
  int undecided_ = 0;            // heartbeats since the last decisions
};

}  // namespace gossamer

#endif  // GOSSAMER_TOPOLOGY_FLEET_FLEET_H_
