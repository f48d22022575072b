#include "runtime/lab/ladder.h"

#include <cmath>

namespace gossamer {

const Rung* FindRung(std::string_view name) {
  for (const Rung& rung : kLadder) {
    if (rung.name == name) return &rung;
  }
  return nullptr;
}

LinkSpec SpecOf(const Rung& rung) {
  constexpr double kMilli = 1e6;
  const auto whole = [](double value) {
    return static_cast<uint64_t>(std::llround(value));
  };
  return {.delay = static_cast<Nanos>(whole(rung.rtt_ms / 2 * kMilli)),
          .bytes_per_second = whole(rung.mbit * 1e6 / 8),
          .jitter = static_cast<Nanos>(whole(rung.jitter_ms * kMilli)),
          .loss = rung.loss,
          .loss_burst = rung.loss_burst,
          .reorder = rung.reorder,
          .queue_bytes = whole(rung.queue_mb * 1e6)};
}

}  // namespace gossamer
