// The events of a rehearsed fleet, each at a moment of virtual time: peers
// join, peers die, the service is down for a while, the links change.
//
// This header knows how people write it ("30s join 1000"); nothing of a
// rehearsal.

#ifndef GOSSAMER_RUNTIME_SIM_FLEET_EVENT_H_
#define GOSSAMER_RUNTIME_SIM_FLEET_EVENT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/lab/link_presets.h"

namespace gossamer {

struct FleetEvent {
  enum class Kind { kJoin, kLose, kServiceDown, kLinks };

  std::string text;  // as it was written
  absl::Duration at;
  Kind kind = Kind::kJoin;
  uint32_t peers = 0;   // that join or die
  absl::Duration down;  // of kServiceDown
  // Of kLinks: the one that all links are like from then on.
  const LinkPreset* preset = nullptr;
};

// Reads "TIME join N", "TIME lose N", "TIME service-down TIME" or "TIME links
// PRESET".  kInvalidArgument shows the four.
absl::StatusOr<FleetEvent> ParseFleetEvent(std::string_view text);

// Returns the peers of all joins.
uint32_t Joiners(const std::vector<FleetEvent>& events);

// Checks the events of a fleet that begins with `peers`: two peers must be left
// at all times, and only an elastic fleet takes peers under way.
absl::Status CheckFleetEvents(const std::vector<FleetEvent>& events,
                              uint32_t peers, bool elastic);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_SIM_FLEET_EVENT_H_
