#include "topology/fleet/evictions.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "algorithms/base/seeded_bug.h"

namespace gossamer {
namespace {

// A member that is evicted for the second time waits so long before it may
// return, and twice as long each time after.
constexpr absl::Duration kFirstWait = absl::Seconds(2);
// Up to 64 s: a peer that keeps failing then costs the others two views in
// about a minute.
constexpr uint64_t kMaxDoublings = 5;
// A member is quarantined after so many short incarnations in a row.
constexpr int kMaxShortIncarnations = 3;
// A member that has trained in the view for so long begins with a clean record.
constexpr absl::Duration kQuarantine = absl::Minutes(10);
// A member that has missed so many heartbeats, and is suspected, will be lost.
constexpr int kMissed = 2;

absl::Duration WaitOf(uint64_t removals) {
  // The first eviction may be an accident, such as a machine that stood still,
  // and costs no wait.
  if (removals < 2) return absl::ZeroDuration();
  return kFirstWait * static_cast<double>(
                          uint64_t{1} << std::min(removals - 2, kMaxDoublings));
}

}  // namespace

std::vector<PeerId> Evictions::Silent(absl::Time now) {
  std::vector<PeerId> silent;
  for (MemberRecord& m : roster_.members()) {
    if (!roster_.Lost(m, now) && !SeededBug("remove-with-lease")) continue;
    // A peer that waits to join is in no view, so no neighbour could suspect
    // it: its lease alone decides.
    if (m.standing == Standing::kJoining) {
      m.standing = Standing::kEvicted;
      roster_.Changed();
    }
    if (!IsMemberOrLeaving(m) || m.finished) continue;
    // Two signs, since either alone is wrong too often: a peer that only the
    // service does not hear still trains, and a slow one that its neighbours do
    // not hear still calls.
    if (suspicion_.Confirmed(m.id, now)) silent.push_back(m.id);
  }
  return silent;
}

// Peers that fail together lose their leases within an interval of heartbeats.
// The first ones alone would cost a view, whose other neighbours would have to
// notice the silence of the rest anew.
bool Evictions::MoreAreSilent(absl::Time now) const {
  return std::ranges::any_of(roster_.members(), [&](const MemberRecord& m) {
    return IsMemberOrLeaving(m) && !m.finished && !roster_.Lost(m, now) &&
           now - roster_.live(m.id).last_heard > kMissed * heartbeat_ &&
           suspicion_.Confirmed(m.id, now);
  });
}

void Evictions::EvictSilent(absl::Time now) {
  if (!views_.assembled()) return silent_.End();
  const auto members = std::ranges::count_if(
      roster_.members(),
      [](const MemberRecord& m) { return m.standing == Standing::kMember; });
  std::vector<PeerId> silent = Silent(now);
  // Leavers are no members of the next view anyway, so they do not count among
  // those that the fleet would lose.
  const auto leaving = [this](PeerId id) {
    return roster_.Find(id)->standing == Standing::kLeaving;
  };
  while (!silent.empty()) {
    const auto rest = members - static_cast<long>(silent.size()) +
                      std::ranges::count_if(silent, leaving);
    if (sizes_.CanHave(static_cast<int>(rest),
                       absl::StrCat(PeersText(silent), " stays in the view"))) {
      break;
    }
    // As many as the fleet can be without; the others stay in the view and are
    // tried again at the next event.
    silent.pop_back();
  }
  if (!silent.empty() && silent_.Waits(MoreAreSilent(now), now)) return;
  silent_.End();
  if (silent.empty()) return;
  // All in one view: peers that fail together, as the machines of a rack do,
  // cost one view and not one each.
  for (const PeerId id : silent) {
    MarkEvicted(*roster_.Find(id), "", absl::ZeroDuration(), now);
  }
  views_.Renew();
}

void Evictions::MarkEvicted(MemberRecord& m, const std::string& why,
                            absl::Duration least, absl::Time now) {
  m.standing = Standing::kEvicted;
  m.in_view = false;
  LiveMember& live = roster_.live(m.id);
  live.why_evicted = why;
  live.may_return = now + std::max(least, WaitOf(++m.removals));
  ++roster_.counts().removals;
  roster_.Changed();
}

// The rounds of the others are known first: they train by the view that comes
// of it.
void Evictions::Evict(PeerId id, const std::string& why, absl::Time now) {
  MemberRecord* const m = roster_.Find(id);
  if (m == nullptr || m->finished || !roster_.HeardAll(now)) return;
  if (m->standing == Standing::kJoining) {
    m->standing = Standing::kEvicted;
    roster_.Changed();
  }
  if (!IsMemberOrLeaving(*m)) return;
  if (!views_.assembled()) {
    // The first view waits for another peer.
    roster_.Erase(id);
    roster_.Changed();
    return;
  }
  const auto others =
      std::ranges::count_if(roster_.members(), [id](const MemberRecord& o) {
        return o.standing == Standing::kMember && o.id != id;
      });
  if (m->standing == Standing::kMember &&
      !sizes_.CanHave(
          static_cast<int>(others),
          absl::StrCat(PeersText({id}), " stays in the view, though ", why))) {
    return;
  }
  MarkEvicted(*m, why, absl::ZeroDuration(), now);
  views_.Renew();
}

int Evictions::ShortIncarnations(const MemberRecord& m) const {
  const LiveMember& live = roster_.live(m.id);
  // An incarnation that trained by its view ends the row.
  if (live.well_since != absl::InfiniteFuture()) return 0;
  // An incarnation that the service before this one admitted may have trained.
  return live.short_incarnations + (m.in_view && live.registered_here ? 1 : 0);
}

// Each of its incarnations is another view, and none of them is one that all
// train by: no peer could join or leave.  A member without which no other one
// trains is not evicted.
void Evictions::Quarantine(const MemberRecord& m, absl::Time now) {
  const int incarnations = ShortIncarnations(m);
  if (!views_.assembled() || m.standing != Standing::kMember ||
      incarnations < kMaxShortIncarnations || !roster_.HeardAll(now)) {
    return;
  }
  int others = 0;
  bool trains = false;
  for (const MemberRecord& o : roster_.members()) {
    if (o.standing != Standing::kMember || o.id == m.id) continue;
    ++others;
    // A member that was in the view before this incarnation of the service may
    // not have begun by the newest, for another one comes again and again.
    const LiveMember& live = roster_.live(o.id);
    trains |= InTheView(o) && !o.finished && roster_.HasLease(o, now) &&
              (live.well_since != absl::InfiniteFuture() ||
               (!live.registered_here && live.trains));
  }
  if (!trains || !sizes_.CanHave(others, absl::StrCat(PeersText({m.id}),
                                                      " stays in the view"))) {
    return;
  }
  MarkEvicted(*roster_.Find(m.id),
              absl::StrCat(incarnations,
                           " incarnations in a row ended before they trained"),
              kFirstWait, now);
  // Kept over the eviction, so that a peer that goes on like this is evicted
  // again at its next incarnation.
  roster_.live(m.id).short_incarnations = incarnations;
  views_.Renew();
}

void Evictions::OnRoundBegun(const MemberRecord& m, uint64_t round,
                             absl::Time now) {
  LiveMember& live = roster_.live(m.id);
  // Only a member that has begun a round of the present view is known to train
  // by it.
  if (!InTheView(m) || round < views_.view().from_round) return;
  // A lease that has run out in between starts the time anew.
  if (live.well_since == absl::InfiniteFuture() || !roster_.HasLease(m, now)) {
    live.well_since = now;
  }
}

void Evictions::EndQuarantines(absl::Time now) {
  for (MemberRecord& m : roster_.members()) {
    if (m.removals == 0 || !InTheView(m) || !roster_.HasLease(m, now) ||
        now - roster_.live(m.id).well_since < kQuarantine) {
      continue;
    }
    m.removals = 0;
    roster_.Changed();
  }
}

}  // namespace gossamer
