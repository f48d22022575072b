// Turns a scenario into the options of its parts.
//
// This header knows nothing of how they are run.

#ifndef GOSSAMER_TESTS_SIMULATION_COMPOSITION_H_
#define GOSSAMER_TESTS_SIMULATION_COMPOSITION_H_

#include <memory>

#include "algorithms/game/game.h"
#include "runtime/sim/sim_network.h"
#include "runtime/sim/sim_service.h"
#include "tests/simulation/fault_counts.h"
#include "tests/simulation/scenario.h"

namespace gossamer::simulation {

SimOptions NetworkOf(const Scenario& scenario);
SimServiceOptions ServiceOf(const Scenario& scenario,
                            FaultCounts* faults = nullptr);
std::unique_ptr<Game> MakeGame(const Scenario& scenario, int rank);

}  // namespace gossamer::simulation

#endif  // GOSSAMER_TESTS_SIMULATION_COMPOSITION_H_
