// How often a peer's process has told of each kind of event.

#ifndef GOSSAMER_RUNTIME_TELEMETRY_EVENT_TALLY_H_
#define GOSSAMER_RUNTIME_TELEMETRY_EVENT_TALLY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>

#include "runtime/telemetry/event_kind.h"
#include "runtime/telemetry/metrics.h"

namespace gossamer {

class EventTally {
 public:
  void Add(EventKind kind, uint64_t times) {
    counts_[static_cast<size_t>(&kind.info() - kEventKinds)] += times;
  }
  // Those that were told of kinds that ask for something, by name.
  template <typename Map>
  void CopyTo(Map& counts) const {
    for (size_t i = 0; i < counts_.size(); ++i) {
      if (kEventKinds[i].action.empty() || counts_[i] == 0) continue;
      counts[std::string(kEventKinds[i].name)] = counts_[i];
    }
  }
  // What another program counted.  Names that are not in the catalogue here are
  // passed over: whatever it says, no more is kept than there are kinds.
  template <typename Map>
  void CopyFrom(const Map& counts) {
    for (size_t i = 0; i < counts_.size(); ++i) {
      const auto told = counts.find(std::string(kEventKinds[i].name));
      counts_[i] = told == counts.end() ? 0 : told->second;
    }
  }

 private:
  std::array<uint64_t, std::size(kEventKinds)> counts_ = {};
};

// Hands everything on, and counts.
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

#endif  // GOSSAMER_RUNTIME_TELEMETRY_EVENT_TALLY_H_
