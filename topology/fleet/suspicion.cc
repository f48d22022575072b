#include "topology/fleet/suspicion.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "algorithms/base/seeded_bug.h"

namespace gossamer {

void Suspicion::Learn(const FleetHeartbeat& heartbeat, absl::Time now) {
  LiveMember& live = roster_.live(heartbeat.peer_id);
  std::set<PeerId> suspected;
  // Ids that are no peers are passed over, so that a heartbeat cannot grow the
  // set beyond the roster.
  for (const PeerId id : heartbeat.suspected) {
    if (roster_.Find(id) != nullptr) suspected.insert(id);
  }
  std::vector<PeerId> fresh;
  for (const PeerId id : suspected) {
    // A suspicion is counted when a member comes under it, not once for every
    // neighbour that joins in.
    if (!live.suspected.contains(id) && Suspecters(id, now) == 0) {
      fresh.push_back(id);
    }
  }
  live.suspected = std::move(suspected);
  if (fresh.empty()) return;
  roster_.counts().suspicions += fresh.size();
  // A peer may begin and end suspicions as often as it may call.
  std::erase_if(noted_, [this](const auto& noted) {
    return roster_.Find(noted.first) == nullptr;
  });
  Throttle& noted = noted_[heartbeat.peer_id];
  if (noted.Due(now) > 0) {
    const uint64_t times = noted.seen();
    notes_.Add(absl::StrFormat(
        "%s %s not answer peer %d%s", PeersText(fresh),
        fresh.size() == 1 ? "does" : "do", heartbeat.peer_id.value,
        times == 1 ? "" : absl::StrCat(" (", times, " times so far)")));
  }
}

// Peers connect with their neighbours of a view as soon as they hear of it, not
// once they train by it.
std::set<PeerId> Suspicion::NeighborsOf(PeerId id) const {
  // The schedule is made once for each view, since heartbeats and status ask
  // for it again and again.
  if (const std::pair now_of(view_.generation, view_.epoch);
      schedule_ == nullptr || schedule_of_ != now_of) {
    auto schedule = view_.MakeSchedule();
    schedule_ = schedule.ok() ? *std::move(schedule) : nullptr;
    schedule_of_ = now_of;
  }
  std::set<PeerId> neighbors;
  const std::optional<int> rank = view_.RankOf(id);
  if (rank && schedule_ != nullptr && schedule_->fixed()) {
    for (const Neighbor& n :
         schedule_->Row(*rank, view_.from_round).neighbors) {
      neighbors.insert(view_.members[static_cast<size_t>(n.rank)].id);
    }
    return neighbors;
  }
  // If rows change from round to round, any member may be a neighbour in some
  // round.
  for (const MemberRecord& m : roster_.members()) {
    if (OfTheFleet(m) && m.id != id) neighbors.insert(m.id);
  }
  return neighbors;
}

int Suspicion::Suspecters(PeerId id, absl::Time now) const {
  const std::set<PeerId> neighbors = NeighborsOf(id);
  return static_cast<int>(
      std::ranges::count_if(roster_.members(), [&](const MemberRecord& m) {
        // A suspicion by a peer that is silent itself does not count: the fault
        // may be on its side.
        return InTheView(m) && roster_.HasLease(m, now) &&
               neighbors.contains(m.id) &&
               roster_.live(m.id).suspected.contains(id);
      }));
}

// Two, or all live neighbours where there are fewer: a member with a single
// neighbour is seen by no other one.
int Suspicion::Needed(PeerId id, absl::Time now) const {
  if (!view_.RankOf(id) || SeededBug("one-suspecter")) return 1;
  const std::set<PeerId> neighbors = NeighborsOf(id);
  const auto live =
      std::ranges::count_if(roster_.members(), [&](const MemberRecord& m) {
        return m.in_view && roster_.HasLease(m, now) &&
               neighbors.contains(m.id);
      });
  return std::clamp(static_cast<int>(live), 1, 2);
}

bool Suspicion::Confirmed(PeerId id, absl::Time now) const {
  const int suspecters = Suspecters(id, now);
  return (suspecters > 0 && suspecters >= Needed(id, now)) ||
         SeededBug("remove-unsuspected");
}

}  // namespace gossamer
