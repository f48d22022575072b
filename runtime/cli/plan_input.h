// What `gossamer plan` is asked: from its options and files to a checked
// request.
//
// Reads files; starts nothing and predicts nothing.

#ifndef GOSSAMER_RUNTIME_CLI_PLAN_INPUT_H_
#define GOSSAMER_RUNTIME_CLI_PLAN_INPUT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/plan/planner.h"

namespace gossamer {

struct PlanOptions {
  std::string scenario;
  std::string matrix;
  std::string config;
  std::vector<std::string> set;
  std::optional<uint64_t> parameters;
  std::string step_time;  // empty: the configuration's
  std::optional<int> peers;
  double codec_rate = kCodecBytesPerSecond / 1e9;  // GB/s
  std::string runs = "runs";                       // of --check
  bool check = false;
  bool json = false;
};

struct PlanInput {
  PlanRequest request;
  std::string network;             // its name
  std::vector<std::string> hosts;  // by rank
  // For the lab: the file that was given, or a matrix as such a file.
  std::string scenario_file;
  std::string scenario_text;
  // What the network has that predictions leave out.
  std::vector<std::string> warnings;
};

// kInvalidArgument: options that do not go together, what is missing and how
// to give it, or what is wrong in a file, with its place.
absl::StatusOr<PlanInput> LoadPlanInput(const PlanOptions& options);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_CLI_PLAN_INPUT_H_
