// RoundMetrics and Events as lines of JSON, and back.
//
// The keys are those of the fields in metrics.h; times are RFC 3339 in UTC;
// what is not finite or not there is null or left out.  Knows nothing of who
// writes the file.

#ifndef GOSSAMER_RUNTIME_TELEMETRY_METRICS_LOG_H_
#define GOSSAMER_RUNTIME_TELEMETRY_METRICS_LOG_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/telemetry/metrics.h"

namespace gossamer {

// One line, without its end.
std::string ToJsonLine(const RoundMetrics& metrics);
std::string ToJsonLine(const Event& event);

// kDataLoss: not such a line.
absl::StatusOr<RoundMetrics> ParseMetricsLine(std::string_view line);

// The rounds of a metrics.jsonl and of the PATH.1 before it (jsonl_sink.h),
// ascending.  If a run went back to a checkpoint, the later incarnation of a
// round counts.  A last line that was cut is
// left out.  kNotFound; kDataLoss names the line.
absl::StatusOr<std::vector<RoundMetrics>> ReadMetrics(const std::string& path);

// How often each kind of event happened, by the lines of an events.jsonl: of
// all lives of the peer, also what was done again after a checkpoint.  Kinds of
// other releases count as well.  As of ReadMetrics otherwise.
using EventCounts = std::map<std::string, uint64_t>;
absl::StatusOr<EventCounts> CountEvents(const std::string& path);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TELEMETRY_METRICS_LOG_H_
