// A plan for people and for programs.
//
// Prints what was rehearsed; rehearses nothing.

#ifndef GOSSAMER_RUNTIME_CLI_PLAN_REPORT_H_
#define GOSSAMER_RUNTIME_CLI_PLAN_REPORT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "runtime/cli/plan_candidates.h"

namespace gossamer {

struct PlanResult {
  std::string network;             // the scenario's name
  std::vector<std::string> hosts;  // by rank
  std::string config;              // file
  uint64_t parameters = 0;         // of the rehearsed game
  bool stand_in = false;           // it stands for networks
  std::string step_times;          // "40ms"
  uint64_t rounds = 0;
  std::string goal;
  std::vector<std::string> warnings;

  struct Row {
    PlanCandidate candidate;
    PlanFigures figures;
    bool configured = false;  // the configuration as it is
  };
  std::vector<Row> rows;  // best first
  // The first row that is no baseline.
  std::optional<size_t> recommended;

  struct LeftOut {
    std::string name;
    std::string why;
  };
  std::vector<LeftOut> left_out;
};

std::string PlanText(const PlanResult& result);

// Returns the plan with the keys of --help.
nlohmann::ordered_json PlanJson(const PlanResult& result);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_CLI_PLAN_REPORT_H_
