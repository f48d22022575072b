// The peers of one simulation: their machines, their present lives, and where
// they are together.
//
// Knows nothing of faults or phases.

#ifndef GOSSAMER_TESTS_SIMULATION_SEATS_H_
#define GOSSAMER_TESTS_SIMULATION_SEATS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tests/simulation/fault_swarm.h"
#include "tests/simulation/sim_life.h"
#include "topology/fleet/fleet.h"

namespace gossamer::simulation {

struct Seat {
  SimMachine machine;
  std::unique_ptr<SimLife> life;
  Death death;
  uint64_t seen = 0;  // of the loop's runs
  bool ended = false;
  bool down = false;  // its restart is due
};

// Over those that live.
uint64_t MaxRound(const std::vector<Seat>& seats);
uint64_t MinRound(const std::vector<Seat>& seats);
// "17 down ended 16"
std::string DescribeRounds(const std::vector<Seat>& seats);
bool AllEnded(const std::vector<Seat>& seats);
// Everybody is a member, trains by the newest view and is not frozen, and no
// stop is under way.
bool AllJoined(const std::vector<Seat>& seats, const Fleet& fleet,
               absl::Time now);

}  // namespace gossamer::simulation

#endif  // GOSSAMER_TESTS_SIMULATION_SEATS_H_
