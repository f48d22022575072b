// The time that a round waits for an edge, learnt from the edge itself
// (PROTOCOL.md 10), and for the first exchanges of a new edge from the others.
//
// Pure; knows nothing of clocks or edges.

#ifndef GOSSAMER_RUNTIME_NEIGHBORHOOD_DEADLINE_H_
#define GOSSAMER_RUNTIME_NEIGHBORHOOD_DEADLINE_H_

#include <deque>
#include <optional>

#include "absl/time/time.h"

namespace gossamer {

struct DeadlinePolicy {
  enum class Kind { kNone, kAdaptive, kFixed };
  Kind kind = Kind::kNone;
  absl::Duration fixed;
};

class DeadlineEstimator {
 public:
  explicit DeadlineEstimator(DeadlinePolicy policy) : policy_(policy) {}

  // An exchange's payload arrived this long after its emission here, whether
  // in time or late.
  void Record(absl::Duration arrival);
  // One has not arrived for this long, and is not looked for any more.
  void RecordMissing(absl::Duration age);

  // The median of the last arrivals; nullopt before the first.
  std::optional<absl::Duration> Typical() const;

  // Returns the time after its emission for which an exchange is waited for,
  // given the length of a round; infinite without a deadline.  `possible`: the
  // time in which exchanges can be had at all, by the other edges.  Fixed: at
  // least that, as far as it may count.  Adaptive: of the last arrivals the
  // median plus the larger of 4·MAD and a quarter of a round; at least 50 ms,
  // at most the larger of a second and half a round, plus the transfer (the
  // fastest that arrived), and at most four times `possible`: a peer that needs
  // more is slow, and not waited for.  Of the first 8 exchanges: what `peer`,
  // the arrivals of all edges of this peer, says of them, or the longest of
  // them so far within the same bound.
  absl::Duration Limit(absl::Duration round, const DeadlineEstimator& peer,
                       std::optional<absl::Duration> possible = {}) const;

 private:
  absl::Duration Learnt(absl::Duration round) const;
  absl::Duration Most(absl::Duration round) const;
  absl::Duration ForNewEdge(absl::Duration round) const;

  DeadlinePolicy policy_;
  std::deque<absl::Duration> arrivals_;  // or what is known of them
  std::deque<absl::Duration> heard_;     // only those that came
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_NEIGHBORHOOD_DEADLINE_H_
