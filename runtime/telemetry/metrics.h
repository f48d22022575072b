// The numbers of one round of one peer, its events, and the interface that
// takes them.
//
// This header knows nothing of files or terminals: sinks do.

#ifndef GOSSAMER_RUNTIME_TELEMETRY_METRICS_H_
#define GOSSAMER_RUNTIME_TELEMETRY_METRICS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "algorithms/game/player_losses.h"
#include "topology/fleet/event_kind.h"

namespace gossamer {

// The clipping of a peer's corrections (mixing.clip_radius).
struct ClipMetrics {
  uint64_t clipped = 0;  // shortened, since start
  // The longest difference between this peer and a neighbour in the round,
  // shortened or not: root mean square over parameters.
  double longest = 0;
};

// The score of a round's generator, which may come some rounds later.
struct RoundScore {
  uint64_t round = 0;
  double value = 0;
  friend bool operator==(const RoundScore&, const RoundScore&) = default;
};

struct RoundMetrics {
  uint64_t round = 0;
  uint64_t steps = 0;  // local steps so far
  absl::Time finished;
  PlayerLosses losses = {};      // of its last step
  double seconds_computing = 0;  // this round, in gradient and optimizer
  double seconds_waiting = 0;    // this round, for the network
  // The longest exchange that ended in this round, from its emission to the
  // arrival of the other end's part.  With overlap, steps hide most of it.
  double seconds_exchanging = 0;
  uint64_t bytes_sent = 0;  // since start
  uint64_t bytes_received = 0;
  // Exchanges since the start: completed with two payloads, skipped by this
  // end, completed after their deadline.
  uint64_t corrections = 0;
  uint64_t skipped = 0;
  uint64_t late = 0;
  std::optional<ClipMetrics> clipping = {};
  // Of the privacy budget, spent so far; of a student of votes.
  std::optional<double> epsilon = {};
  // Those that came in this round, of this one and of rounds before.
  std::vector<RoundScore> scores = {};
  // That of this round, once it is known (ReadMetrics).
  std::optional<double> score;
  std::string score_name;  // "proxy-fid"; empty without scores
};

// An occurrence that deserves a line in events.jsonl: a lost edge, a refused
// peer.
struct Event {
  absl::Time time;
  uint64_t round = 0;
  EventKind kind;
  std::string detail;  // one line for people
  // The number of occurrences that this line stands for (Throttle,
  // algorithms/base/throttle.h).
  uint64_t times = 1;
};

// A receiver of rounds and events.  Called on the peer's loop; must not block
// for long.
class MetricsSink {
 public:
  virtual ~MetricsSink() = default;
  virtual void OnRound(const RoundMetrics& metrics) = 0;
  virtual void OnEvent(const Event& event) = 0;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TELEMETRY_METRICS_H_
