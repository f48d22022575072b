// The time by which programs wait and measure.
//
// Only differences of two such times have a meaning: the clock behind them
// ignores changes of the machine's date.  Displays and certificates use
// absl::Now(); code on a loop asks the loop (event_loop.h).

#ifndef GOSSAMER_RUNTIME_BASE_STEADY_TIME_H_
#define GOSSAMER_RUNTIME_BASE_STEADY_TIME_H_

#include <chrono>

#include "absl/time/time.h"

namespace gossamer {

inline absl::Time SteadyNow() {
  return absl::UnixEpoch() +
         absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_BASE_STEADY_TIME_H_
