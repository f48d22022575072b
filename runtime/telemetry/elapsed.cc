#include "runtime/telemetry/elapsed.h"

#include <algorithm>
#include <cstddef>

namespace gossamer {
namespace {

double Interval(const std::vector<RoundMetrics>& rounds, size_t i) {
  return absl::ToDoubleSeconds(rounds[i].finished - rounds[i - 1].finished);
}

// Returns whether another process wrote this round: its counter of bytes began
// again at 0.
bool NewIncarnation(const std::vector<RoundMetrics>& rounds, size_t i) {
  return rounds[i].bytes_sent < rounds[i - 1].bytes_sent;
}

double MedianInterval(const std::vector<RoundMetrics>& rounds) {
  std::vector<double> intervals;
  for (size_t i = 1; i < rounds.size(); ++i) {
    intervals.push_back(Interval(rounds, i));
  }
  if (intervals.empty()) return 0;
  const auto middle =
      intervals.begin() + static_cast<ptrdiff_t>(intervals.size() / 2);
  std::nth_element(intervals.begin(), middle, intervals.end());
  return *middle;
}

}  // namespace

std::vector<Elapsed> ElapsedOf(const std::vector<RoundMetrics>& rounds) {
  const double median = MedianInterval(rounds);
  // An interval that is far beyond the others is a pause that no counter shows,
  // such as a machine that slept.
  const double longest = std::max(60.0, 100 * median);
  std::vector<Elapsed> all;
  for (size_t i = 0; i < rounds.size(); ++i) {
    const uint64_t bytes = rounds[i].bytes_sent;
    if (i == 0) {
      all.push_back({0, bytes});
      continue;
    }
    const bool anew = NewIncarnation(rounds, i);
    const double seconds = Interval(rounds, i);
    // A clock that was set back gives an interval of 0 or less.
    const bool pause = anew || seconds <= 0 || seconds > longest;
    all.push_back({all[i - 1].seconds + (pause ? median : seconds),
                   all[i - 1].bytes_sent +
                       (anew ? bytes : bytes - rounds[i - 1].bytes_sent)});
  }
  return all;
}

}  // namespace gossamer
