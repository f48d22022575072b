// What all peers of a method hold together comes to zero: the duals of COLD,
// and tracked gradients less the gradients that they follow.  Members that
// begin again apart from one another would pull the solution away for ever.
//
// Numbers only; knows nothing of peers or time.

#ifndef GOSSAMER_TESTS_SIMULATION_BALANCE_H_
#define GOSSAMER_TESTS_SIMULATION_BALANCE_H_

#include <span>
#include <string>
#include <vector>

namespace gossamer::simulation {

// Empty if what edges have brought all peers (MixingHooks::Added) comes to
// nothing but rounding beside it and their parameters, else what is wrong.
std::string FindImbalance(
    const std::vector<std::span<const float>>& brought,
    const std::vector<std::span<const float>>& parameters);

}  // namespace gossamer::simulation

#endif  // GOSSAMER_TESTS_SIMULATION_BALANCE_H_
