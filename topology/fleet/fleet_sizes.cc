#include "topology/fleet/fleet_sizes.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "algorithms/base/status_macros.h"
#include "topology/graph.h"
#include "topology/mixing_matrix.h"
#include "topology/mixing_schedule.h"
#include "topology/view.h"

namespace gossamer {
namespace {

constexpr size_t kMaxNoted = 1000;

}  // namespace

absl::Status CheckFleetSize(const FleetOptions& options, int peers) {
  GOSSAMER_ASSIGN_OR_RETURN(
      const auto schedule, MakeSchedule(options.schedule, peers, options.seed));
  if (const int fewest = MinDegree(*schedule); fewest < options.min_degree) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "graph %s on %d peers: some mix with only %d others, and "
        "mixing.clip_radius needs %d.  Take a denser graph or one that changes "
        "by round, or leave it out",
        options.schedule.graph, peers, fewest, options.min_degree));
  }
  // The gap of a random schedule may have to be estimated, which takes time: it
  // is looked at only if there is a floor.
  if (options.min_gap <= 0) return absl::OkStatus();
  const double gap = ExpectedContraction(*schedule).gap();
  if (gap >= options.min_gap) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "graph %s on %d peers has a spectral gap of %.3g, below the floor of "
      "%.3g: it would mix too slowly.  Take a denser graph or one that changes "
      "by round, or lower --min-gap",
      options.schedule.graph, peers, gap, options.min_gap));
}

absl::Status FleetSizes::Check(int members) {
  if (!options_.elastic) {
    return absl::FailedPreconditionError(
        "this fleet keeps its members: the algorithm needs all of them");
  }
  if (options_.schedule.graph == "edge-list") {
    return absl::FailedPreconditionError(
        "an edge-list names its peers; members cannot come and go");
  }
  if (members < 2) {
    return absl::FailedPreconditionError("one peer alone is no fleet");
  }
  // The answer depends on the number of members alone, and every heartbeat may
  // ask for it.
  const auto [it, fresh] = checked_.try_emplace(members);
  if (fresh) it->second = CheckFleetSize(options_, members);
  return it->second;
}

bool FleetSizes::CanHave(int members, const std::string& instead) {
  const absl::Status possible = Check(members);
  if (possible.ok()) return true;
  // Members that come and go may ask for ever.
  if (noted_.size() == kMaxNoted) noted_.clear();
  if (noted_.insert(absl::StrCat(instead, members)).second) {
    notes_.Add(absl::StrCat(instead, ": a fleet of ", members,
                            " cannot be: ", std::string(possible.message())));
  }
  return false;
}

int FleetSizes::Most() const {
  return options_.max_peers == 0 ? kMaxPeers : options_.max_peers;
}

}  // namespace gossamer
