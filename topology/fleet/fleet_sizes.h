// The numbers of members that a fleet can have, by its schedule and its floors.
//
// This header knows nothing of who the members are.

#ifndef GOSSAMER_TOPOLOGY_FLEET_FLEET_SIZES_H_
#define GOSSAMER_TOPOLOGY_FLEET_FLEET_SIZES_H_

#include <map>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "topology/fleet/fleet_notes.h"
#include "topology/fleet/fleet_options.h"

namespace gossamer {

// kInvalidArgument: the schedule cannot be for so many peers, its gap is below
// the floor, or a peer would have fewer neighbours than it needs.
absl::Status CheckFleetSize(const FleetOptions& options, int peers);

// Answers whether the fleet can have so many members, and says once why it
// cannot.  It remembers the sizes that it has checked, as some take long.
class FleetSizes {
 public:
  // Both outlive this object.
  FleetSizes(const FleetOptions& options, FleetNotes& notes)
      : options_(options), notes_(notes) {}

  // The fleet may go on with `members` of them.  If not, a note says why, once
  // for each size and each `instead`: what happens instead.
  bool CanHave(int members, const std::string& instead);
  // Most members at once.
  int Most() const;

 private:
  absl::Status Check(int members);

  const FleetOptions& options_;
  FleetNotes& notes_;
  std::map<int, absl::Status> checked_;  // by members
  std::set<std::string> noted_;
};

}  // namespace gossamer

#endif  // GOSSAMER_TOPOLOGY_FLEET_FLEET_SIZES_H_
