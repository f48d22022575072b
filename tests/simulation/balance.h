// Quantities that sum to zero over all peers of a method: the duals of COLD,
// and tracked gradients less the gradients that they follow.  Members that
// restart apart from one another would otherwise pull the solution away for
// ever.
//
// Works on numbers only and knows nothing of peers or time.

#ifndef GOSSAMER_TESTS_SIMULATION_BALANCE_H_
#define GOSSAMER_TESTS_SIMULATION_BALANCE_H_

#include <span>
#include <string>
#include <vector>

namespace gossamer::simulation {

// Returns "" if the sum of what edges have added at all peers
// (MixingHooks::Added) is rounding beside the terms and the parameters, else a
// description of the error.
std::string FindImbalance(
    const std::vector<std::span<const float>>& brought,
    const std::vector<std::span<const float>>& parameters);

}  // namespace gossamer::simulation

#endif  // GOSSAMER_TESTS_SIMULATION_BALANCE_H_
