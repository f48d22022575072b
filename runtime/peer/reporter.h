// The reports of a peer: events and metrics for its files, one of each round
// for the topology service, and the round timing that both contain.
//
// This header knows nothing of where lines go, or of what a round does.

#ifndef GOSSAMER_RUNTIME_PEER_REPORTER_H_
#define GOSSAMER_RUNTIME_PEER_REPORTER_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "algorithms/base/throttle.h"
#include "algorithms/kernels/device_queue.h"
#include "runtime/base/event_loop.h"
#include "runtime/base/recent_values.h"
#include "runtime/neighborhood/neighborhood.h"
#include "runtime/peer/training_state.h"
#include "runtime/telemetry/metrics.h"
#include "topology/fleet/membership.h"

namespace gossamer {

class Reporter {
 public:
  // SketchPlayers of the parameters, which lie where the queue works.
  using Sketch = std::function<std::vector<double>(const DeviceQueue&,
                                                   DeviceSpan<const float>)>;

  // All of them outlive this object.
  Reporter(EventLoop* loop, Transport* transport, Membership* membership,
           const TrainingState* state, MetricsSink* sink, Sketch sketch);

  // An event of this round, which stands for so many `times`.
  void Report(EventKind kind, const std::string& detail, uint64_t times = 1);
  // Connections of unauthenticated others that were refused, those that were
  // given another congestion control, and those that were given more beside
  // them; `last`: of all that have not been reported yet.
  void ReportConnections(bool last);

  // The metrics of the round under way, which its trainer fills in.
  RoundMetrics& metrics() { return metrics_; }
  const RoundMetrics& metrics() const { return metrics_; }

  // A round that began at `started` has ended: its metrics, and what the
  // service learns, `recoveries` among it.
  void EndRound(absl::Time started, Neighborhood& neighborhood,
                uint64_t recoveries);

  // The last round once more, with the scores that metrics() has got since: for
  // the log, and for the service.
  void RepeatRound();

  // Moving average of a round.
  absl::Duration round_length() const { return round_length_; }
  // Seconds over the rounds since the view: a round without waiting, and its
  // longest exchange, if it has the present formats.
  double median_busy() const { return busy_.Quantile(0.5); }
  // Of a few exchanges the median: a queue of wider payloads may drain yet.
  double long_exchange() const {
    return exchanges_.Quantile(exchanges_.size() < kMany ? 0.5 : 0.9);
  }
  // Another view begins, whose rounds may take another time.
  void ResetRoundTiming();

 private:
  static constexpr size_t kMany = 10, kKept = 32;

  void ReportByCount(EventKind kind, Throttle& throttle, uint64_t seen,
                     std::string_view what, bool last);
  void MeasureRoundTiming(absl::Duration length, Neighborhood& neighborhood);
  void TakeSketch();

  EventLoop* const loop_;
  Transport* const transport_;
  Membership* const membership_;
  const TrainingState* const state_;
  MetricsSink* const sink_;
  const Sketch take_sketch_;
  RoundMetrics metrics_;
  Throttle unauthenticated_, congestion_, outgrown_;
  absl::Duration round_length_;
  bool warm_ = false;  // a first round is over
  // Seconds.
  RecentValues busy_{kKept}, exchanges_{kKept};
  uint64_t exchanged_ = 0;  // rounds with one of the present formats
  uint64_t sketch_every_ = 1;
  absl::Time sketched_ = absl::InfinitePast();
  std::vector<double> sketch_;
  uint64_t sketch_round_ = 0;
  // The newest score, which every report has: a beat tells the last report
  // alone.
  std::optional<double> score_;
  PeerReport last_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_PEER_REPORTER_H_
