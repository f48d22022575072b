// Says when to tell of what may happen any number of times: at the first, the
// tenth, the hundredth, and so on, so that nobody who repeats it fills a disk.
//
// Or once in a while, where each time may have another reason.
//
// Pure; knows nothing of what happens.

#ifndef GOSSAMER_ALGORITHMS_BASE_SPARING_H_
#define GOSSAMER_ALGORITHMS_BASE_SPARING_H_

#include <cstdint>
#include <utility>

#include "absl/time/time.h"

namespace gossamer {

class Sparing {
 public:
  // It has happened `seen` times by now.  How many of them to tell of, those
  // since the last time; 0: not now.
  uint64_t Due(uint64_t seen) { return seen < 10 * told_ ? 0 : Rest(seen); }
  // All that has not been told, however little.
  uint64_t Rest(uint64_t seen) { return seen - std::exchange(told_, seen); }

 private:
  uint64_t told_ = 0;
};

class Seldom {
 public:
  explicit Seldom(absl::Duration apart) : apart_(apart) {}
  // It happens at `now`, and has so often by then; 0: not to be told of.
  uint64_t Due(absl::Time now) {
    ++seen_;
    if (now - told_ <= apart_) return 0;
    told_ = now;
    return seen_;
  }

 private:
  const absl::Duration apart_;
  uint64_t seen_ = 0;
  absl::Time told_ = absl::InfinitePast();
};

// What others can bring about as fast as they like, and whoever reads a log
// wants to see each time: at once, then a line in `apart` at most.
class Repeated {
 public:
  explicit Repeated(absl::Duration apart) : seldom_(apart) {}
  Repeated() : Repeated(absl::Seconds(10)) {}
  // It happens at `now`.  How many to tell of, those since the last time.
  uint64_t Due(absl::Time now) {
    const uint64_t seen = seldom_.Due(now);
    return seen == 0 ? 0 : told_.Rest(seen);
  }

 private:
  Seldom seldom_;
  Sparing told_;
};

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_BASE_SPARING_H_
