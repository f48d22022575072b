// The time that a run had trained and the bytes that it had sent at each of its
// rounds, over all incarnations of a process that was stopped and went on.
//
// Made from the log of one peer; knows nothing of why it stopped.

#ifndef GOSSAMER_RUNTIME_TELEMETRY_ELAPSED_H_
#define GOSSAMER_RUNTIME_TELEMETRY_ELAPSED_H_

#include <cstdint>
#include <vector>

#include "runtime/telemetry/metrics.h"

namespace gossamer {

struct Elapsed {
  double seconds = 0;  // since the first round, without pauses
  uint64_t bytes_sent = 0;
};

// Returns one entry for each round, in order.  A pause is an interval in which
// a counter begins again at 0, as in a new process, or one over a minute and
// over a hundred times the median.  It counts as the median, because one round
// was trained in it.
std::vector<Elapsed> ElapsedOf(const std::vector<RoundMetrics>& rounds);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TELEMETRY_ELAPSED_H_
