#include "topology/fleet/member_rounds.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "topology/fleet/protocol.h"

namespace gossamer {
namespace {

// Heartbeats that a peer may need to learn of a round to come: one on its way,
// one lost, one to spare.
constexpr double kHeartbeatsOfSlack = 3;
// Rounds beyond those that these take; more where no speed is known.
constexpr uint64_t kMinSlack = 2;
constexpr uint64_t kSlackUnknown = 8;
// The speed is a peer's own report, so it is bounded by more than any fleet
// has.
constexpr double kMaxRoundsPerSecond = 1e6;

}  // namespace

uint64_t MemberRounds::RoundOf(const MemberRecord& m) const {
  const LiveMember& live = roster_.live(m.id);
  return std::max(live.round_begun, live.report.round);
}

// No member trains so far alone while others do: one such number must not put
// off views, stops and rounds of all others.  A member that has not reported a
// round yet, as after a restart of the service, is in the view at least.  A
// member that is alone is believed: no other one knows better.
uint64_t MemberRounds::MostOf(const MemberRecord& m, absl::Time now) const {
  bool alone = true;
  uint64_t others = 0;
  for (const MemberRecord& o : roster_.members()) {
    if (!IsMemberOrLeaving(o) || o.id == m.id) continue;
    others = std::max(others, RoundOf(o));
    const bool trains = (o.in_view || roster_.live(o.id).trains) && !o.finished;
    if (!trains || roster_.Lost(o, now)) continue;
    alone = false;
    if (RoundOf(o) == 0) others = std::max(others, view_.from_round);
  }
  return alone ? kMaxRound : others + kMaxAhead;
}

std::vector<uint64_t> MemberRounds::Rounds() const {
  std::vector<uint64_t> rounds;
  const MemberRecord* furthest = nullptr;
  absl::Time newest = absl::InfinitePast();
  for (const MemberRecord& m : roster_.members()) {
    if (!IsMemberOrLeaving(m)) continue;
    rounds.push_back(RoundOf(m));
    newest = std::max(newest, roster_.live(m.id).last_heard);
    if (furthest == nullptr || RoundOf(m) > RoundOf(*furthest)) furthest = &m;
  }
  std::ranges::sort(rounds, std::greater());
  // Only the furthest can be out of reach of all others.  The time is that of
  // the newest heartbeat, so that the answer does not change while no peer
  // calls.
  if (furthest != nullptr && rounds[0] > MostOf(*furthest, newest)) {
    rounds.erase(rounds.begin());
  }
  return rounds;
}

uint64_t MemberRounds::MaxRound() const {
  const std::vector<uint64_t> rounds = Rounds();
  return rounds.empty() ? 0 : rounds[0];
}

// No peer jumps beyond it, so no member may raise it alone.  Of two members it
// cannot be known which one is right.
uint64_t MemberRounds::FleetRound(absl::Time now) const {
  int members = 0;
  std::vector<uint64_t> rounds;
  for (const MemberRecord& m : roster_.members()) {
    if (!IsMemberOrLeaving(m)) continue;
    ++members;
    if (roster_.HasLease(m, now)) rounds.push_back(RoundOf(m));
  }
  if (members <= 2) return MaxRound();
  std::ranges::sort(rounds, std::greater());
  return rounds.size() > 1 ? rounds[1] : 0;
}

uint64_t MemberRounds::FutureRound(absl::Duration interval) const {
  std::vector<double> speeds;
  for (const MemberRecord& m : roster_.members()) {
    const double s = roster_.live(m.id).report.rounds_per_second;
    if (IsMemberOrLeaving(m) && std::isfinite(s)) speeds.push_back(s);
  }
  double speed = 0;
  if (!speeds.empty()) {
    // A member that is behind is fast, since it waits for no other one; the
    // first one waits for all.
    const auto middle = speeds.begin() + static_cast<long>(speeds.size() / 2);
    std::ranges::nth_element(speeds, middle);
    speed = std::clamp(*middle, 0.0, kMaxRoundsPerSecond);
  }
  const double slack =
      kHeartbeatsOfSlack * absl::ToDoubleSeconds(interval) * speed;
  const uint64_t reached = MaxRound() +
                           static_cast<uint64_t>(std::ceil(slack)) +
                           (speed > 0 ? kMinSlack : kSlackUnknown);
  // A view that no member can have begun is replaced where it was to begin:
  // were the next one put behind it, a storm of them would end up far ahead of
  // all.
  return std::min(kMaxRound, std::max(view_.from_round, reached));
}

double MemberRounds::SlowestBusy() const {
  double slowest = 0;
  for (const MemberRecord& m : roster_.members()) {
    const double busy = roster_.live(m.id).report.timing.busy_seconds;
    if (IsMemberOrLeaving(m) && std::isfinite(busy))
      slowest = std::max(slowest, busy);
  }
  return slowest;
}

}  // namespace gossamer
