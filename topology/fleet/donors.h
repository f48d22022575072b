// Chooses the members that give their parameters to peers that begin without
// any.
//
// Keeps nothing.  Knows nothing of how parameters travel.

#ifndef GOSSAMER_TOPOLOGY_FLEET_DONORS_H_
#define GOSSAMER_TOPOLOGY_FLEET_DONORS_H_

#include <vector>

#include "absl/time/time.h"
#include "algorithms/base/ids.h"
#include "topology/fleet/roster.h"
#include "topology/view.h"

namespace gossamer {

class Donors {
 public:
  explicit Donors(const Roster& roster) : roster_(roster) {}

  // At most kMaxDonors members that have parameters for `joiner`.
  std::vector<Member> Of(const MemberRecord& joiner, absl::Time now) const;
  // At most kMaxJoiners peers that `donor` has parameters for; `joining`: those
  // that the fleet can have, by id.
  std::vector<Member> JoinersOf(PeerId donor,
                                const std::vector<PeerId>& joining,
                                absl::Time now) const;

 private:
  const Roster& roster_;
};

}  // namespace gossamer

#endif  // GOSSAMER_TOPOLOGY_FLEET_DONORS_H_
