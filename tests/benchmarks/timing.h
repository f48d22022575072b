// The clock of the benchmarks.  This header knows nothing of what they run.

#ifndef GOSSAMER_TESTS_BENCHMARKS_TIMING_H_
#define GOSSAMER_TESTS_BENCHMARKS_TIMING_H_

#include <algorithm>
#include <chrono>
#include <vector>

namespace gossamer {

inline double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
      .count();
}

// Returns the wall-clock seconds that `run` takes.
double Seconds(const auto& run) {
  const auto start = std::chrono::steady_clock::now();
  run();
  return SecondsSince(start);
}

// Returns the median, the upper one of two; needs at least one value.
inline double Median(std::vector<double> values) {
  const auto middle = values.begin() + values.size() / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace gossamer

#endif  // GOSSAMER_TESTS_BENCHMARKS_TIMING_H_
