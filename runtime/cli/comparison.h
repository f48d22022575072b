// The numbers of several algorithms side by side.
//
// Made from summaries; knows nothing of how the runs were done.

#ifndef GOSSAMER_RUNTIME_CLI_COMPARISON_H_
#define GOSSAMER_RUNTIME_CLI_COMPARISON_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/telemetry/summary.h"

namespace gossamer {

struct ComparedRun {
  std::string algorithm;
  uint64_t seed = 0;
  std::string folder;
  RunSummary summary;
};

// Mean and standard deviation (n - 1; 0 for one value); none of no values.
struct Spread {
  double mean = 0;
  double deviation = 0;
};
std::optional<Spread> SpreadOf(const std::vector<double>& values);

// A table for people, an algorithm a row, in the order of first appearance.
std::string FormatComparison(const std::vector<ComparedRun>& runs);

// {"algorithms": [{"algorithm", "seeds", "score_mean", "score_deviation",
// "best_score_mean", "rounds_per_second", "bytes_per_round",
// "consensus_distance", "training_seconds"}], "runs": [{"algorithm", "seed",
// "folder", "summary"}]}.  Means over seeds; null where there is none.
std::string ComparisonJson(const std::vector<ComparedRun>& runs);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_CLI_COMPARISON_H_
