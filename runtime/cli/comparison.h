// The numbers of several algorithms and networks side by side, game by game.
//
// Made from summaries and scores; knows nothing of how the runs were made.

#ifndef GOSSAMER_RUNTIME_CLI_COMPARISON_H_
#define GOSSAMER_RUNTIME_CLI_COMPARISON_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/telemetry/summary.h"

namespace gossamer {

struct ScorePoint {
  uint64_t round = 0;
  double seconds = 0;  // of training, since the first round
  double bytes = 0;    // sent by the first peer so far
  double score = 0;
};

struct ComparedRun {
  std::string game;  // the configuration's name
  std::string network = "local";
  std::string algorithm;
  uint64_t seed = 0;
  std::string folder;
  uint64_t images = 0;  // real examples that all peers together have seen
  RunSummary summary;
  std::vector<ScorePoint> scores;
};

// Mean and standard deviation (n - 1; 0 for one value); nothing without values.
struct Spread {
  double mean = 0;
  double deviation = 0;
};
std::optional<Spread> SpreadOf(const std::vector<double>& values);

// One algorithm in one network, over its seeds.
struct ComparedSetting {
  std::string network;
  std::string algorithm;
  std::vector<uint64_t> seeds;
  std::vector<double> images, last_score, best_score, rounds_per_second,
      bytes_per_round, consensus_distance, training_seconds;
  // Seconds of a round: computing, waiting for the network (the part of
  // communication that is not hidden), and one exchange, hidden or not.
  std::vector<double> computing, waiting, exchange;
  // Seconds and bytes until the score first reached the target, of the seeds
  // that reached it.
  std::vector<double> seconds_to_target, bytes_to_target;
};

// The comparison of one game.
struct Comparison {
  std::string game;
  std::string score_name;
  // The score that counts as good: the caller's, or else the worst of the runs'
  // best scores, which every run has reached.  It is at most twice their
  // median, so that a run that learnt nothing does not set it.  None without
  // scores.
  std::optional<double> target;
  std::vector<ComparedSetting> settings;  // in the order of first appearance
};

// Returns one comparison for each game, in the order of first appearance.
std::vector<Comparison> Compare(const std::vector<ComparedRun>& runs,
                                std::optional<double> target);

// Returns a table for people.
std::string FormatComparison(const Comparison& comparison);

// Returns {"games": [{"game", "score_name", "target", "settings": [{"network",
// "algorithm", "seeds", and for every list above its "..._mean" and
// "..._deviation"}], "runs": [{"network", "algorithm", "seed", "folder",
// "images", "summary"}]}]}; null where there is no value.
std::string ComparisonJson(const std::vector<Comparison>& comparisons,
                           const std::vector<ComparedRun>& runs);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_CLI_COMPARISON_H_
