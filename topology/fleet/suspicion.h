// The members that their neighbours suspect, and whether enough of them do.
//
// This header knows nothing of what becomes of a suspected member.

#ifndef GOSSAMER_TOPOLOGY_FLEET_SUSPICION_H_
#define GOSSAMER_TOPOLOGY_FLEET_SUSPICION_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "algorithms/base/ids.h"
#include "algorithms/base/throttle.h"
#include "topology/fleet/fleet_notes.h"
#include "topology/fleet/roster.h"
#include "topology/mixing_schedule.h"
#include "topology/view.h"

namespace gossamer {

// Counts the suspicions against each member, of those peers that could know.
class Suspicion {
 public:
  // All of them outlive this object; `view` is the present one.
  Suspicion(Roster& roster, const View& view, FleetNotes& notes)
      : roster_(roster), view_(view), notes_(notes) {}

  // Takes the suspicions of a heartbeat in place of that peer's last ones.
  void Learn(const FleetHeartbeat& heartbeat, absl::Time now);
  // Of the peers that `id` suspects, those with a lease that have sent a
  // heartbeat since the service heard of the suspicion: the answer to a probe
  // through the service.
  std::vector<PeerId> HeardSince(PeerId id, absl::Time now) const;
  // Neighbours with a lease that suspect `id`.
  int Suspecters(PeerId id, absl::Time now) const;
  // Enough neighbours suspect `id` to evict it.
  bool Confirmed(PeerId id, absl::Time now) const;
  // Another run begins, or goes on that was not known.
  void Clear() {
    noted_.clear();
    suspecters_.clear();
  }

 private:
  // The schedule of the present view; nullptr: there is none, or its rows
  // change from round to round.
  const MixingSchedule* FixedSchedule() const;
  // Returns whether `m` may be a neighbour of `id` in the present view: any
  // member may if rows change, or if `id` is in no row.
  bool MayMix(const MemberRecord& m, PeerId id) const;
  int Needed(PeerId id, absl::Time now) const;

  Roster& roster_;
  const View& view_;
  FleetNotes& notes_;
  std::map<PeerId, Throttle> noted_;  // by the peer that suspects
  // The peers that have suspected each member; an incarnation that has ended
  // may be among them.
  absl::flat_hash_map<PeerId, std::set<PeerId>> suspecters_;
  // A memo: the schedule of the view of that generation and epoch, a function
  // of the view alone.
  mutable std::unique_ptr<MixingSchedule> schedule_;
  mutable std::pair<uint64_t, uint64_t> schedule_of_;
};

}  // namespace gossamer

#endif  // GOSSAMER_TOPOLOGY_FLEET_SUSPICION_H_
