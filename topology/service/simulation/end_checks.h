// What must hold of a fleet's parameters once it is calm: numbers only.
//
// Knows nothing of peers or time.

#ifndef GOSSAMER_TOPOLOGY_SERVICE_SIMULATION_END_CHECKS_H_
#define GOSSAMER_TOPOLOGY_SERVICE_SIMULATION_END_CHECKS_H_

#include <span>
#include <vector>

#include "algorithms/codec/codec.h"
#include "topology/service/simulation/scenario.h"

namespace gossamer::simulation {

// 1/M Σ‖x_i − x̄‖².
double ConsensusDistance(const std::vector<std::span<const float>>& all);

// The consensus distance that `scenario.calm_rounds` of mixing may leave of
// `before`.
double DistanceBound(const Scenario& scenario, const Codec& codec,
                     double before,
                     const std::vector<std::span<const float>>& all);

}  // namespace gossamer::simulation

#endif  // GOSSAMER_TOPOLOGY_SERVICE_SIMULATION_END_CHECKS_H_
