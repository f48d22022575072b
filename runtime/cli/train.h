// Training with a whole fleet, for the commands that do it: from their options
// to a printed summary.
//
// Knows nothing of where the fleet's processes are.

#ifndef GOSSAMER_RUNTIME_CLI_TRAIN_H_
#define GOSSAMER_RUNTIME_CLI_TRAIN_H_

#include <string>

#include "absl/status/statusor.h"
#include "runtime/cli/command.h"
#include "runtime/cli/local_fleet.h"

namespace gossamer {

struct TrainOptions : TrainingOptions {
  bool resume = false;
  bool overwrite = false;
  std::string replay;
};

// Loads and checks the configuration, and makes way for the run's folder, which
// --overwrite empties.
absl::StatusOr<FleetSpec> PrepareTraining(const TrainOptions& options);

// Trains, shows progress, and prints what came of it.  `command` is for
// messages.  The exit code.
int Train(const std::string& command, FleetSpec spec,
          const TrainOptions& options, SignalWaiter& signals);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_CLI_TRAIN_H_
