// A survey of the network between the members of a fleet: which member measures
// the way to which, and the results.
//
// Pairs take turns such that every peer is in one pair at a time (the circle
// method for round-robin tournaments), so that no two measurements share a
// peer's uplink.  Pure state: events come in with their time.  Knows nothing
// of calls, and of how a way is measured.

#ifndef GOSSAMER_TOPOLOGY_FLEET_LINK_SURVEY_H_
#define GOSSAMER_TOPOLOGY_FLEET_LINK_SURVEY_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "algorithms/base/ids.h"
#include "topology/fleet/membership.h"

namespace gossamer {

// Members of a survey: their matrix is an answer of 64 KiB.
inline constexpr size_t kMostSurveyed = 64;

// One survey after another, each of the members at its start.  It hands out one
// task at a time to each member and keeps the results of the last survey.
class LinkSurvey {
 public:
  struct Task {
    uint64_t number = 0;  // of the turn; rises over all surveys of a run
    PeerId other;
  };
  using Way = LinkMeasurement;

  // `turn_limit`: how long a turn waits for the reports of its members.
  explicit LinkSurvey(absl::Duration turn_limit) : turn_limit_(turn_limit) {}

  // Begins anew; fewer than two members are done at once.  Numbers of turns
  // rise with `generation`: peers that have measured for an earlier incarnation
  // of the service ignore numbers that they have seen.
  void Start(std::vector<PeerId> members, uint64_t generation, absl::Time now);
  bool running() const { return turn_ < turns(); }
  size_t turns() const;
  size_t turn() const { return turn_; }  // from 0; turns() once it is done

  // The measurement that `peer` is to make now; the same until it reports.
  std::optional<Task> TaskOf(PeerId peer) const;
  // Takes the result of a task; nullopt: the measurement failed.  The result of
  // an earlier turn is ignored.
  void Report(PeerId peer, uint64_t number, std::optional<Way> way,
              absl::Time now);
  // Notices turns that took too long.
  void Tick(absl::Time now);

  const std::vector<PeerId>& members() const { return members_; }
  // The way from one member to the other, if it was measured.
  std::optional<Way> way(PeerId from, PeerId to) const;

 private:
  // The partner of a place in members_; none if it sits this turn out.
  std::optional<size_t> PartnerOf(size_t place) const;
  void NextTurn(absl::Time now);

  const absl::Duration turn_limit_;
  std::vector<PeerId> members_;
  size_t turn_ = 0;
  uint64_t number_ = 0;
  absl::Time turn_ends_;
  std::set<PeerId> open_;  // have not reported in this turn
  std::map<std::pair<PeerId, PeerId>, Way> ways_;
};

}  // namespace gossamer

#endif  // GOSSAMER_TOPOLOGY_FLEET_LINK_SURVEY_H_
