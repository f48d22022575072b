// The options with which a fleet was started: its size, its schedule and its
// timings.
//
// Plain values; this header knows nothing of what is decided from them.

#ifndef GOSSAMER_TOPOLOGY_FLEET_FLEET_OPTIONS_H_
#define GOSSAMER_TOPOLOGY_FLEET_FLEET_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "topology/mixing_schedule.h"

namespace gossamer {

// The options of one topology service; they stay as they are for the whole of
// its incarnation.
struct FleetOptions {
  std::string run_id = "run";
  int expected = 4;  // peers that must register before the first view
  ScheduleSpec schedule;
  uint64_t seed = 1;
  double gamma = 0;       // 0: the codec's own
  int overlap_steps = 1;  // or kAutoOverlap: chosen from what peers measure
  // 0: that of the first peer, which the others must share.
  uint64_t configuration_hash = 0;
  // The lines of Registration::configuration that the service was started with,
  // and the keys of those that peers must have, too, though the hash is 0: the
  // service decides by them.
  std::string configuration = {};
  std::vector<std::string> decides = {};
  // Least spectral gap (of a random schedule: Contraction::gap).
  double min_gap = 0;
  // Others that every peer mixes with, over all rounds (MinDegree).
  int min_degree = 0;
  absl::Duration heartbeat = absl::Seconds(1);
  // A peer without a heartbeat for so long has lost its lease.
  absl::Duration lease = absl::Seconds(4);
  // Members may come and go; false for an algorithm that needs all of them.
  bool elastic = true;
  // Most members at once; 0: what the schedule allows.
  int max_peers = 0;
  // The key of the views' MACs for a store without one (view_mac.h): random,
  // and known to the service alone.  Empty: views have none.
  std::string mac_key = {};
};

}  // namespace gossamer

#endif  // GOSSAMER_TOPOLOGY_FLEET_FLEET_OPTIONS_H_
