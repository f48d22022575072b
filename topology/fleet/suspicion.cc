#include "topology/fleet/suspicion.h"

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "algorithms/base/seeded_bug.h"

namespace gossamer {

void Suspicion::Learn(const FleetHeartbeat& heartbeat, absl::Time now) {
  LiveMember& live = roster_.live(heartbeat.peer_id);
  std::map<PeerId, absl::Time> suspected;
  // Ids that are no peers are passed over, so that a heartbeat cannot grow the
  // set beyond the roster.
  for (const PeerId id : heartbeat.suspected) {
    if (roster_.Find(id) == nullptr) continue;
    const auto before = live.suspected.find(id);
    suspected.emplace(id,
                      before != live.suspected.end() ? before->second : now);
  }
  std::vector<PeerId> fresh;
  for (const auto& [id, since] : suspected) {
    // A suspicion is counted when a member comes under it, not once for every
    // neighbour that joins in.
    if (!live.suspected.contains(id) && Suspecters(id, now) == 0) {
      fresh.push_back(id);
    }
  }
  for (const auto& [id, since] : live.suspected) {
    if (!suspected.contains(id)) suspecters_[id].erase(heartbeat.peer_id);
  }
  for (const auto& [id, since] : suspected) {
    suspecters_[id].insert(heartbeat.peer_id);
  }
  live.suspected = std::move(suspected);
  if (fresh.empty()) return;
  roster_.counts().suspicions += fresh.size();
  // A peer may begin and end suspicions as often as it may call.
  const auto gone = [this](const auto& kept) {
    return roster_.Find(kept.first) == nullptr;
  };
  std::erase_if(noted_, gone);
  absl::erase_if(suspecters_, gone);
  Throttle& noted = noted_[heartbeat.peer_id];
  if (noted.Due(now) > 0) {
    const uint64_t times = noted.seen();
    notes_.Add(absl::StrFormat(
        "%s %s not answer peer %d%s", PeersText(fresh),
        fresh.size() == 1 ? "does" : "do", heartbeat.peer_id.value,
        times == 1 ? "" : absl::StrCat(" (", times, " times so far)")));
  }
}

std::vector<PeerId> Suspicion::HeardSince(PeerId id, absl::Time now) const {
  std::vector<PeerId> heard;
  const Roster& roster = roster_;
  for (const auto& [suspected, since] : roster.live(id).suspected) {
    // The peer may have been forgotten since.
    const MemberRecord* m = roster.Find(suspected);
    if (m != nullptr && roster.HasLease(*m, now) &&
        roster.live(suspected).last_heard > since) {
      heard.push_back(suspected);
    }
  }
  return heard;
}

// Peers connect with their neighbours of a view as soon as they hear of it, not
// once they train by it.
const MixingSchedule* Suspicion::FixedSchedule() const {
  // The schedule is made once for each view, since heartbeats and status ask
  // for it again and again.
  if (const std::pair now_of(view_.generation, view_.epoch);
      schedule_ == nullptr || schedule_of_ != now_of) {
    auto schedule = view_.MakeSchedule();
    schedule_ = schedule.ok() ? *std::move(schedule) : nullptr;
    schedule_of_ = now_of;
  }
  return schedule_ != nullptr && schedule_->is_static() ? schedule_.get()
                                                        : nullptr;
}

bool Suspicion::MayMix(const MemberRecord& m, PeerId id) const {
  if (!IsMemberOrLeaving(m) || m.id == id) return false;
  const MixingSchedule* fixed = FixedSchedule();
  const std::optional<int> rank = view_.RankOf(id);
  // If rows change from round to round, any member may be a neighbour in some
  // round.
  if (!rank || fixed == nullptr) return true;
  const MixingRow row = fixed->Row(*rank, view_.from_round);
  return std::ranges::any_of(row.neighbors, [&](const Neighbor& n) {
    return view_.members[static_cast<size_t>(n.rank)].id == m.id;
  });
}

int Suspicion::Suspecters(PeerId id, absl::Time now) const {
  const auto by = suspecters_.find(id);
  if (by == suspecters_.end()) return 0;
  return static_cast<int>(std::ranges::count_if(by->second, [&](PeerId peer) {
    const MemberRecord* m = std::as_const(roster_).Find(peer);
    // A suspicion by a peer that is silent itself does not count: the fault may
    // be on its side.
    return m != nullptr && InTheView(*m) && roster_.HasLease(*m, now) &&
           roster_.live(peer).suspected.contains(id) && MayMix(*m, id);
  }));
}

// Two, or all live neighbours where there are fewer: a member with a single
// neighbour is seen by no other one.
int Suspicion::Needed(PeerId id, absl::Time now) const {
  const std::optional<int> rank = view_.RankOf(id);
  if (!rank || SeededBug("one-suspecter")) return 1;
  int live = 0;
  const auto count = [&](const MemberRecord& m) {
    live += InTheView(m) && m.id != id && roster_.HasLease(m, now);
  };
  if (const MixingSchedule* fixed = FixedSchedule()) {
    for (const Neighbor& n : fixed->Row(*rank, view_.from_round).neighbors) {
      const PeerId neighbor = view_.members[static_cast<size_t>(n.rank)].id;
      if (const MemberRecord* m = roster_.Find(neighbor)) count(*m);
    }
  } else {
    for (const MemberRecord& m : roster_.members()) {
      count(m);
      if (live == 2) break;
    }
  }
  return std::clamp(live, 1, 2);
}

bool Suspicion::Confirmed(PeerId id, absl::Time now) const {
  const int suspecters = Suspecters(id, now);
  return (suspecters > 0 && suspecters >= Needed(id, now)) ||
         SeededBug("remove-unsuspected");
}

}  // namespace gossamer
