// Training with a whole fleet, for the commands that do it: from their options
// to a printed summary.
//
// This header knows nothing of where the fleet's processes are.

#ifndef GOSSAMER_RUNTIME_CLI_TRAIN_H_
#define GOSSAMER_RUNTIME_CLI_TRAIN_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/run.pb.h"
#include "runtime/cli/command.h"
#include "runtime/cli/local_fleet.h"
#include "runtime/cli/run_folder.h"

namespace gossamer {

struct TrainOptions : TrainingOptions {
  bool resume = false;
  bool overwrite = false;
  std::string replay;
  // Changes the configuration once it is loaded; may be empty.
  std::function<absl::Status(RunConfig&)> adapt = nullptr;
};

// Loads and checks the configuration, and makes way for the run's folder, which
// --overwrite empties.
absl::StatusOr<FleetSpec> PrepareTraining(const TrainOptions& options);

// Writes and prints the results of a training that ended with `status`.  The
// exit code.
int ShowResults(const std::string& command, const absl::Status& status,
                const RunFolder& folder, const RunConfig& config, bool json);

// Trains, shows progress, and prints the results.  `command` is for messages.
// The exit code.
int Train(const std::string& command, FleetSpec spec,
          const TrainOptions& options, SignalWaiter& signals);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_CLI_TRAIN_H_
