// Parses and prints rates, sizes and durations as people write them: "100mbit",
// "8MB", "40ms".
//
// This header knows nothing of what the values are for.

#ifndef GOSSAMER_RUNTIME_LAB_UNITS_H_
#define GOSSAMER_RUNTIME_LAB_UNITS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace gossamer {

// The message of every error continues after a field's name: 'is "5"; write
// ...'.

// Returns bytes per second; "unlimited" is 0.  The range is 1 kbit to 1,000
// Gbit a second.
absl::StatusOr<uint64_t> ParseRate(std::string_view text);
// Returns bytes, 64 KB to 1 GB.
absl::StatusOr<uint64_t> ParseQueueSize(std::string_view text);
// Returns nanoseconds, from 0 to `max_seconds`.
absl::StatusOr<int64_t> ParseNanos(std::string_view text, double max_seconds);

// Returns "100 Mbit/s" or "unlimited".
std::string RateText(uint64_t bytes_per_second);
// Returns "12.5 ms".
std::string MillisText(int64_t nanos);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_LAB_UNITS_H_
