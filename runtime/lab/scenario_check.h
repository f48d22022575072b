// All errors of a scenario at once.
//
// Knows the rules of lab.proto; nothing of what its links will mean for a pair
// of hosts.

#ifndef GOSSAMER_RUNTIME_LAB_SCENARIO_CHECK_H_
#define GOSSAMER_RUNTIME_LAB_SCENARIO_CHECK_H_

#include <string>
#include <vector>

#include "proto/lab.pb.h"
#include "runtime/lab/scenario.h"

namespace gossamer {

struct ScenarioProblem {
  std::string field;  // "link[2].rtt"
  std::string what;   // goes on after it
};

// Of counts and names of hosts and regions.  `hosts` must not be made from a
// configuration that has any.
std::vector<ScenarioProblem> FindHostProblems(const ScenarioConfig& config);

// Of links and the rest, given the hosts.
std::vector<ScenarioProblem> FindLinkProblems(
    const ScenarioConfig& config, const std::vector<Scenario::Host>& hosts);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_LAB_SCENARIO_CHECK_H_
