// Refusals of the two ends of an edge, each of the other's frames.
//
// This header is pure and knows nothing of connections or of what was refused.

#ifndef GOSSAMER_RUNTIME_NEIGHBORHOOD_REFUSALS_H_
#define GOSSAMER_RUNTIME_NEIGHBORHOOD_REFUSALS_H_

#include <cstdint>
#include <span>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "algorithms/base/plain_text.h"
#include "algorithms/base/shared_bytes.h"
#include "algorithms/base/throttle.h"

namespace gossamer {

struct Refusals {
  // By this end.
  int violations = 0;
  absl::Time closed_until = absl::InfiniteFuture();  // if it is closed
  absl::Duration closed_for = {};                    // the last time
  // The reason, until it has been sent to the other end.
  std::string unreported = {};
  // By the other end, as it says.
  uint64_t reported_by_other = 0;
  Throttle throttle = {};  // in events
};

// The reason as the head of a frame of Channel::kNotice; and back, whatever the
// bytes are, as part of a line.
inline SharedBytes EncodeNotice(absl::string_view why) {
  constexpr size_t kMax = 1000;
  const auto bytes = std::as_bytes(std::span(why.substr(0, kMax)));
  return SharedBytes::FromVector({bytes.begin(), bytes.end()});
}
inline std::string DecodeNotice(const SharedBytes& head) {
  const auto bytes = head.bytes();
  return PlainText({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_NEIGHBORHOOD_REFUSALS_H_
