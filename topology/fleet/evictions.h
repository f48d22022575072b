// Evictions of members: of the silent and suspected, of the expelled, and of
// those whose incarnations keep ending early; and how long each of them waits
// before it may return.
//
// This header knows nothing of departures in good order and of how peers are
// admitted.

#ifndef GOSSAMER_TOPOLOGY_FLEET_EVICTIONS_H_
#define GOSSAMER_TOPOLOGY_FLEET_EVICTIONS_H_

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "algorithms/base/ids.h"
#include "topology/fleet/batch_window.h"
#include "topology/fleet/fleet_sizes.h"
#include "topology/fleet/roster.h"
#include "topology/fleet/suspicion.h"
#include "topology/fleet/views.h"

namespace gossamer {

// Evicts members and sets how long each must stay away.  The numbers that it
// judges by are in the roster's records.
class Evictions {
 public:
  // All of them outlive this object.
  Evictions(absl::Duration heartbeat, Roster& roster, Views& views,
            const Suspicion& suspicion, FleetSizes& sizes)
      : heartbeat_(heartbeat),
        roster_(roster),
        views_(views),
        suspicion_(suspicion),
        sizes_(sizes),
        silent_(heartbeat) {}

  // Evicts members that have lost their lease and that enough neighbours
  // suspect, as far as the fleet can be without them.  It waits briefly for
  // members that are about to lose theirs, so that one view leaves all out.
  void EvictSilent(absl::Time now);
  // An eviction waits for others.
  bool waits_for_more() const { return silent_.begun(); }
  // Evicts a member at once, whether or not it is heard, if the fleet can be
  // without it.
  void Evict(PeerId id, const std::string& why, absl::Time now);
  // Another incarnation of `m` has come: evicts it if too many of those before
  // were short and others train without it.
  void Quarantine(const MemberRecord& m, absl::Time now);
  // Incarnations of `m` in a row, the present one with them, that were let into
  // a view and ended before they trained by it.
  int ShortIncarnations(const MemberRecord& m) const;
  // `m` reports the round it has begun; called before its lease is renewed.
  void OnRoundBegun(const MemberRecord& m, uint64_t round, absl::Time now);
  // Forgets the evictions of members that have trained in the view for long.
  void EndQuarantines(absl::Time now);

 private:
  // From the next view on; it may return after `least` at the earliest.
  void MarkEvicted(MemberRecord& m, const std::string& why,
                   absl::Duration least, absl::Time now);
  std::vector<PeerId> Silent(absl::Time now);
  bool MoreAreSilent(absl::Time now) const;

  const absl::Duration heartbeat_;
  Roster& roster_;
  Views& views_;
  const Suspicion& suspicion_;
  FleetSizes& sizes_;
  BatchWindow silent_;
};

}  // namespace gossamer

#endif  // GOSSAMER_TOPOLOGY_FLEET_EVICTIONS_H_
