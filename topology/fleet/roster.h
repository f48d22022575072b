// The peers that have registered: what is kept of each, what this incarnation
// of the service has heard of each, and whether its lease holds.
//
// Owns the members' records and decides nothing about them.  This header knows
// nothing of views, suspicions and stops.

#ifndef GOSSAMER_TOPOLOGY_FLEET_ROSTER_H_
#define GOSSAMER_TOPOLOGY_FLEET_ROSTER_H_

#include <cstdint>
#include <vector>

#include "absl/container/node_hash_map.h"
#include "absl/time/time.h"
#include "algorithms/base/ids.h"
#include "topology/fleet/fleet_record.h"

namespace gossamer {

// The incarnation id of a member that is known from a view alone.
inline constexpr uint64_t kUnknownIncarnation = 0;

// The list of all peers that the fleet knows, those that have gone among them,
// up to a limit.
class Roster {
 public:
  // `record` outlives the roster, which alone writes it.
  Roster(RosterRecord& record, absl::Duration lease, absl::Time now);

  // By id.  A caller that changes what is saved calls Changed().
  std::vector<MemberRecord>& members() { return record_.members; }
  const std::vector<MemberRecord>& members() const { return record_.members; }
  FleetCounts& counts() { return record_.counts; }
  // nullptr: no such peer has registered.
  MemberRecord* Find(PeerId id);
  const MemberRecord* Find(PeerId id) const;
  LiveMember& live(PeerId id) { return live_[id]; }
  const LiveMember& live(PeerId id) const { return live_.at(id); }

  // Adds a member or replaces the one of that id.  If there are too many, a new
  // member takes the place of one that is in no view.
  void Put(MemberRecord member);
  void Erase(PeerId id);
  // Forgets all members: another run begins, or an unknown one goes on.
  void Clear();
  // The id that a registration asks for, or the least that is free; the same
  // again to an incarnation whose answer got lost.
  PeerId AssignId(const Registration& r) const;

  uint64_t configuration_hash() const { return record_.configuration_hash; }
  uint64_t layout_fingerprint() const { return record_.layout_fingerprint; }
  // Of the peer that the run is of, if this incarnation of the service has
  // heard of it: those of its Registration.
  const std::string& layout() const { return layout_; }
  const std::string& configuration() const { return configuration_; }
  uint64_t initial_parameters_hash() const { return initial_parameters_hash_; }
  // All peers of the run are configured as this one.
  void TakeRunOf(const Registration& r);

  // Notes what `member` says of itself and renews its lease.
  void Hear(const FleetHeartbeat& heartbeat, const MemberRecord& member,
            absl::Time now);
  // Notices a service that stood still.
  void Tick(absl::Time now);
  // Leases begin now, as after a start of the service.
  void RestartLeases(absl::Time now) { started_ = leases_from_ = now; }
  absl::Time started() const { return started_; }
  bool HasLease(const MemberRecord& m, absl::Time now) const;
  // Its lease has run out though it could have renewed it.
  bool Lost(const MemberRecord& m, absl::Time now) const;
  // Unfinished members that are lost.
  std::vector<PeerId> Lost(absl::Time now) const;
  // This incarnation of the service has heard every unfinished member in the
  // view, or has given it a lease for it.
  bool HeardAll(absl::Time now) const;
  // The view of `epoch` is the first of this run that names `m`: no member can
  // have waited for it before.  False also where this service cannot know:
  // after a restart, or beside a view that it did not make.
  bool FirstNamedBy(uint64_t epoch, const MemberRecord& m) const {
    const LiveMember& l = live(m.id);
    return complete_ && l.first && l.first_epoch == epoch;
  }
  void MarkIncomplete() { complete_ = false; }

  // A member in the view, by the record or by what it says.
  bool TrainsHere(const MemberRecord& m) const;
  bool AllFinished() const;
  // Members, and peers that wait for the first view.
  int registered() const;

  void Changed() { ++version_; }
  uint64_t version() const { return version_; }

 private:
  void KeepSketch(const FleetHeartbeat& heartbeat, LiveMember& live);

  RosterRecord& record_;
  const absl::Duration lease_;
  // Every decision looks every member up.
  absl::node_hash_map<PeerId, LiveMember> live_;
  absl::Time started_, leases_from_;  // leases count from the latter on
  absl::Time ticked_ = absl::InfiniteFuture();
  // This object has seen every registration of the run, and has dropped none.
  bool complete_;
  uint64_t version_ = 1;
  // These are not in the record: only messages depend on the texts, and only
  // the beginning on the hash.
  std::string layout_, configuration_;
  uint64_t initial_parameters_hash_ = 0;
};

}  // namespace gossamer

#endif  // GOSSAMER_TOPOLOGY_FLEET_ROSTER_H_
