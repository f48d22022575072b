// Checks that a state which joiners get lies between those that members gave.
//
// This header knows nothing of who gave or got them.

#ifndef GOSSAMER_TESTS_SIMULATION_GIVEN_STATES_H_
#define GOSSAMER_TESTS_SIMULATION_GIVEN_STATES_H_

#include <span>
#include <string>
#include <utility>
#include <vector>

namespace gossamer::simulation {

class GivenStates {
 public:
  // A member gives these parameters, as many as all others.
  void Give(std::span<const float> x);
  // Returns the error in parameters that a joiner has got, an average of states
  // that were given before; or "".
  std::string Check(std::span<const float> x) const;

 private:
  // The least and the largest value of each parameter.
  std::vector<std::pair<float, float>> bounds_;
};

}  // namespace gossamer::simulation

#endif  // GOSSAMER_TESTS_SIMULATION_GIVEN_STATES_H_
