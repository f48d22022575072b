// The runs of gossamer compare: every algorithm on every game, in every
// network, with every seed.
//
// Checks everything before the first run; starts nothing.

#ifndef GOSSAMER_RUNTIME_CLI_COMPARE_PLAN_H_
#define GOSSAMER_RUNTIME_CLI_COMPARE_PLAN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/run.pb.h"
#include "runtime/cli/command.h"
#include "runtime/cli/variants.h"

namespace gossamer {

struct CompareOptions : TrainingOptions {
  // Configurations of further games.
  std::vector<std::string> also;
  // Names, each with changes of its own: "dp-oadam+mixing.codec=dense-f32".
  std::vector<std::string> algorithms = UsualAlgorithms();
  // Instead: names of the catalogue (gossamer methods), or "all": every one
  // that can train the game at hand.
  std::vector<std::string> methods;
  std::vector<uint64_t> seeds = {1};
  // Networks: scenario files, and a round-trip time each, all at one rate.
  // None: this machine's loopback.
  std::vector<std::string> scenarios;
  std::vector<std::string> rtts;
  std::string rate = "unlimited";
  // The runs are rehearsed in virtual time instead of the lab; that needs no
  // privileges and trains no networks.
  bool rehearse = false;
  std::string step_time;  // of it; empty: the configuration's
  std::optional<double> target;
};

struct PlannedRun {
  std::string game;        // the file's name of the run
  std::string network;     // "local", "100ms 100mbit", a scenario's name
  std::string algorithm;   // as given, or the method's name
  RunConfig config;        // resolved
  std::string conditions;  // as in its folder (conditions.h)
  std::string folder;
  std::vector<std::string> arguments;  // of gossamer, but how it begins
};

// A method of "all" that cannot train a game.
struct LeftOut {
  std::string game;
  std::string algorithm;
  std::string why;
  friend bool operator==(const LeftOut&, const LeftOut&) = default;
};

struct ComparePlan {
  std::string folder;
  std::vector<PlannedRun> runs;  // by game, network, algorithm, seed
  std::vector<LeftOut> left_out;
};

// Writes the scenarios of --rtt into the plan's folder.  kInvalidArgument: a
// configuration, algorithm, network or data folder cannot be used, or a folder
// holds a run of another configuration or of other conditions (naming the
// difference).  Of "all" methods those that cannot train are left out, unless
// none can.
absl::StatusOr<ComparePlan> MakeComparePlan(const CompareOptions& options);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_CLI_COMPARE_PLAN_H_
