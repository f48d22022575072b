// The rounds that the members of a fleet have got to, and the round from which
// on something new can hold for all of them.
//
// Answers from what the roster has heard; keeps nothing.

#ifndef GOSSAMER_TOPOLOGY_FLEET_MEMBER_ROUNDS_H_
#define GOSSAMER_TOPOLOGY_FLEET_MEMBER_ROUNDS_H_

#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "topology/fleet/roster.h"
#include "topology/view.h"

namespace gossamer {

// Rounds that one member can be ahead of all others: hours of training.
inline constexpr uint64_t kMaxAhead = 1'000'000;

// Judges the rounds that members report, among them those of a faulty one.
class MemberRounds {
 public:
  // All of them outlive this object; `view` is the present one.
  MemberRounds(const Roster& roster, const View& view, absl::Duration heartbeat)
      : roster_(roster), view_(view), heartbeat_(heartbeat) {}

  // Rounds of the members, the largest first, without one that is too far ahead
  // of all others to be true.
  std::vector<uint64_t> Rounds() const;
  uint64_t MaxRound() const;
  // The largest that two members with a lease have got to; of two members, the
  // largest.
  uint64_t FleetRound(absl::Time now) const;
  // The first round that no member begins before it hears of what is decided
  // now, and not before the present view begins.  Members send heartbeats in
  // the fleet's interval, or in this one.
  uint64_t FutureRound() const { return FutureRound(heartbeat_); }
  uint64_t FutureRound(absl::Duration interval) const;
  // Seconds of a round without waiting at the slowest member; 0: not known.
  double SlowestBusy() const;

 private:
  uint64_t RoundOf(const MemberRecord& m) const;
  // The largest round in which `m` can be.
  uint64_t MostOf(const MemberRecord& m, absl::Time now) const;

  const Roster& roster_;
  const View& view_;
  const absl::Duration heartbeat_;
};

}  // namespace gossamer

#endif  // GOSSAMER_TOPOLOGY_FLEET_MEMBER_ROUNDS_H_
