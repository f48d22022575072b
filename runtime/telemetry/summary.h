// summary.json: what a run came to, in numbers that a script can rely on.
//
// Made from what the peers logged; knows nothing of how it was trained.

#ifndef GOSSAMER_RUNTIME_TELEMETRY_SUMMARY_H_
#define GOSSAMER_RUNTIME_TELEMETRY_SUMMARY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/telemetry/metrics.h"
#include "runtime/telemetry/metrics_log.h"

namespace gossamer {

// A value with the round at which it was taken.
struct Sample {
  uint64_t round = 0;
  double value = 0;
};

// In summary.json every field has its own name as key; scores and distances
// have a second key for their round ("last_score", "last_score_round"), null
// if there is none.  Sums and means are over peers; times are in seconds.
struct RunSummary {
  std::string run;
  std::string algorithm;
  uint64_t peers = 0;
  uint64_t configuration_hash = 0;  // as 16 hexadecimal digits
  bool finished = false;            // all rounds, not stopped or failed
  uint64_t rounds = 0;              // that every peer has finished
  uint64_t steps = 0;               // of the peer with the fewest
  double training_seconds = 0;      // first to last round, without pauses
  double rounds_per_second = 0;     // of the slowest peer
  // In the later half of its rounds, when connections have found their speed
  // and `auto` its choice.
  double steady_rounds_per_second = 0;
  std::string score_name = "score";  // "proxy-fid"
  std::optional<Sample> first_score;
  std::optional<Sample> last_score;
  std::optional<Sample> best_score;          // the smallest
  std::optional<Sample> consensus_distance;  // the last
  double generator_loss = 0;                 // mean of the last tenth
  double discriminator_loss = 0;
  double bytes_per_round = 0;    // sent by one peer, mean
  double seconds_computing = 0;  // of one peer, mean
  double seconds_waiting = 0;
  double exchange_seconds = 0;  // an exchange, median over rounds and peers
  uint64_t corrections = 0;
  uint64_t skipped = 0;
  uint64_t late = 0;
  // With mixing.clip_radius, else without a key: corrections that were
  // shortened, and the longest difference of a round, median over rounds and
  // peers.
  std::optional<ClipMetrics> clipping;
  // How often each kind of event happened (event_kind.h); what never did is
  // left out.
  EventCounts events;
};

// Fills in all that follows from the rounds of each peer; the rest is the
// caller's.  Scores are the mean over the peers that evaluated that round.
RunSummary Summarize(const std::vector<std::vector<RoundMetrics>>& peers);

std::string ToJson(const RunSummary& summary);
// kDataLoss: not such a file's text.
absl::StatusOr<RunSummary> ParseSummary(const std::string& json);

// Replaces the file in one step.
absl::Status WriteTextFile(const std::string& path, const std::string& text);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TELEMETRY_SUMMARY_H_
