// The views of a fleet: the first one, those that follow it, and whether its
// members train by the present one.
//
// Makes a view from the roster as it is.  This header knows nothing of why
// members came or went.

#ifndef GOSSAMER_TOPOLOGY_FLEET_VIEWS_H_
#define GOSSAMER_TOPOLOGY_FLEET_VIEWS_H_

#include <cstdint>

#include "absl/time/time.h"
#include "topology/fleet/fleet_options.h"
#include "topology/fleet/fleet_record.h"
#include "topology/fleet/member_rounds.h"
#include "topology/fleet/overlap_chooser.h"
#include "topology/fleet/roster.h"
#include "topology/fleet/suspicion.h"
#include "topology/view.h"

namespace gossamer {

// A view that a peer hands back has an epoch of at most this.
inline constexpr uint64_t kMaxEpoch = uint64_t{1} << 48;

// A fleet of these options can have `view`; `assembled`: other members than the
// first ones may be in it only if it is elastic.
bool SameFleet(const View& view, bool assembled, const FleetOptions& options);
// Identifies the newest view that a peer knows; the rest of it is empty.
View KnownView(const FleetHeartbeat& heartbeat);

// Makes each view and numbers it.  It alone writes the generation, so that no
// two views of a run have one name.
class Views {
 public:
  // All of them outlive this object, which alone writes `record`.
  Views(const FleetOptions& options, ViewsRecord& record, Roster& roster,
        const MemberRounds& rounds, const Suspicion& suspicion)
      : options_(options),
        record_(record),
        roster_(roster),
        rounds_(rounds),
        suspicion_(suspicion) {}

  const View& view() const { return record_.view; }
  uint64_t generation() const { return record_.generation; }
  // The view is of the roster's members.
  bool assembled() const { return record_.assembled; }
  // Every member has trained to the end.
  bool Finished() const { return assembled() && roster_.AllFinished(); }
  // Every member trains by the present view, or is suspected: peers may join
  // and leave by another one.
  bool Adopted(absl::Time now) const;

  // All members of the roster begin together, from the checkpoint that they
  // share.
  void BeginTogether();
  // A view of the roster as it is now follows, from a round that no member has
  // begun; the second from that round.
  void Renew() { RenewFrom(rounds_.FutureRound()); }
  void RenewFrom(uint64_t from_round);
  // The run is over; its last view stays known.
  void Disassemble() { record_.assembled = false; }
  // Continues from `view`, which an incarnation of the service made that this
  // one knows nothing of.
  void ContinueFrom(const View& view);

  // A view that this service's disk is too old for gives way to one of its
  // own.
  void ReplaceForgotten(const View& known, const MemberRecord& member,
                        absl::Time now);
  // overlap_steps auto: another view if another h fits better.
  void AdaptOverlap();

  uint64_t version() const { return version_; }

 private:
  View Next(uint64_t from_round) const;
  void Take(View view);
  // The newest that most members have; in a fleet that is not elastic, that
  // all have.  0: none.
  uint64_t SharedCheckpoint() const;

  const FleetOptions& options_;
  ViewsRecord& record_;
  Roster& roster_;
  const MemberRounds& rounds_;
  const Suspicion& suspicion_;
  uint64_t version_ = 0;
  OverlapChooser overlap_;
  // The round from which on the members have this overlap; 0: not known to this
  // incarnation of the service.
  uint64_t overlap_from_ = 0;
};

}  // namespace gossamer

#endif  // GOSSAMER_TOPOLOGY_FLEET_VIEWS_H_
