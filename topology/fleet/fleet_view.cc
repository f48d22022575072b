// How a Fleet makes its views.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "algorithms/base/seeded_bug.h"
#include "topology/fleet/fleet.h"
#include "topology/fleet/overlap_chooser.h"

namespace gossamer {
namespace {

bool Has(const MemberRecord& m, uint64_t round) {
  return SeededBug("uncommon-checkpoint") ||
         std::ranges::find(m.checkpoint_rounds, round) !=
             m.checkpoint_rounds.end();
}

}  // namespace

void Fleet::Tick(absl::Time now) {
  // The service itself stood still.
  if (now - std::exchange(ticked_, now) > options_.lease / 2) {
    leases_from_ = now;
  }
  Settle(now);
  RemoveSilent(now);
  LetLeave(now);
  AdvanceStop(now);
  Forgive(now);
}

// One that keeps its members goes on, or begins again, as a whole: those that
// are started again one by one have a lease for it.
absl::Status Fleet::CheckWhole(const MemberRecord& m) const {
  const Live& live = live_.at(m.id);
  if (options_.elastic || m.in_view || live.trains) return absl::OkStatus();
  const bool others_train =
      std::ranges::any_of(record_.members, [&](const MemberRecord& other) {
        return other.in_view && !other.finished &&
               live_.at(other.id).last_heard > live.registered + options_.lease;
      });
  if (!others_train) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "the others train already, and this algorithm takes nobody in under "
      "way: stop all peers, then start all of them with --resume, or all "
      "without");
}

// Others that end before it is let in will not wait for it.  Of those that had
// ended before it registered it cannot be known whether they come back, too.
bool Fleet::EndedWithout(const MemberRecord& m, absl::Time now) const {
  if (!record_.assembled || m.in_view) return false;
  const Live& waits = live_.at(m.id);
  bool anybody = false;
  bool since = now - waits.registered > kAbsent;
  for (const MemberRecord& other : record_.members) {
    if (!OfTheFleet(other) || !other.in_view) continue;
    if (!other.finished && !Lost(other, now)) return false;
    anybody |= other.finished;
    since |= live_.at(other.id).finished > waits.registered;
  }
  return anybody && since && !waits.trains;
}

bool Fleet::MayBeLetIn(const MemberRecord& m) const {
  const Live& live = live_.at(m.id);
  if (!options_.elastic && !live.trains) return false;
  const bool has = !m.needs_parameters || live.ready || live.trains ||
                   SeededBug("join-without-parameters");
  if (m.in_view || !has) return false;
  if (m.standing == Standing::kMember) return true;
  return m.standing == Standing::kJoining && record_.stop.round == 0;
}

// A life that has registered is let into a view once it is known whether the
// fleet lives.  It does if somebody in the view, by the record or by what it
// says, has been heard of since; it does not if every member has a new life:
// then all begin together, from the checkpoint that they share.
void Fleet::Settle(absl::Time now) {
  if (!record_.assembled &&
      (registered() < options_.expected || AwaitsView(now))) {
    return;
  }
  bool all_new = true;
  bool some_wait = false;
  absl::Time last_registered = absl::InfinitePast();
  absl::Time last_heard = absl::InfinitePast();
  for (const MemberRecord& m : record_.members) {
    const Live& live = live_.at(m.id);
    if (MayBeLetIn(m)) {
      some_wait = true;
      last_registered = std::max(last_registered, live.registered);
    }
    if (!OfTheFleet(m)) continue;
    const bool trains = m.in_view || live.trains;
    if (trains && !m.finished) {
      last_heard = std::max(last_heard, live.last_heard);
    }
    // A life that this one of the service has not heard of may be training.
    const bool known =
        !record_.assembled || live.last_heard != absl::InfinitePast();
    all_new = all_new && !trains && known;
  }
  if (all_new) {
    MakeFirstView();
  } else if (some_wait && last_heard > last_registered) {
    LetIn(now);
  } else if (some_wait && now - last_registered > kAbsent) {
    GiveUpAbsent(now);
  }
}

// Of a fleet none of whose lives is heard of any more those that have come back
// begin together, from what they share.  Who comes later joins them.
void Fleet::GiveUpAbsent(absl::Time now) {
  if (!record_.assembled || !options_.elastic || now - started_ <= kAbsent) {
    return;
  }
  std::vector<PeerId> absent, again;  // who came back, and has died again
  int back = 0;
  for (const MemberRecord& m : record_.members) {
    if (!OfTheFleet(m)) continue;
    const Live& live = live_.at(m.id);
    if (!m.in_view && !live.trains) {
      if (m.standing != Standing::kMember) continue;
      if (!HasLease(m, now)) again.push_back(m.id);
      back += HasLease(m, now);
    } else if (now - live.last_heard > kAbsent) {
      absent.push_back(m.id);
    } else {
      return;
    }
  }
  if (absent.empty()) return;
  absent.insert(absent.end(), again.begin(), again.end());
  const std::string who = Named(absent);
  if (!CanHave(back, who + " is waited for")) return;
  for (const PeerId id : absent) {
    MemberRecord& m = *Find(id);
    m.standing = Standing::kRemoved;
    m.in_view = false;
    ++m.removals;
    ++record_.counts.removals;
  }
  Note(absl::StrCat("of a fleet that has ended ", who, " did not come back in ",
                    absl::FormatDuration(kAbsent), ": the others begin"));
  MakeFirstView();
}

