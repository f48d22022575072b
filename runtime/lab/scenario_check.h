// Finds all errors of a scenario at once.
//
// This header knows the rules of lab.proto; nothing of what its links mean for
// a pair of hosts.

#ifndef GOSSAMER_RUNTIME_LAB_SCENARIO_CHECK_H_
#define GOSSAMER_RUNTIME_LAB_SCENARIO_CHECK_H_

#include <vector>

#include "algorithms/base/problems.h"
#include "proto/lab.pb.h"
#include "runtime/lab/scenario.h"

namespace gossamer {

// Checks the counts and names of hosts and regions.  A configuration with such
// problems must not be made into `hosts`.
Problems FindHostProblems(const ScenarioConfig& config);

// Checks the links and everything else, given the hosts.
Problems FindLinkProblems(const ScenarioConfig& config,
                          const std::vector<Scenario::Host>& hosts);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_LAB_SCENARIO_CHECK_H_
