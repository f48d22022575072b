#include "runtime/cli/models.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "algorithms/base/status_macros.h"
#include "runtime/cli/fleet_process.h"

namespace gossamer {

void AddModelChoice(Command& command, ModelChoice& choice) {
  command.AddOption("--run", &choice.run, "folder of the run, as in runs/x",
                    {.required = true, .value_name = "DIR"});
  command.AddOption("--of", &choice.of,
                    "whose generator: mean (of all peers) or a peer by its id",
                    {.show_default = true, .value_name = "mean|ID"});
  command.AddOption("--raw", &choice.raw,
                    "the parameters themselves, not their moving average");
}

absl::StatusOr<std::vector<std::string>> ModelsCommand(
    const std::string& subcommand, const ModelChoice& choice, RunConfig& config,
    std::vector<std::string>* states) {
  const RunFolder folder(choice.run);
  GOSSAMER_ASSIGN_OR_RETURN(config, folder.LoadConfig());
  const bool student = config.game().has_datalens();
  if (!config.game().has_gan() && !student) {
    return absl::InvalidArgumentError(absl::StrCat(
        choice.run, " did not train a GAN; it has no generator to look at"));
  }
  std::vector<std::string> files;
  uint64_t id = 0;
  if (student && (choice.of == "mean" || choice.of == "1")) {
    // The other peers have teachers.
    GOSSAMER_ASSIGN_OR_RETURN(std::string file, folder.StateFile(1));
    files.push_back(std::move(file));
  } else if (student) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--of ", choice.of, ": peer 1 alone has a generator, the student"));
  } else if (choice.of == "mean") {
    // The mean is of one round that all peers have: of different rounds it
    // would be no model of the fleet.
    GOSSAMER_ASSIGN_OR_RETURN(files, folder.StateFiles());
  } else if (absl::SimpleAtoi(choice.of, &id)) {
    GOSSAMER_ASSIGN_OR_RETURN(std::string file, folder.StateFile(id));
    files.push_back(std::move(file));
  } else {
    return absl::InvalidArgumentError(absl::StrCat(
        "--of ", choice.of, ": neither mean nor the id of a peer"));
  }
  if (states != nullptr) *states = files;
  const GanConfig& gan = config.game().gan();
  const DataLensConfig& votes = config.game().datalens();
  // The networks are of another program, so that this one starts without
  // libtorch.
  std::vector<std::string> argv = {SiblingProgram("gossamer-models"),
                                   subcommand, "--parameters"};
  argv.insert(argv.end(), files.begin(), files.end());
  for (const auto& [flag, value] :
       // A file of parameters has no networks: their shapes follow from these.
       {std::pair<const char*, std::string>{"--model",
                                            student ? "datalens" : gan.model()},
        {"--width",
         absl::StrCat(student ? votes.student_width() : gan.width())},
        {"--latent", absl::StrCat(student ? votes.latent() : gan.latent())},
        {"--resolution", absl::StrCat(gan.resolution())},
        {"--loss", gan.loss()},
        {"--data-name", gan.data().name()}}) {
    argv.push_back(flag);
    argv.push_back(value);
  }
  // A conditional model has as many classes as were chosen, and held-out
  // examples of others would be scored as missing.
  for (const std::string& name : gan.data().classes()) {
    argv.push_back("--classes");
    argv.push_back(name);
  }
  // Names of classes, and of image-folder their number, stand beside the data.
  // A score may be of data in another place than the run's.
  if (subcommand != "evaluate" && !gan.data().path().empty()) {
    argv.push_back("--data");
    argv.push_back(gan.data().path());
  }
  if (choice.raw) argv.push_back("--raw");
  return argv;
}

}  // namespace gossamer
