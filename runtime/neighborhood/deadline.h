// The time that a round waits for an edge, learnt from the edge itself
// (PROTOCOL.md 10), and for the first exchanges of a new edge from the others.
//
// This header is pure and knows nothing of clocks or edges.

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

  // Returns how long after its emission an exchange is waited for, given the
  // length of a round.  `all_edges`: of the arrivals on all edges of the peer.
  // `typical_of_half`: what half of its edges need, or the rounds behind which
  // an exchange hides if these take longer.
  //
  // - none: for ever.
  // - fixed: the configured time, or `typical_of_half` if that is longer, up to
  //   the cap.
  // - adaptive: median + max(4·MAD, round/4) of the last arrivals; at least
  //   50 ms, at most the cap and 4·`typical_of_half`, as a peer that needs
  //   more is slow.
  //
  // The cap is max(1 s, round/2) plus the fastest arrival.  With fewer than 8
  // arrivals `adaptive` takes up to four times the estimate from `all_edges`,
  // or this edge's longest arrival within the cap, if longer.  While
  // `all_edges`, too, has fewer than 8, it is 30 s and a round.
  absl::Duration Limit(
      absl::Duration round, const DeadlineEstimator& all_edges,
      std::optional<absl::Duration> typical_of_half = {}) const;

 private:
  absl::Duration Learnt(absl::Duration round) const;
  absl::Duration Most(absl::Duration round) const;
  absl::Duration ForNewEdge(absl::Duration round) const;

  DeadlinePolicy policy_;
  std::deque<absl::Duration> arrivals_;  // or what is known of them
  std::deque<absl::Duration> arrived_;   // only those that came
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_NEIGHBORHOOD_DEADLINE_H_
