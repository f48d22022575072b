// Rates, sizes and durations as people write them: "100mbit", "8MB", "40ms".
//
// Knows nothing of what they are of.

#ifndef GOSSAMER_RUNTIME_LAB_UNITS_H_
#define GOSSAMER_RUNTIME_LAB_UNITS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace gossamer {

// Messages of all errors go on after the name of a field: 'is "5"; write ...'.

// Bytes per second; "unlimited" is 0.  1 kbit to 1,000 Gbit a second.
absl::StatusOr<uint64_t> ParseRate(std::string_view text);
// Bytes, 64 KB to 1 GB.
absl::StatusOr<uint64_t> ParseQueueSize(std::string_view text);
// Nanoseconds, 0 or more, at most `most_seconds`.
absl::StatusOr<int64_t> ParseNanos(std::string_view text, double most_seconds);

// "100 Mbit/s", "unlimited".
std::string RateText(uint64_t bytes_per_second);
// "12.5 ms".
std::string MillisText(int64_t nanos);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_LAB_UNITS_H_
