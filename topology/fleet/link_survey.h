// A survey of the network between the members of a fleet: which member measures
// the link to which, and the results.
//
// Pairs have slots such that every peer is in one pair at a time (the circle
// method for round-robin tournaments), so that no two measurements share a
// peer's uplink.  Pure state: events come in with their time.  This header
// knows nothing of calls, and of how a link is measured.

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
inline constexpr size_t kMaxSurveyed = 64;

// One survey after another, each of the members at its start.  It hands out one
// task at a time to each member and keeps the results of the last survey.
class LinkSurvey {
 public:
  struct Task {
    uint64_t number = 0;  // of the slot; another one in each slot of a run
    PeerId other;
  };

  // `slot_limit`: how long a slot waits for the reports of its members.
  explicit LinkSurvey(absl::Duration slot_limit) : slot_limit_(slot_limit) {}

  // Begins anew; fewer than two members are done at once.  Numbers of slots
  // differ by `generation`: a peer ignores the number that it measured for
  // last, which may have been for an earlier incarnation of the service.
  void Start(std::vector<PeerId> members, uint64_t generation, absl::Time now);
  bool running() const { return slot_ < slots(); }
  size_t slots() const;
  size_t slot() const { return slot_; }  // from 0; slots() once it is done

  // The measurement that `peer` is to make now; the same until it reports.
  std::optional<Task> TaskOf(PeerId peer) const;
  // Takes the result of a task; nullopt: the measurement failed.  The result of
  // an earlier slot is ignored.
  void Report(PeerId peer, uint64_t number, std::optional<LinkMeasurement> link,
              absl::Time now);
  // Notices slots that took too long.
  void Tick(absl::Time now);

  const std::vector<PeerId>& members() const { return members_; }
  // The link from one member to the other, if it was measured.
  std::optional<LinkMeasurement> link(PeerId from, PeerId to) const;

 private:
  // The partner of a place in members_; none if it is free in this slot.
  std::optional<size_t> PartnerOf(size_t place) const;
  void NextSlot(absl::Time now);

  const absl::Duration slot_limit_;
  std::vector<PeerId> members_;
  size_t slot_ = 0;
  uint64_t number_ = 0;
  absl::Time slot_ends_;
  std::set<PeerId> open_;  // have not reported in this slot
  std::map<std::pair<PeerId, PeerId>, LinkMeasurement> links_;
};

}  // namespace gossamer

#endif  // GOSSAMER_TOPOLOGY_FLEET_LINK_SURVEY_H_
