// A sink that counts the events it hands on.  This header knows nothing of what
// becomes of them.

#ifndef GOSSAMER_RUNTIME_TELEMETRY_COUNTING_SINK_H_
#define GOSSAMER_RUNTIME_TELEMETRY_COUNTING_SINK_H_

#include "runtime/telemetry/metrics.h"
#include "topology/fleet/event_tally.h"

namespace gossamer {

class CountingSink final : public MetricsSink {
 public:
  // Both outlive this.
  CountingSink(MetricsSink* sink, EventTally* counts)
      : sink_(sink), counts_(counts) {}
  void OnRound(const RoundMetrics& metrics) override {
    sink_->OnRound(metrics);
  }
  void OnEvent(const Event& event) override {
    counts_->Add(event.kind, event.times);
    sink_->OnEvent(event);
  }

 private:
  MetricsSink* const sink_;
  EventTally* const counts_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TELEMETRY_COUNTING_SINK_H_
