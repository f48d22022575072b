#include "topology/fleet/views.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "algorithms/base/seeded_bug.h"
#include "topology/fleet/protocol.h"

namespace gossamer {
namespace {

// The part of a round that may be waiting before the overlap is too small: what
// a fleet may lose by latency.
constexpr double kMayWait = 0.03;

// Unless the report says clearly that it does not.
bool Waits(const PeerReport& report) {
  const double busy = report.timing.busy_seconds * report.rounds_per_second;
  return !(busy >= 1 - kMayWait);
}

bool HasCheckpoint(const MemberRecord& m, uint64_t round) {
  return SeededBug("uncommon-checkpoint") ||
         std::ranges::find(m.checkpoint_rounds, round) !=
             m.checkpoint_rounds.end();
}

}  // namespace

bool SameFleet(const View& view, bool assembled, const FleetOptions& o) {
  // Members have come and gone since the first view.
  const bool changed = o.elastic || !assembled;
  return view.run_id == o.run_id && view.seed == o.seed &&
         (changed || view.members.size() == static_cast<size_t>(o.expected)) &&
         view.schedule == o.schedule;
}

View KnownView(const FleetHeartbeat& heartbeat) {
  View known;
  known.generation = heartbeat.view_generation;
  known.epoch = heartbeat.view_epoch;
  return known;
}

// A peer takes its first view as it begins.  Were that another one than its
// neighbours began with, the payloads under way at their checkpoint would be
// lost.  A member that only the service does not hear, and that no neighbour
// suspects, trains on by the view that it has: by another one the others might
// wait for it.
bool Views::Adopted(absl::Time now) const {
  return std::ranges::all_of(roster_.members(), [&](const MemberRecord& m) {
    if (m.standing != Standing::kMember || !m.in_view || m.finished) {
      return true;
    }
    if (roster_.Lost(m, now)) return suspicion_.Suspecters(m.id, now) > 0;
    const uint64_t begun = roster_.live(m.id).round_begun;
    // A member that came back reads its checkpoint, and begins by the newest
    // view.
    const bool reads =
        begun == 0 && view().epoch > 1 && m.resume_round != view().from_round;
    return reads || begun >= view().from_round;
  });
}

void Views::Take(View view) {
  for (const Member& m : view.members) {
    uint64_t& first = roster_.live(m.id).first_epoch;
    if (first == 0) first = view.epoch;
  }
  record_.view = std::move(view);
  ++version_;
}

void Views::RenewFrom(uint64_t from_round) { Take(Next(from_round)); }

View Views::Next(uint64_t from_round) const {
  View next;
  next.run_id = options_.run_id;
  next.generation = record_.generation;
  // A view that a peer has handed back may have an epoch near the bound of
  // those; its generation is over, and the next one's epochs begin anew.
  next.epoch =
      view().generation == record_.generation || view().epoch < kMaxEpoch / 2
          ? view().epoch + 1
          : 2;
  next.from_round = from_round;
  for (const MemberRecord& m : roster_.members()) {
    if (m.standing == Standing::kMember) {
      next.members.push_back(
          {.id = m.id, .address = m.address, .device = m.device});
    } else if (m.standing == Standing::kLeaving) {
      next.departures.push_back(
          {.id = m.id,
           // A departure keeps the round that an earlier view gave it: the
           // leaver and its neighbours may have acted on it.
           .round = view().DepartureOf(m.id).value_or(from_round),
           .address = m.address});
    }
  }
  next.schedule = options_.schedule;
  next.seed = options_.seed;
  next.gamma = options_.gamma;
  next.overlap_steps = options_.overlap_steps;
  if (next.overlap_steps == kAutoOverlap) {
    // The overlap that has been chosen so far stays until AdaptOverlap chooses
    // another; it begins with 1.
    next.overlap_steps = std::max(1, view().overlap_steps);
  }
  next.configuration_hash = roster_.configuration_hash();
  return next;
}

void Views::BeginTogether() {
  for (MemberRecord& m : roster_.members()) {
    // A member that had begun to leave when the fleet ended has left.
    if (m.standing == Standing::kLeaving) m.standing = Standing::kLeft;
  }
  const uint64_t resume = SharedCheckpoint();
  // Rounds count from 1.
  RenewFrom(std::max<uint64_t>(resume, 1));
  overlap_from_ = view().from_round;
  record_.assembled = true;
  // All present members hear from here on only of views of this store.  A key
  // of a run without certificates does not outlive it.
  if (record_.mac_key.empty() || options_.mac_key.empty()) {
    record_.mac_key = options_.mac_key;
  }
  for (MemberRecord& m : roster_.members()) {
    if (m.standing != Standing::kMember) continue;
    // A member that lacks the checkpoint gets parameters from those that have
    // it, as one that comes back without a disk does.
    m.in_view = resume == 0 || HasCheckpoint(m, resume);
    m.resume_round = m.in_view ? resume : 0;
    m.finished = false;
    m.needs_parameters = !m.in_view;
  }
}

uint64_t Views::SharedCheckpoint() const {
  std::map<uint64_t, size_t> holders;
  size_t members = 0;
  for (const MemberRecord& m : roster_.members()) {
    if (m.standing != Standing::kMember) continue;
    ++members;
    const std::set<uint64_t> own(m.checkpoint_rounds.begin(),
                                 m.checkpoint_rounds.end());
    for (uint64_t round : own) ++holders[round];
  }
  uint64_t shared = 0;
  // Rounds are gone through from the oldest to the newest, so that of two with
  // as many holders the newer one is taken.
  size_t most = options_.elastic ? 1 : members;
  for (const auto& [round, count] : holders) {
    if (count < most) continue;
    most = count;
    shared = round;
  }
  return shared;
}

// Generations go on beyond the view's, as they would at a later incarnation of
// the service with that disk, whatever the clock says.
void Views::ContinueFrom(const View& view) {
  // It may be of another store, of which members may have newer ones, and
  // nobody here knows their key.
  if (!assembled()) record_.mac_key.clear();
  View recovered = view;
  recovered.resume_round = 0;
  record_.assembled = true;
  record_.generation = 1 + (LaterGeneration(view.generation, record_.generation)
                                ? view.generation
                                : record_.generation);
  Take(std::move(recovered));
}

// Some members train by that view and some by the one before, each for good,
// until another one replaces both.  This incarnation of the service knows all
// views of its own, so such a view can be reported once in an incarnation, and
// it is replaced when it is known where all members are.
void Views::ReplaceForgotten(const View& known, const MemberRecord& member,
                             absl::Time now) {
  if (!assembled() || !IsMemberOrLeaving(member) || member.finished ||
      !LaterGeneration(record_.generation, known.generation) ||
      !known.NewerThan(view()) || !roster_.HeardAll(now)) {
    return;
  }
  Renew();
}

void Views::AdaptOverlap() {
  if (options_.overlap_steps != kAutoOverlap || view().epoch == 0) return;
  std::vector<RoundTiming> timings;
  uint64_t slowest = std::numeric_limits<uint64_t>::max();
  for (const MemberRecord& m : roster_.members()) {
    if (m.finished || !IsMemberOrLeaving(m)) continue;
    const PeerReport& report = roster_.live(m.id).report;
    const uint64_t made =
        report.round - std::min(report.round, view().from_round);
    // A peer that has measured more rounds than it has made in this view
    // measured them in the one before.
    if (made < report.timing.rounds || report.timing.rounds == 0) return;
    slowest = std::min(slowest, report.round);
    timings.push_back(report.timing);
    timings.back().waits = Waits(report);
  }
  const int chosen = overlap_.Choose(timings, view().overlap_steps,
                                     slowest - view().from_round);
  if (chosen == view().overlap_steps) return;
  // Members that are in the first rounds of an overlap hear of it sooner.
  const uint64_t soon =
      rounds_.FutureRound(std::min(options_.heartbeat, kEagerInterval));
  const bool eager = soon <= overlap_from_ + kEagerRounds;
  View next = Next(eager ? soon : rounds_.FutureRound());
  next.overlap_steps = chosen;
  Take(std::move(next));
  overlap_from_ = view().from_round;
}

}  // namespace gossamer
