// A sink that logs the events that ask for an action, each kind at most once a
// minute, and hands all events on.  This header knows nothing of where the log
// goes.

#ifndef GOSSAMER_RUNTIME_TELEMETRY_LOGGING_SINK_H_
#define GOSSAMER_RUNTIME_TELEMETRY_LOGGING_SINK_H_

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "algorithms/base/plain_text.h"
#include "algorithms/base/throttle.h"
#include "runtime/telemetry/metrics.h"

namespace gossamer {

class LoggingSink final : public MetricsSink {
 public:
  // `sink` outlives this.
  LoggingSink(MetricsSink* sink,
              std::function<void(const std::string& line)> log)
      : sink_(sink), log_(std::move(log)) {}
  void OnRound(const RoundMetrics& metrics) override {
    sink_->OnRound(metrics);
  }
  void OnEvent(const Event& event) override {
    sink_->OnEvent(event);
    const EventInfo& info = event.kind.info();
    if (info.action.empty()) return;
    Throttle& throttle =
        throttles_.try_emplace(info.name, absl::Minutes(1)).first->second;
    if (throttle.Due(event.time) == 0) return;
    // Another peer may have written a part of the detail.
    constexpr size_t kMax = 1000;
    log_(absl::StrCat(std::string(info.name), ": ",
                      PlainText(event.detail, kMax), " (",
                      std::string(info.action), ")"));
  }

 private:
  MetricsSink* const sink_;
  const std::function<void(const std::string& line)> log_;
  std::map<std::string_view, Throttle> throttles_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TELEMETRY_LOGGING_SINK_H_
