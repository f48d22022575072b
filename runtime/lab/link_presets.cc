#include "runtime/lab/link_presets.h"

#include <cmath>

namespace gossamer {

const LinkPreset* FindLinkPreset(std::string_view name) {
  for (const LinkPreset& preset : kLinkPresets) {
    if (preset.name == name) return &preset;
  }
  return nullptr;
}

LinkSpec SpecOf(const LinkPreset& preset) {
  constexpr double kMilli = 1e6;
  const auto whole = [](double value) {
    return static_cast<uint64_t>(std::llround(value));
  };
  return {.delay = static_cast<Nanos>(whole(preset.rtt_ms / 2 * kMilli)),
          .bytes_per_second = whole(preset.mbit * 1e6 / 8),
          .jitter = static_cast<Nanos>(whole(preset.jitter_ms * kMilli)),
          .loss = preset.loss,
          .loss_burst = preset.loss_burst,
          .reorder = preset.reorder,
          .queue_bytes = whole(preset.queue_mb * 1e6)};
}

}  // namespace gossamer
