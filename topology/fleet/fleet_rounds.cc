// How far a Fleet is, where its next view may begin, and on which round it
// ends.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "algorithms/base/seeded_bug.h"
#include "topology/fleet/fleet.h"
#include "topology/fleet/protocol.h"

namespace gossamer {
namespace {

// Heartbeats that a peer may need to learn of a round to come: one on its way,
// one lost, one to spare.
constexpr double kHeartbeatsOfSlack = 3;
// And rounds beyond those that they take; more where nobody has told a speed.
constexpr uint64_t kLeastSlack = 2;
constexpr uint64_t kSlackUnknown = 8;
constexpr double kMaxRoundsPerSecond = 1e6;
// Of one member, in rounds, before all others: hours of training.
constexpr uint64_t kMostAhead = 1'000'000;

}  // namespace

uint64_t Fleet::RoundOf(const MemberRecord& m) const {
  const Live& live = live_.at(m.id);
  return std::max(live.round_begun, live.report.round);
}

// Nobody trains so far alone while others do: one such number must not put off
// views, stops and rounds of all others.  Those who have not told theirs yet,
// as after a restart of the service, are in the view at least.  Who is alone is
// believed: nobody knows better.
uint64_t Fleet::MostOf(const MemberRecord& m, absl::Time now) const {
  bool alone = true;
  uint64_t others = 0;
  for (const MemberRecord& o : record_.members) {
    if (!OfTheFleet(o) || o.id == m.id) continue;
    others = std::max(others, RoundOf(o));
    const bool trains = (o.in_view || live_.at(o.id).trains) && !o.finished;
    if (!trains || Lost(o, now)) continue;
    alone = false;
    if (RoundOf(o) == 0) others = std::max(others, record_.view.from_round);
  }
  return alone ? kMaxRound : others + kMostAhead;
}

std::vector<uint64_t> Fleet::Rounds() const {
  std::vector<uint64_t> rounds;
  const MemberRecord* furthest = nullptr;
  absl::Time newest = absl::InfinitePast();
  for (const MemberRecord& m : record_.members) {
    if (!OfTheFleet(m)) continue;
    rounds.push_back(RoundOf(m));
    newest = std::max(newest, live_.at(m.id).last_heard);
    if (furthest == nullptr || RoundOf(m) > RoundOf(*furthest)) furthest = &m;
  }
  std::ranges::sort(rounds, std::greater());
  if (furthest != nullptr && rounds[0] > MostOf(*furthest, newest)) {
    rounds.erase(rounds.begin());
  }
  return rounds;
}

// No peer jumps beyond it, so one alone must not say it.  Of two members nobody
// can tell who is right.
uint64_t Fleet::FleetRound(absl::Time now) const {
  int members = 0;
  std::vector<uint64_t> rounds;
  for (const MemberRecord& m : record_.members) {
    if (!OfTheFleet(m)) continue;
    ++members;
    if (HasLease(m, now)) rounds.push_back(RoundOf(m));
  }
  if (members <= 2) return MaxRound();
  std::ranges::sort(rounds, std::greater());
  return rounds.size() > 1 ? rounds[1] : 0;
}

bool Fleet::HeardAll(absl::Time now) const {
  return std::ranges::all_of(record_.members, [&](const MemberRecord& m) {
    return !OfTheFleet(m) || !m.in_view || m.finished || Lost(m, now) ||
           live_.at(m.id).last_heard != absl::InfinitePast();
  });
}

uint64_t Fleet::MaxRound() const {
  const std::vector<uint64_t> rounds = Rounds();
  return rounds.empty() ? 0 : rounds[0];
}

uint64_t Fleet::FutureRound() const {
  std::vector<double> speeds;
  for (const MemberRecord& m : record_.members) {
    const double s = live_.at(m.id).report.rounds_per_second;
    if (OfTheFleet(m) && std::isfinite(s)) speeds.push_back(s);
  }
  double speed = 0;
  if (!speeds.empty()) {
    // Who is behind is fast, since it waits for nobody; who is in front waits.
    const auto middle = speeds.begin() + static_cast<long>(speeds.size() / 2);
    std::ranges::nth_element(speeds, middle);
    speed = std::clamp(*middle, 0.0, kMaxRoundsPerSecond);
  }
  const double slack =
      kHeartbeatsOfSlack * absl::ToDoubleSeconds(options_.heartbeat) * speed;
  const uint64_t reached = MaxRound() +
                           static_cast<uint64_t>(std::ceil(slack)) +
                           (speed > 0 ? kLeastSlack : kSlackUnknown);
  // A view that nobody can have begun is replaced where it was to begin: were
  // the next one put behind it, a storm of them would end up far ahead of all.
  return std::min(kMaxRound, std::max(record_.view.from_round, reached));
}

absl::StatusOr<uint64_t> Fleet::RequestStop(absl::Time now) {
  if (!record_.assembled) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "the run has not begun: %d of %d peers have registered; end the peers "
        "themselves",
        registered(), options_.expected));
  }
  if (record_.stop.round == 0 && !Finished()) {
    record_.stop = {.round = FutureRound(), .committed = false};
    ++version_;
  }
  AdvanceStop(now);
  return record_.stop.round;
}

