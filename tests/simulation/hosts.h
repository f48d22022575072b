// The peers of one simulation: their machines, their present processes, and the
// rounds that they have reached.
//
// This header knows nothing of faults or phases.

#ifndef GOSSAMER_TESTS_SIMULATION_HOSTS_H_
#define GOSSAMER_TESTS_SIMULATION_HOSTS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tests/simulation/fault_swarm.h"
#include "tests/simulation/sim_process.h"
#include "tests/simulation/sim_world.h"
#include "topology/fleet/fleet.h"

namespace gossamer::simulation {

// A process on a machine of its own, which outlives it.
struct SimPlace {
  std::unique_ptr<SimMachine> machine = std::make_unique<SimMachine>();
  std::unique_ptr<SimProcess> process;
};

struct SimHost : SimPlace {
  // The process before this one, which does not know yet that it was replaced.
  SimPlace older;
  Death death;
  uint64_t seen = 0;  // runs of its loop at the last look
  bool ended = false;
  bool down = false;  // its restart is due
};

// The largest and the smallest round of living peers; a dead one counts as 0 in
// the smallest.
uint64_t MaxRound(const std::vector<SimHost>& hosts);
uint64_t MinRound(const std::vector<SimHost>& hosts);
// Such as "17 down ended 16".
std::string DescribeRounds(const std::vector<SimHost>& hosts);
bool AllEnded(const std::vector<SimHost>& hosts);
// Returns whether every peer is a member, trains by the newest view and is not
// frozen, while no stop is under way.
bool AllJoined(const std::vector<SimHost>& hosts, const Fleet& fleet,
               absl::Time now);

}  // namespace gossamer::simulation

#endif  // GOSSAMER_TESTS_SIMULATION_HOSTS_H_
