// From a scenario to the options of its parts.
//
// Knows nothing of how they are run.

#ifndef GOSSAMER_TOPOLOGY_SERVICE_SIMULATION_COMPOSITION_H_
#define GOSSAMER_TOPOLOGY_SERVICE_SIMULATION_COMPOSITION_H_

#include <memory>

#include "algorithms/game/game.h"
#include "runtime/transport/sim/sim_network.h"
#include "topology/service/simulation/scenario.h"
#include "topology/service/simulation/sim_service.h"

namespace gossamer::simulation {

SimOptions NetworkOf(const Scenario& scenario);
SimServiceOptions ServiceOf(const Scenario& scenario,
                            FaultCounts* faults = nullptr);
std::unique_ptr<Game> MakeGame(const Scenario& scenario, int rank);

}  // namespace gossamer::simulation

#endif  // GOSSAMER_TOPOLOGY_SERVICE_SIMULATION_COMPOSITION_H_
