// RoundMetrics and Events as lines of JSON, and back.
//
// README.md lists the keys, to which loss_keys.h adds one a player; times are
// RFC 3339 in UTC.  Values that are not finite or not known are null or left
// out.  This header knows nothing of who writes the file.

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

// Returns one line, without its end.
std::string ToJsonLine(const RoundMetrics& metrics);
std::string ToJsonLine(const Event& event);

// Returns kDataLoss if the line is not one of round metrics.
absl::StatusOr<RoundMetrics> ParseMetricsLine(std::string_view line);

// Returns the rounds of a metrics.jsonl and of the PATH.1 before it
// (jsonl_sink.h), ascending.  If a run went back to a checkpoint, the later
// line of a round counts.  Each score is that of its round, whichever line has
// it.  A last line that was cut is left out.  Returns
// kNotFound without the file, kDataLoss with the number of a bad line.
absl::StatusOr<std::vector<RoundMetrics>> ReadMetrics(const std::string& path);

// Returns how often each kind of event happened, by the lines of an
// events.jsonl.  All incarnations of the peer count, also rounds that were done
// again after a checkpoint, and kinds of other releases.  Errors are those of
// ReadMetrics.
using EventCounts = std::map<std::string, uint64_t>;
absl::StatusOr<EventCounts> CountEvents(const std::string& path);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TELEMETRY_METRICS_LOG_H_
