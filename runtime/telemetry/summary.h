// summary.json: the outcome of a run in numbers that a script can rely on.
//
// Made from the peers' logs; knows nothing of how the run was trained.

#ifndef GOSSAMER_RUNTIME_TELEMETRY_SUMMARY_H_
#define GOSSAMER_RUNTIME_TELEMETRY_SUMMARY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/telemetry/metrics.h"
#include "runtime/telemetry/metrics_log.h"

namespace gossamer {

// A value and the round at which it was taken.
struct Sample {
  uint64_t round = 0;
  double value = 0;
};

// In summary.json the name of every field is its key; losses have a key a
// player ("generator_loss").  Scores and distances have a second key for their
// round ("last_score", "last_score_round"); both are null without a value.
// Sums and means are over peers; times are in seconds.
struct RunSummary {
  std::string run;
  std::string algorithm;
  uint64_t peers = 0;
  uint64_t configuration_hash = 0;  // written as 16 hexadecimal digits
  // All rounds are done: not stopped or failed.
  bool finished = false;
  uint64_t rounds = 0;  // rounds that every peer has finished
  uint64_t steps = 0;   // steps of the peer with the fewest
  // From the first to the last round, without pauses.
  double training_seconds = 0;
  double rounds_per_second = 0;  // of the slowest peer
  // The rate in the later half of the rounds, when connections have found their
  // speed and `auto` its choice.
  double steady_rounds_per_second = 0;
  std::string score_name = "score";  // "proxy-fid"
  std::optional<Sample> first_score;
  std::optional<Sample> last_score;
  std::optional<Sample> best_score;          // the smallest
  std::optional<Sample> consensus_distance;  // the last
  // The mean of each player over the last tenth of the rounds.
  PlayerLosses losses;
  double bytes_per_round = 0;    // sent by one peer, the mean
  double seconds_computing = 0;  // of one peer, the mean
  double seconds_waiting = 0;
  // One exchange: the median over rounds and peers.
  double exchange_seconds = 0;
  uint64_t corrections = 0;
  uint64_t skipped = 0;
  uint64_t late = 0;
  // The shortened corrections, and the longest difference of a round as the
  // median over rounds and peers.  Without mixing.clip_radius there is no key.
  std::optional<ClipMetrics> clipping;
  // Of the privacy budget, spent at the end; without algorithm datalens there
  // is no key.
  std::optional<double> epsilon;
  // The number of events of each kind (event_kind.h); kinds that never happened
  // are left out.
  EventCounts events;
};

// Fills in all fields that follow from the rounds of each peer; the caller sets
// the others.  Scores are the mean over the peers that evaluated the round.
RunSummary Summarize(const std::vector<std::vector<RoundMetrics>>& peers);

std::string ToJson(const RunSummary& summary);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TELEMETRY_SUMMARY_H_