View Fleet::NextView(uint64_t from_round) const {
  View view;
  view.run_id = options_.run_id;
  view.generation = record_.generation;
  view.epoch = record_.view.epoch + 1;
  view.from_round = from_round;
  for (const MemberRecord& m : record_.members) {
    if (m.standing == Standing::kMember) {
      view.members.push_back({.id = m.id, .address = m.address});
    } else if (m.standing == Standing::kLeaving) {
      view.departures.push_back(
          {.id = m.id,
           .round = record_.view.DepartureOf(m.id).value_or(from_round),
           .address = m.address});
    }
  }
  view.schedule = options_.schedule;
  view.seed = options_.seed;
  view.gamma = options_.gamma;
  view.overlap_steps = options_.overlap_steps;
  if (view.overlap_steps == kAutoOverlap) {
    view.overlap_steps = std::max(1, record_.view.overlap_steps);
  }
  view.configuration_hash = record_.configuration_hash;
  return view;
}

void Fleet::AdaptOverlap() {
  const View& view = record_.view;
  if (options_.overlap_steps != kAutoOverlap || view.epoch == 0 ||
      record_.stop.round != 0) {
    return;
  }
  std::vector<Tempo> tempos;
  uint64_t slowest = std::numeric_limits<uint64_t>::max();
  for (const MemberRecord& m : record_.members) {
    if (m.finished || !OfTheFleet(m)) continue;
    const PeerReport& report = live_.at(m.id).report;
    // Measured in the view that is valid now, not in the one before.
    if (report.round < view.from_round + kRoundsToChoose) return;
    slowest = std::min(slowest, report.round);
    tempos.push_back(report.tempo);
  }
  const int chosen = ChooseOverlap(tempos, view.overlap_steps);
  if (chosen == view.overlap_steps) return;
  // A smaller h that turns out too small is waited for twice as long the next
  // time: what exchanges take may depend on h itself.
  if (chosen < view.overlap_steps) {
    if (slowest - view.from_round < patience_) return;
    went_back_ = true;
  } else if (std::exchange(went_back_, false)) {
    patience_ *= 2;
  }
  View next = NextView(FutureRound());
  next.overlap_steps = chosen;
  record_.view = std::move(next);
  ++version_;
}

void Fleet::MakeFirstView() {
  for (MemberRecord& m : record_.members) {
    // Who had begun to leave when the fleet died has left.
    if (m.standing == Standing::kLeaving) m.standing = Standing::kLeft;
  }
  const uint64_t resume = SharedCheckpoint();
  record_.view = NextView(std::max<uint64_t>(resume, 1));
  record_.assembled = true;
  record_.stop = {};
  for (MemberRecord& m : record_.members) {
    if (m.standing != Standing::kMember) continue;
    // Who lacks it gets parameters from those that have it, as one that comes
    // back without a disk does.
    m.in_view = resume == 0 || Has(m, resume);
    m.resume_round = m.in_view ? resume : 0;
    m.finished = false;
    m.needs_parameters = !m.in_view;
  }
  ++version_;
}

View Fleet::KnownBy(const FleetHeartbeat& heartbeat) {
  View known;
  known.generation = heartbeat.view_generation;
  known.epoch = heartbeat.view_epoch;
  return known;
}

// Some train by that view and some by the one before, each for good.  Of its
// own life the service knows all views: the claim counts once in a life, when
// it is known where all are.
void Fleet::ReplaceForgotten(const FleetHeartbeat& heartbeat,
                             const MemberRecord& member, absl::Time now) {
  const View known = KnownBy(heartbeat);
  if (!record_.assembled || !OfTheFleet(member) || member.finished ||
      !HeardAll(now) || known.generation >= record_.generation ||
      !known.NewerThan(record_.view)) {
    return;
  }
  record_.view = NextView(FutureRound());
  ++version_;
}

uint64_t Fleet::SharedCheckpoint() const {
  std::map<uint64_t, size_t> holders;
  size_t members = 0;
  for (const MemberRecord& m : record_.members) {
    if (m.standing != Standing::kMember) continue;
    ++members;
    const std::set<uint64_t> own(m.checkpoint_rounds.begin(),
                                 m.checkpoint_rounds.end());
    for (uint64_t round : own) ++holders[round];
  }
  uint64_t shared = 0;
  size_t most = options_.elastic ? 1 : members;
  for (const auto& [round, count] : holders) {
    if (count < most) continue;
    most = count;
    shared = round;
  }
  return shared;
}

}  // namespace gossamer