// One that a peer knows of and this service does not: its disk is old or lost.
// Some may have heard that all agreed to it, and end there.
void Fleet::HearOfStop(uint64_t acknowledged) {
  StopState& stop = record_.stop;
  if (stop.committed || acknowledged <= stop.round || Finished()) return;
  // Nobody has proposed that: once agreed to it would never come.
  if (acknowledged > FutureRound() + kMostAhead) return;
  stop.round = acknowledged;
  ++version_;
}

void Fleet::AdvanceStop(absl::Time now) {
  StopState& stop = record_.stop;
  if (stop.round == 0 || stop.committed) return;
  bool all = true;
  bool none = true;  // is asked
  // When the last of those who agreed was heard, and the last lease of those
  // who are lost ended.
  absl::Time agreed = absl::InfinitePast(), lost = absl::InfinitePast();
  const uint64_t furthest = MaxRound();
  for (const MemberRecord& m : record_.members) {
    if (m.finished || !OfTheFleet(m)) continue;
    // Who waits for parameters has no round to stop at, and those that could
    // give them may wait for the stop.
    if (!m.in_view && m.needs_parameters) continue;
    // Who leaves by then has no part in that round; it may be waiting for the
    // last answers of those that stand there.
    const std::optional<uint64_t> departure = record_.view.DepartureOf(m.id);
    if (departure && *departure <= stop.round) continue;
    const Live& live = live_.at(m.id);
    none = false;
    // It cannot be there, as far as the others have been heard.
    if (live.round_begun > furthest) {
      all = all && HeardAll(now);
      continue;
    }
    if (live.round_begun >= stop.round) {
      // Too late for this one: a later round for all.
      stop.round = FutureRound();
      ++version_;
      return;
    }
    if (live.acknowledged_stop == stop.round) {
      agreed = std::max(agreed, live.last_heard);
      continue;
    }
    // A lost peer does not keep the others: if it comes back it stops at once
    // or at this round.
    if (!Lost(m, now)) all = SeededBug("commit-unacknowledged");
    lost = std::max(lost, live.last_heard + options_.lease);
  }
  // Where nobody is heard any more it is this service that hears nobody: those
  // who do not know of the stop may be past it when they are heard again.
  const bool heard = none || agreed > lost;
  if (!all || !(heard || SeededBug("commit-unacknowledged"))) return;
  stop.committed = true;
  ++version_;
}

StopState Fleet::Ended() const {
  return {.round = std::max<uint64_t>(1, MaxRound()), .committed = true};
}

}  // namespace gossamer
