// Who leaves a Fleet: the silent, who are removed, and those that ask to go.

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "algorithms/base/seeded_bug.h"
#include "topology/fleet/fleet.h"

namespace gossamer {
namespace {

// A member that is removed for the second time waits so long before it may
// return, and twice as long each time after.
constexpr absl::Duration kFirstWait = absl::Seconds(2);
constexpr uint64_t kMaxDoublings = 5;
// One after so many lives in a row that were short is not let in at once.
constexpr int kMostShortLives = 3;
// After so long in the view what a member did before is forgotten.
constexpr absl::Duration kForgiven = absl::Minutes(10);
// Of the one that leaves, until it is known whether all do.
constexpr double kHeartbeatsToHearAll = 1.5;

absl::Duration WaitOf(uint64_t removals) {
  if (removals < 2) return absl::ZeroDuration();
  return kFirstWait * static_cast<double>(
                          uint64_t{1} << std::min(removals - 2, kMaxDoublings));
}

}  // namespace

// Peers connect with their neighbours of a view as soon as they hear of it, not
// once they train by it.
std::set<PeerId> Fleet::NeighborsOf(PeerId id) const {
  const View& view = record_.view;
  if (const std::pair now_of(view.generation, view.epoch);
      schedule_ == nullptr || schedule_of_ != now_of) {
    auto schedule = view.MakeSchedule();
    schedule_ = schedule.ok() ? *std::move(schedule) : nullptr;
    schedule_of_ = now_of;
  }
  std::set<PeerId> neighbors;
  const std::optional<int> rank = view.RankOf(id);
  if (rank && schedule_ != nullptr && schedule_->fixed()) {
    for (const Neighbor& n : schedule_->Row(*rank, view.from_round).neighbors) {
      neighbors.insert(view.members[static_cast<size_t>(n.rank)].id);
    }
    return neighbors;
  }
  for (const MemberRecord& m : record_.members) {
    if (OfTheFleet(m) && m.id != id) neighbors.insert(m.id);
  }
  return neighbors;
}

int Fleet::Suspecters(PeerId id, absl::Time now) const {
  const std::set<PeerId> neighbors = NeighborsOf(id);
  return static_cast<int>(
      std::ranges::count_if(record_.members, [&](const MemberRecord& m) {
        return InTheView(m) && HasLease(m, now) && neighbors.contains(m.id) &&
               live_.at(m.id).suspected.contains(id);
      }));
}

// Two, or all that there are where there are fewer: who has one neighbour left,
// or one from the start, is seen by nobody else.
int Fleet::SuspectersNeeded(PeerId id, absl::Time now) const {
  if (!record_.view.RankOf(id) || SeededBug("one-suspecter")) return 1;
  const std::set<PeerId> neighbors = NeighborsOf(id);
  const auto live =
      std::ranges::count_if(record_.members, [&](const MemberRecord& m) {
        return m.in_view && HasLease(m, now) && neighbors.contains(m.id);
      });
  return std::clamp(static_cast<int>(live), 1, 2);
}

void Fleet::RemoveSilent(absl::Time now) {
  if (!record_.assembled) return;
  std::vector<PeerId> silent;
  int members = 0;
  for (MemberRecord& m : record_.members) {
    members += m.standing == Standing::kMember;
    if (!Lost(m, now) && !SeededBug("remove-with-lease")) continue;
    if (m.standing == Standing::kJoining) {
      m.standing = Standing::kRemoved;
      ++version_;
    }
    if (!OfTheFleet(m) || m.finished) continue;
    const int suspecters = Suspecters(m.id, now);
    if ((suspecters > 0 && suspecters >= SuspectersNeeded(m.id, now)) ||
        SeededBug("remove-unsuspected")) {
      silent.push_back(m.id);
    }
  }
  const auto leaving = [this](PeerId id) {
    return Find(id)->standing == Standing::kLeaving;
  };
  while (!silent.empty()) {
    const auto lost = members - static_cast<int>(silent.size()) +
                      std::ranges::count_if(silent, leaving);
    if (CanHave(static_cast<int>(lost),
                absl::StrCat(Named(silent), " stays in the view"))) {
      break;
    }
    silent.pop_back();
  }
  if (silent.empty()) return;
  for (const PeerId id : silent) {
    Remove(*Find(id), "", absl::ZeroDuration(), now);
  }
  record_.view = NextView(FutureRound());
}

void Fleet::Remove(MemberRecord& m, const std::string& why,
                   absl::Duration least, absl::Time now) {
  m.standing = Standing::kRemoved;
  m.in_view = false;
  Live& live = live_.at(m.id);
  live.why_removed = why;
  live.may_return = now + std::max(least, WaitOf(++m.removals));
  ++record_.counts.removals;
  ++version_;
}

// Where the others are is known first: they train by the view that comes of it.
void Fleet::Expel(PeerId id, const std::string& why, absl::Time now) {
  MemberRecord* const m = Find(id);
  if (m == nullptr || m->finished || !HeardAll(now)) return;
  if (m->standing == Standing::kJoining) {
    m->standing = Standing::kRemoved;
    ++version_;
  }
  if (!OfTheFleet(*m)) return;
  if (!record_.assembled) {
    // Another one is waited for.
    live_.erase(id);
    std::erase_if(record_.members,
                  [id](const MemberRecord& o) { return o.id == id; });
    ++version_;
    return;
  }
  const auto others =
      std::ranges::count_if(record_.members, [id](const MemberRecord& o) {
        return o.standing == Standing::kMember && o.id != id;
      });
  if (m->standing == Standing::kMember &&
      !CanHave(static_cast<int>(others),
               absl::StrCat(Named({id}), " stays in the view, though ", why))) {
    return;
  }
  Remove(*m, why, absl::ZeroDuration(), now);
  record_.view = NextView(FutureRound());
}

int Fleet::ShortLives(const MemberRecord& m) const {
  const Live& live = live_.at(m.id);
  if (live.well_since != absl::InfiniteFuture()) return 0;
  // What one that an earlier life of the service let in has done is not known.
  return live.short_lives + (m.in_view && live.registered_here ? 1 : 0);
}

// Each of its lives is another view, and none is one that all train by: nobody
// could join or leave.  Where nobody else trains there is nobody to spare.
void Fleet::KeepOut(const MemberRecord& m, absl::Time now) {
  const int lives = ShortLives(m);
  if (!record_.assembled || m.standing != Standing::kMember ||
      lives < kMostShortLives || !HeardAll(now)) {
    return;
  }
  int others = 0;
  bool trains = false;
  for (const MemberRecord& o : record_.members) {
    if (o.standing != Standing::kMember || o.id == m.id) continue;
    ++others;
    // One that was in the view before this life of the service may not have
    // begun by the newest, for there is another one again and again.
    const Live& live = live_.at(o.id);
    trains |= InTheView(o) && !o.finished && HasLease(o, now) &&
              (live.well_since != absl::InfiniteFuture() ||
               (!live.registered_here && live.trains));
  }
  if (!trains ||
      !CanHave(others, absl::StrCat(Named({m.id}), " stays in the view"))) {
    return;
  }
  Remove(*Find(m.id),
         absl::StrCat(lives, " lives in a row ended before they trained"),
         kFirstWait, now);
  live_.at(m.id).short_lives = lives;
  record_.view = NextView(FutureRound());
}

// By its heartbeat: the one before was heard when live.last_heard says.
void Fleet::NoteWell(const MemberRecord& m, absl::Time now) {
  Live& live = live_.at(m.id);
  if (!InTheView(m) || live.round_begun < record_.view.from_round) return;
  if (live.well_since == absl::InfiniteFuture() || !HasLease(m, now)) {
    live.well_since = now;
  }
}

void Fleet::Forgive(absl::Time now) {
  for (MemberRecord& m : record_.members) {
    if (m.removals == 0 || !InTheView(m) || !HasLease(m, now) ||
        now - live_.at(m.id).well_since < kForgiven) {
      continue;
    }
    m.removals = 0;
    ++version_;
  }
}

bool Fleet::WaitsToLeave(const MemberRecord& m, absl::Time now) const {
  return m.standing == Standing::kMember && m.in_view && !m.finished &&
         live_.at(m.id).leaving_since <= now;
}

void Fleet::LetLeave(absl::Time now) {
  if (!record_.assembled || record_.stop.round != 0) return;
  if (!Adopted(now)) return;
  std::vector<PeerId> leavers;
  absl::Time since = absl::InfiniteFuture();
  int staying = 0;
  bool all = true;
  for (const MemberRecord& m : record_.members) {
    if (m.standing != Standing::kMember) continue;
    if (WaitsToLeave(m, now)) {
      leavers.push_back(m.id);
      since = std::min(since, live_.at(m.id).leaving_since);
    } else {
      ++staying;
      all = all && (m.finished || Lost(m, now));
    }
  }
  if (leavers.empty()) return;
  if (!all) {
    if (now - since < kHeartbeatsToHearAll * options_.heartbeat) return;
    all = !CanHave(staying,
                   absl::StrCat(Named(leavers), " cannot leave, all stop"));
  }
  if (all) {
    RequestStop(now).IgnoreError();
    return;
  }
  for (const PeerId id : leavers) Find(id)->standing = Standing::kLeaving;
  record_.view = NextView(FutureRound());
  ++version_;
}

// What it says last may be lost, and nobody waits for it once all are beyond
// the round of its departure.
void Fleet::NoteGone(absl::Time now) {
  for (MemberRecord& leaver : record_.members) {
    if (leaver.standing != Standing::kLeaving || !Lost(leaver, now)) continue;
    const uint64_t departure =
        record_.view.DepartureOf(leaver.id).value_or(kMaxRound);
    const bool waited_for =
        Suspecters(leaver.id, now) > 0 ||
        std::ranges::any_of(record_.members, [&](const MemberRecord& m) {
          return m.standing == Standing::kMember && m.in_view && !m.finished &&
                 live_.at(m.id).round_begun <= departure;
        });
    if (waited_for) continue;
    leaver.standing = Standing::kLeft;
    ++record_.counts.leaves;
    ++version_;
  }
}

bool Fleet::HasLease(const MemberRecord& m, absl::Time now) const {
  return now - live_.at(m.id).last_heard <= options_.lease;
}

// Leases count only once the service has been up for one, or has gone on for
// one after it stood still: before that, nobody had a chance to renew.
bool Fleet::Lost(const MemberRecord& m, absl::Time now) const {
  return !HasLease(m, now) && now - ticked_ <= options_.lease / 2 &&
         (now - leases_from_ > options_.lease || SeededBug("lease-from-start"));
}

std::vector<PeerId> Fleet::Lost(absl::Time now) const {
  std::vector<PeerId> lost;
  for (const MemberRecord& m : record_.members) {
    if (OfTheFleet(m) && !m.finished && Lost(m, now)) lost.push_back(m.id);
  }
  return lost;
}

}  // namespace gossamer
