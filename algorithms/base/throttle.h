// A limit on how often an event that repeats is reported, so that a peer that
// repeats it fills no disk: the first, the tenth, the hundredth time and so on,
// or once in a while.
//
// This header is pure and knows nothing of the events.

#ifndef GOSSAMER_ALGORITHMS_BASE_THROTTLE_H_
#define GOSSAMER_ALGORITHMS_BASE_THROTTLE_H_

#include <cstdint>
#include <utility>

#include "absl/time/time.h"

namespace gossamer {

// One object is asked by count or by time, never by both.
class Throttle {
 public:
  // An event that others can cause as fast as they like is reported at most
  // once in this time.
  static constexpr absl::Duration kApart = absl::Seconds(10);

  // `apart`: between two reports, where it is asked by time.
  explicit Throttle(absl::Duration apart) : apart_(apart) {}
  Throttle() : Throttle(kApart) {}

  // The event has happened `seen` times by now.  Returns how many of them to
  // report, those since the last report; 0: not now.
  uint64_t Due(uint64_t seen) {
    return seen < 10 * reported_ ? 0 : TakeUnreported(seen);
  }
  // All occurrences that have not been reported, however few.
  uint64_t TakeUnreported(uint64_t seen) {
    return seen - std::exchange(reported_, seen);
  }

  // The event happens at `now`.  Returns as above.
  uint64_t Due(absl::Time now) {
    ++seen_;
    if (now - last_ <= apart_) return 0;
    last_ = now;
    return TakeUnreported(seen_);
  }
  // The number of times so far, if it is asked by time.
  uint64_t seen() const { return seen_; }

 private:
  absl::Duration apart_;
  uint64_t seen_ = 0;
  uint64_t reported_ = 0;
  absl::Time last_ = absl::InfinitePast();
};

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_BASE_THROTTLE_H_
