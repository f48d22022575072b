// A plan for people and for programs.
//
// Says what it is given; predicts and measures nothing.

#ifndef GOSSAMER_RUNTIME_CLI_PLAN_REPORT_H_
#define GOSSAMER_RUNTIME_CLI_PLAN_REPORT_H_

#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "runtime/cli/plan_check.h"
#include "runtime/cli/plan_input.h"
#include "runtime/plan/planner.h"

namespace gossamer {

// The network, the ten best candidates, the recommendation with its reasons and
// the lines to copy.
std::string PlanText(const PlanInput& input, const Plan& plan);

// A table of predicted against measured, and a warning where the machine could
// not make steps of `wanted_step` seconds.
std::string ChecksText(const std::vector<PlanCheck>& checks,
                       double wanted_step);

// With the keys of --help; `checks` is null if empty.
nlohmann::ordered_json PlanJson(const PlanInput& input, const Plan& plan,
                                const std::vector<PlanCheck>& checks);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_CLI_PLAN_REPORT_H_
