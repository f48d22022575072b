#include "topology/fleet/roster.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "algorithms/base/seeded_bug.h"
#include "topology/graph.h"

namespace gossamer {
namespace {

// Records that are kept, also of peers that are in no view.
constexpr size_t kMaxRecords = 2 * kMaxPeers;
// Members sketch the same rounds but report at different times: so many rounds
// back one is looked for that all have.
constexpr size_t kSketchesKept = 8;

}  // namespace

// The time at which members registered is not saved.  They count as registered
// now, so a member in no view still waits for a heartbeat of a member that is
// in it.
Roster::Roster(RosterRecord& record, absl::Duration lease, absl::Time now)
    : record_(record),
      lease_(lease),
      started_(now),
      leases_from_(now),
      complete_(record.members.empty()) {
  for (const MemberRecord& m : record_.members) live_[m.id].registered = now;
}

MemberRecord* Roster::Find(PeerId id) {
  return FindMember(record_.members, id);
}

const MemberRecord* Roster::Find(PeerId id) const {
  return FindMember(record_.members, id);
}

void Roster::Put(MemberRecord member) {
  auto& members = record_.members;
  const auto at =
      std::ranges::lower_bound(members, member.id, {}, &MemberRecord::id);
  if (at != members.end() && at->id == member.id) {
    *at = std::move(member);
    return;
  }
  const PeerId id = members.insert(at, std::move(member))->id;
  // Ids come from peers, so records of peers that have gone must not pile up.
  // A member's record is never dropped; two fleets of the largest size leave
  // room for all of them.
  if (members.size() <= kMaxRecords) return;
  const auto gone = std::ranges::find_if(members, [id](const MemberRecord& m) {
    return m.id != id && !IsMemberOrLeaving(m);
  });
  if (gone == members.end()) return;
  live_.erase(gone->id);
  members.erase(gone);
  complete_ = false;
}

void Roster::Erase(PeerId id) {
  live_.erase(id);
  std::erase_if(record_.members,
                [id](const MemberRecord& m) { return m.id == id; });
}

void Roster::Clear() {
  record_.members.clear();
  record_.counts = {};
  live_.clear();
  complete_ = true;
}

PeerId Roster::AssignId(const Registration& r) const {
  if (r.peer_id.value != 0) return r.peer_id;
  PeerId free{1};
  for (const MemberRecord& m : record_.members) {
    // A repeated registration whose answer was lost gets the same id, and not a
    // second one.
    if (m.incarnation_id == r.incarnation_id) return m.id;
    if (m.id == free) ++free.value;
  }
  return free;
}

void Roster::TakeRunOf(const Registration& r) {
  record_.configuration_hash = r.configuration_hash;
  record_.layout_fingerprint = r.layout_fingerprint;
  layout_ = r.layout;
  configuration_ = r.configuration;
  initial_parameters_hash_ = r.initial_parameters_hash;
}

void Roster::Hear(const FleetHeartbeat& heartbeat, const MemberRecord& member,
                  absl::Time now) {
  LiveMember& live = live_[member.id];
  live.round_begun = heartbeat.round_begun;
  live.last_heard = now;
  live.acknowledged_stop = heartbeat.acknowledged_stop;
  live.report = heartbeat.report;
  // The sketch is kept by round in `sketches`, and would lie here a second
  // time.
  live.report.sketch.clear();
  live.ready = heartbeat.ready;
  live.trains = heartbeat.view_epoch != 0;
  live.leaving_since = heartbeat.leaving ? std::min(live.leaving_since, now)
                                         : absl::InfiniteFuture();
  KeepSketch(heartbeat, live);
}

void Roster::KeepSketch(const FleetHeartbeat& heartbeat, LiveMember& live) {
  const std::vector<double>& sketch = heartbeat.report.sketch;
  const bool finite =
      std::ranges::all_of(sketch, [](double s) { return std::isfinite(s); });
  const uint64_t round = heartbeat.report.sketch_round;
  // A sketch that is not finite would make the fleet's distance so; an older
  // one has been kept already.
  if (sketch.empty() || !finite ||
      (!live.sketches.empty() && live.sketches.back().first >= round)) {
    return;
  }
  live.sketches.emplace_back(round, sketch);
  if (live.sketches.size() > kSketchesKept) live.sketches.pop_front();
}

void Roster::Tick(absl::Time now) {
  if (now - std::exchange(ticked_, now) > lease_ / 2) leases_from_ = now;
}

bool Roster::HasLease(const MemberRecord& m, absl::Time now) const {
  return now - live(m.id).last_heard <= lease_;
}

// Leases count only once the service has been up for one, or has gone on for
// one after it stood still: before that no peer had a chance to renew.  A
// service that is standing still at this moment is known by its last tick.
bool Roster::Lost(const MemberRecord& m, absl::Time now) const {
  return !HasLease(m, now) && now - ticked_ <= lease_ / 2 &&
         (now - leases_from_ > lease_ || SeededBug("lease-from-start"));
}

std::vector<PeerId> Roster::Lost(absl::Time now) const {
  std::vector<PeerId> lost;
  for (const MemberRecord& m : record_.members) {
    if (IsMemberOrLeaving(m) && !m.finished && Lost(m, now))
      lost.push_back(m.id);
  }
  return lost;
}

bool Roster::HeardAll(absl::Time now) const {
  return std::ranges::all_of(record_.members, [&](const MemberRecord& m) {
    return !IsMemberOrLeaving(m) || !m.in_view || m.finished || Lost(m, now) ||
           live(m.id).last_heard != absl::InfinitePast();
  });
}

bool Roster::TrainsHere(const MemberRecord& m) const {
  return IsMemberOrLeaving(m) && (m.in_view || live(m.id).trains);
}

bool Roster::AllFinished() const {
  return std::ranges::all_of(record_.members, [](const MemberRecord& m) {
    return m.finished || !IsMemberOrLeaving(m);
  });
}

int Roster::registered() const {
  return static_cast<int>(std::ranges::count_if(
      record_.members,
      [](const MemberRecord& m) { return IsMemberOrLeaving(m); }));
}

}  // namespace gossamer
