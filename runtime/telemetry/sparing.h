// Says when to tell of what may happen any number of times: at the first, the
// tenth, the hundredth, and so on, so that nobody who repeats it fills a disk.
//
// Pure; knows nothing of what happens.

#ifndef GOSSAMER_RUNTIME_TELEMETRY_SPARING_H_
#define GOSSAMER_RUNTIME_TELEMETRY_SPARING_H_

#include <cstdint>
#include <utility>

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

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TELEMETRY_SPARING_H_
