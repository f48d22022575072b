// One seed of the simulation, from the start of its fleet to the checks at its
// end.
//
// The real peers, edges, checkpoints, topology client and control plane run in
// virtual time under the scenario's faults; then the faults stop, and the fleet
// must reach consensus.  The outcome depends on the scenario only, to the last
// bit.

#ifndef GOSSAMER_TESTS_SIMULATION_SIMULATION_H_
#define GOSSAMER_TESTS_SIMULATION_SIMULATION_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "tests/simulation/fault_counts.h"
#include "tests/simulation/scenario.h"

namespace gossamer::simulation {

struct Outcome {
  // The first violation of an invariant; empty if all is well.
  std::string violation;
  uint64_t trace_hash = 0;  // of every event and correction, and of the end
  uint64_t peer_rounds = 0;
  uint64_t events = 0;
  uint64_t corrections = 0;   // at both ends
  uint64_t incarnations = 0;  // of all peers
  double virtual_seconds = 0;
  // The consensus distance when faults had stopped, at the end, and its bound.
  double distance_before = 0;
  double distance = 0;
  double distance_bound = 0;
  // The name of the bound (NameOf a Mixing); "" if the distance is not checked.
  std::string_view mixing;
  FaultCounts faults;
  uint64_t nccl_operations = 0;
};

// `trace`, if given, gets a line for each thing that happens.
Outcome Simulate(const Scenario& scenario,
                 std::function<void(const std::string&)> trace = nullptr);

}  // namespace gossamer::simulation

#endif  // GOSSAMER_TESTS_SIMULATION_SIMULATION_H_
