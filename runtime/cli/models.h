// The arguments with which `gossamer-models` reads a run's generators.
//
// This header knows the flags of that program; nothing of torch.

#ifndef GOSSAMER_RUNTIME_CLI_MODELS_H_
#define GOSSAMER_RUNTIME_CLI_MODELS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/run.pb.h"
#include "runtime/base/command_line.h"
#include "runtime/cli/run_folder.h"

namespace gossamer {

// The run, and the peer whose generator is used.
struct ModelChoice {
  std::string run;
  std::string of = "mean";  // or the id of a peer
  bool raw = false;         // not the moving average
};

void AddModelChoice(Command& command, ModelChoice& choice);

// Returns gossamer-models SUBCOMMAND --parameters ... --model ..., and sets the
// run's configuration.  Returns kInvalidArgument if `of` is neither "mean" nor
// the id of a peer with a generator, errors of RunFolder, and an error for a
// run whose game has no generator.  `states`, unless null, are set to
// those of the checkpoints.
absl::StatusOr<std::vector<std::string>> ModelsCommand(
    const std::string& subcommand, const ModelChoice& choice, RunConfig& config,
    std::vector<std::string>* states = nullptr);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_CLI_MODELS_H_
