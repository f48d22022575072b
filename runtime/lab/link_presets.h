// Nine links, from the next rack to one that hardly is a link, which a scenario
// names by `like`, and which deploy/lab/ladder.sh measures one after the other.
//
// This header knows nothing of hosts.

#ifndef GOSSAMER_RUNTIME_LAB_LINK_PRESETS_H_
#define GOSSAMER_RUNTIME_LAB_LINK_PRESETS_H_

#include <string_view>

#include "runtime/lab/link_model.h"

namespace gossamer {

struct LinkPreset {
  std::string_view name;
  std::string_view what;  // for people
  double rtt_ms;
  double mbit;
  double jitter_ms = 0;
  double loss = 0;
  double loss_burst = 1;
  double reorder = 0;
  double queue_mb = 8;
};

inline constexpr LinkPreset kLinkPresets[] = {
    {"lan", "two machines of one rack", 0.2, 10'000},
    {"zone", "two zones of a cloud region", 1, 5'000},
    {"region", "two regions of a continent", 30, 1'000},
    {"ocean", "two continents", 100, 200, 0.5, 1e-5},
    {"world", "the other side of the world", 200, 100, 2, 1e-4, 2},
    {"home", "a home line with a swollen queue", 40, 20, 5, 1e-4, 1, 0, 2},
    {"mobile", "a phone's network", 80, 10, 20, 0.005, 4, 0.01, 1},
    {"satellite", "a geostationary satellite", 600, 5, 5, 0.005, 8},
    {"absurd", "256 kbit/s that lose a quarter", 800, 0.256, 50, 0.25, 4, 0.01,
     0.25},
};

// Returns null if there is no such preset.
const LinkPreset* FindLinkPreset(std::string_view name);
// Returns each direction of its link.
LinkSpec SpecOf(const LinkPreset& preset);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_LAB_LINK_PRESETS_H_
