// Chooses the members that give their parameters to peers that begin without
// any.
//
// This header knows nothing of how parameters travel.

#ifndef GOSSAMER_TOPOLOGY_FLEET_DONORS_H_
#define GOSSAMER_TOPOLOGY_FLEET_DONORS_H_

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "algorithms/base/ids.h"
#include "topology/fleet/roster.h"
#include "topology/view.h"

namespace gossamer {

// The donors of every joiner, as they were last chosen.
class Donors {
 public:
  // `roster` outlives this object.
  explicit Donors(const Roster& roster) : roster_(roster) {}

  // Chooses anew.  `joining`: the peers outside that the fleet can have, by id.
  void Choose(const std::vector<PeerId>& joining, absl::Time now);
  void Reset() {
    donors_.clear();
    joiners_.clear();
  }
  // At most kMaxDonors members that have parameters for `joiner`.
  std::vector<Member> Of(PeerId joiner) const;
  // At most kMaxJoiners peers that `donor` has parameters for.
  std::vector<Member> JoinersOf(PeerId donor) const;

 private:
  std::vector<Member> Able(absl::Time now) const;

  const Roster& roster_;
  absl::flat_hash_map<PeerId, std::vector<Member>> donors_, joiners_;
};

}  // namespace gossamer

#endif  // GOSSAMER_TOPOLOGY_FLEET_DONORS_H_
