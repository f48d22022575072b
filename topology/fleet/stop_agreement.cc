#include "topology/fleet/stop_agreement.h"

#include <algorithm>
#include <optional>

#include "algorithms/base/seeded_bug.h"

namespace gossamer {

void StopAgreement::Propose(absl::Time now) {
  if (!proposed() && !views_.Finished()) {
    state_ = {.round = rounds_.FutureRound(), .committed = false};
    ++version_;
  }
  Advance(now);
}

// Some peers may have heard that all agreed to the round, and end there: a stop
// that the disk has forgotten is proposed at that round again, and at the
// latest of several.
void StopAgreement::OnAcknowledged(uint64_t round) {
  if (state_.committed || round <= state_.round || views_.Finished()) return;
  // No incarnation of the service has proposed a round so far ahead: once
  // agreed to it would never come.
  if (round > rounds_.FutureRound() + kMaxAhead) return;
  state_.round = round;
  ++version_;
}

void StopAgreement::Advance(absl::Time now) {
  if (!proposed() || state_.committed) return;
  bool all = true;
  bool none = true;  // is asked
  // When the last of those that agreed was heard, and when the last lease of
  // those that are lost ended.
  absl::Time agreed = absl::InfinitePast(), lost = absl::InfinitePast();
  const uint64_t furthest = rounds_.MaxRound();
  for (const MemberRecord& m : roster_.members()) {
    if (m.finished || !IsMemberOrLeaving(m)) continue;
    // A member that waits for parameters has no round to stop at, and those
    // that could give them may wait for the stop.
    if (!m.in_view && m.needs_parameters) continue;
    // A member that leaves by then has no part in that round; it may be waiting
    // for the last answers of those that stand there.
    const std::optional<uint64_t> departure = views_.view().DepartureOf(m.id);
    if (departure && *departure <= state_.round) continue;
    const LiveMember& live = roster_.live(m.id);
    none = false;
    // The member cannot be there, as far as the others have been heard: its
    // number neither moves the stop nor keeps it, once all have been heard.
    if (live.round_begun > furthest) {
      all = all && roster_.HeardAll(now);
      continue;
    }
    if (live.round_begun >= state_.round) {
      // Too late for this member: a later round for all.
      state_.round = rounds_.FutureRound();
      ++version_;
      return;
    }
    if (live.acknowledged_stop == state_.round) {
      agreed = std::max(agreed, live.last_heard);
      continue;
    }
    // A lost member does not keep the others: if it comes back it stops at once
    // or at this round.
    if (!roster_.Lost(m, now)) all = SeededBug("commit-unacknowledged");
    lost = std::max(lost, live.last_heard + lease_);
  }
  // If no member is heard any more, the service itself is cut off: members that
  // do not know of the stop may be past it when they are heard again.
  const bool heard = none || agreed > lost;
  if (!all || !(heard || SeededBug("commit-unacknowledged"))) return;
  state_.committed = true;
  ++version_;
}

StopState StopAgreement::Ended() const {
  return {.round = std::max<uint64_t>(1, rounds_.MaxRound()),
          .committed = true};
}

}  // namespace gossamer
