#include "topology/fleet/departures.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "topology/fleet/protocol.h"

namespace gossamer {
namespace {

// Heartbeats from the first request to leave until it is known whether all
// members ask.  Every peer has called once in one heartbeat; the half is for
// calls under way.  Without the wait a SIGTERM to the whole fleet would first
// make a view without those that were heard first.
constexpr double kHeartbeatsToHearAll = 1.5;

}  // namespace

bool Departures::Asks(const MemberRecord& m, absl::Time now) const {
  return m.standing == Standing::kMember && m.in_view && !m.finished &&
         roster_.live(m.id).leaving_since <= now;
}

bool Departures::Awaited(absl::Time now) const {
  return std::ranges::any_of(
      roster_.members(), [&](const MemberRecord& m) { return Asks(m, now); });
}

void Departures::LetLeave(absl::Time now) {
  // A member that does not train by the present view yet may not hear of
  // another one in time, and would wait for a peer of whose departure it does
  // not know.
  if (!views_.assembled() || stop_.proposed() || !views_.Adopted(now)) return;
  std::vector<PeerId> leavers;
  absl::Time since = absl::InfiniteFuture();
  int staying = 0;
  bool all = true;
  for (const MemberRecord& m : roster_.members()) {
    if (m.standing != Standing::kMember) continue;
    if (Asks(m, now)) {
      leavers.push_back(m.id);
      since = std::min(since, roster_.live(m.id).leaving_since);
    } else {
      ++staying;
      // Members that have finished or are silent do not keep the others from
      // stopping.
      all = all && (m.finished || roster_.Lost(m, now));
    }
  }
  if (leavers.empty()) return;
  if (!all) {
    if (now - since < kHeartbeatsToHearAll * heartbeat_) return;
    all = !sizes_.CanHave(
        staying, absl::StrCat(PeersText(leavers), " cannot leave, all stop"));
  }
  if (all) {
    stop_.Propose(now);
    return;
  }
  for (const PeerId id : leavers) {
    roster_.Find(id)->standing = Standing::kLeaving;
  }
  views_.Renew();
}

void Departures::SetLeft(MemberRecord& m) {
  m.standing = Standing::kLeft;
  ++roster_.counts().leaves;
}

// A member that has not got to the round of the departure would wait for the
// leaver.  The same members mix from that round on, so a view from the same
// round makes none of them wait for another one; a view of an older disk may
// not say who they are.
void Departures::OnFinished(MemberRecord& member, absl::Time now) {
  member.finished = true;
  roster_.live(member.id).finished = now;
  roster_.Changed();
  if (member.standing != Standing::kLeaving) return;
  SetLeft(member);
  const std::vector<uint64_t> rounds = rounds_.Rounds();
  const View& view = views_.view();
  // All members have got beyond the departure: nothing waits for the leaver any
  // more.
  if (rounds.empty() ||
      rounds.back() >= view.DepartureOf(member.id).value_or(0)) {
    return;
  }
  if (view.generation == views_.generation()) {
    views_.RenewFrom(view.from_round);
  } else {
    views_.Renew();
  }
}

// The leaver's last heartbeat may be lost, and no member waits for it once all
// are beyond the round of its departure.
void Departures::NoteGone(absl::Time now) {
  for (MemberRecord& leaver : roster_.members()) {
    if (leaver.standing != Standing::kLeaving || !roster_.Lost(leaver, now)) {
      continue;
    }
    const uint64_t departure =
        views_.view().DepartureOf(leaver.id).value_or(kMaxRound);
    const bool waited_for =
        suspicion_.Suspecters(leaver.id, now) > 0 ||
        std::ranges::any_of(roster_.members(), [&](const MemberRecord& m) {
          return m.standing == Standing::kMember && m.in_view && !m.finished &&
                 roster_.live(m.id).round_begun <= departure;
        });
    if (waited_for) continue;
    SetLeft(leaver);
    roster_.Changed();
  }
}

}  // namespace gossamer
