#include "runtime/neighborhood/deadline.h"

#include <algorithm>
#include <vector>

namespace gossamer {
namespace {

// Fewer arrivals say little of their deviation.
constexpr size_t kFirstExchanges = 8;
// A history of this length holds a slow moment, and forgets it after as many
// exchanges.
constexpr size_t kHistory = 32;
// A process waits for tens of milliseconds now and then where more of them run
// than there are cores.
constexpr absl::Duration kMin = absl::Milliseconds(50);
// An edge may need this many times what half of the edges need; beyond it the
// other end is slow, and mixes in its own rounds.
constexpr int kTimesSlower = 4;
// The wait of a fleet that begins: first steps compile and warm up.
constexpr absl::Duration kFirstOfFleet = absl::Seconds(30);

absl::Duration Median(std::vector<absl::Duration> v) {
  std::nth_element(v.begin(), v.begin() + v.size() / 2, v.end());
  return v[v.size() / 2];
}

}  // namespace

void DeadlineEstimator::Record(absl::Duration arrival) {
  arrived_.push_back(arrival);
  if (arrived_.size() > kHistory) arrived_.pop_front();
  // Both lists have it: the one that came is also what is known.
  RecordMissing(arrival);
}

void DeadlineEstimator::RecordMissing(absl::Duration age) {
  arrivals_.push_back(age);
  if (arrivals_.size() > kHistory) arrivals_.pop_front();
}

std::optional<absl::Duration> DeadlineEstimator::Typical() const {
  if (arrivals_.empty()) return std::nullopt;
  return Median({arrivals_.begin(), arrivals_.end()});
}

absl::Duration DeadlineEstimator::Limit(
    absl::Duration round, const DeadlineEstimator& all_edges,
    std::optional<absl::Duration> typical_of_half) const {
  switch (policy_.kind) {
    case DeadlinePolicy::Kind::kNone:
      return absl::InfiniteDuration();
    case DeadlinePolicy::Kind::kFixed:
      // Rounds that wait for silent neighbours make the ages of what does not
      // come longer, and these the deadline: it must not feed on itself.
      return std::max(
          policy_.fixed,
          std::min(typical_of_half.value_or(policy_.fixed), Most(round)));
    case DeadlinePolicy::Kind::kAdaptive:
      break;
  }
  if (arrivals_.size() >= kFirstExchanges) {
    // The cap follows the other edges, so that one slow edge cannot teach its
    // own deadline upwards, round by round.
    const absl::Duration learnt = Learnt(round);
    if (!typical_of_half) return learnt;
    return std::min(learnt, std::max(kMin, kTimesSlower * *typical_of_half));
  }
  // The arrivals of other edges stand in until this edge has enough of its own;
  // a longer arrival of its own counts at once.
  const absl::Duration first = all_edges.ForNewEdge(round);
  if (arrivals_.empty()) return first;
  const absl::Duration longest = *std::ranges::max_element(arrivals_);
  return std::max(first, std::min(longest, Most(round)));
}

absl::Duration DeadlineEstimator::Learnt(absl::Duration round) const {
  const absl::Duration median = *Typical();
  std::vector<absl::Duration> deviations;
  for (absl::Duration d : arrivals_) {
    deviations.push_back(absl::AbsDuration(d - median));
  }
  // Ends that go in step a round apart answer within microseconds of each
  // other, round after round, and are not late for a millisecond more.
  const absl::Duration margin = std::max(4 * Median(deviations), round / 4);
  const absl::Duration wanted = std::max(median + margin, kMin);
  return std::min(wanted, Most(round));
}

absl::Duration DeadlineEstimator::Most(absl::Duration round) const {
  // The fastest arrival is the way itself, which no waiting shortens.
  const absl::Duration most = std::max(absl::Seconds(1), round / 2);
  return arrived_.empty() ? most : most + *std::ranges::min_element(arrived_);
}

// The two ends may have been apart before, and the new one's way may be the
// longer.  A peer that no edge has taught anything is in a fleet that begins,
// whose first steps compile and warm up for as long as they like: it waits for
// what is certainly wrong.
absl::Duration DeadlineEstimator::ForNewEdge(absl::Duration round) const {
  if (arrivals_.size() < kFirstExchanges) return kFirstOfFleet + round;
  const absl::Duration others = Learnt(round);
  return std::max(others, std::min(4 * others, absl::Seconds(1) + round));
}

}  // namespace gossamer
