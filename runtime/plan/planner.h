// Which ring order, graph, codec and overlap a network wants: every candidate
// with what it is predicted to do, best first.
//
// Pure.  Knows nothing of where the network's numbers came from, of printing,
// and of processes.  Its numbers are predictions; `gossamer plan --check`
// compares some with runs.

#ifndef GOSSAMER_RUNTIME_PLAN_PLANNER_H_
#define GOSSAMER_RUNTIME_PLAN_PLANNER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/plan/link_times.h"
#include "runtime/plan/round_clock.h"
#include "topology/mixing_schedule.h"
#include "topology/site_clusters.h"

namespace gossamer {

// Bytes that a codec reads and writes in a second; those of the default codecs
// measured by codec_benchmark are 15 to 33 on one core (algorithms/compress).
inline constexpr double kCodecBytesPerSecond = 15e9;

struct PlanRequest {
  LinkTimes links;
  size_t parameters = 0;
  double step_seconds = 0;
  double codec_bytes_per_second = kCodecBytesPerSecond;
  uint64_t seed = 1;  // of random schedules
};

struct Candidate {
  std::string name;  // "best ring", "ring", "torus", "permuted-ring", ...
  ScheduleSpec schedule;
  std::string codec;
  int overlap = 0;
  double gamma = 0;  // the runtime takes it by itself
  double seconds_per_round = 0;
  double busy_seconds = 0;        // of a round if the network cost nothing
  double exchange_seconds = 0;    // the longest
  double consensus_distance = 0;  // for steps with noise of variance 1
  double contraction = 0;         // of W, at gamma 1 and without delay
  double bytes_per_round = 0;     // sent by a peer, mean
};

struct Plan {
  // Best first: of those within kAlike of the fastest, of those within kAlike
  // of the closest together, the one that sends least, with the least overlap;
  // then the same of the rest.
  std::vector<Candidate> candidates;
  AllReducePrediction centralized;  // of gradients in f32
  SiteClusters sites;               // by round trips, in seconds
};

// What predictions cannot tell apart.
inline constexpr double kAlike = 0.03;

// All graphs that the number of peers allows, five codecs, overlaps 0 to 8;
// graphs that are the same count once.  Model: two matrices, as large together
// as `parameters`; biases, which travel in bf16, add well under a percent.
// kInvalidArgument says what of `request` cannot be: fewer than 2 peers, times
// that are negative or no numbers, no parameters.
absl::StatusOr<Plan> MakePlan(const PlanRequest& request);

// One graph, codec and overlap: the same predictions for `wanted`'s name,
// schedule, codec and overlap.  kInvalidArgument: what cannot be.
absl::StatusOr<Candidate> Predict(const PlanRequest& request,
                                  const Candidate& wanted);

// Its rounds take no longer than they would without a network.
bool Hidden(const Candidate& candidate);

// "mixing { ... }" for a configuration file.
std::string ConfigurationOf(const Candidate& candidate);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_PLAN_PLANNER_H_
