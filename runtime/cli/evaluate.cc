// gossamer evaluate: scores of a run's generators against held-out data.

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/cli/command.h"
#include "runtime/cli/fleet_process.h"
#include "runtime/cli/models.h"

namespace gossamer {
namespace {

constexpr char kExamples[] = R"(examples:
  gossamer evaluate --run runs/quickstart                # the mean of all peers
  gossamer evaluate --run runs/quickstart --of 1 --samples 4096 --json
  gossamer evaluate --run runs/cifar10 --inception inception.pt --samples 50000

Without --inception the score is a proxy: comparable between runs of this
program on the same data, and with nothing else.  The JSON is that of
gossamer-models evaluate --json.)";

struct Options {
  ModelChoice choice;
  std::string data;
  std::string inception;
  uint32_t samples = 0;
  uint64_t seed = 1;
  bool json = false;
};

int RunEvaluate(const Options& options) {
  RunConfig config;
  auto argv = ModelsCommand("evaluate", options.choice, config);
  if (!argv.ok()) return Complain("evaluate", argv.status());
  const auto data = DataFolder(config, options.data);
  if (!data.ok()) return Complain("evaluate", data.status());
  const auto add = [&argv](const std::string& flag, const std::string& value) {
    argv->push_back(flag);
    argv->push_back(value);
  };
  // A data set that is drawn from a formula has no folder.
  if (!data->empty()) add("--data", *data);
  add("--samples",
      // As many as the run's own evaluations take, because a score depends on
      // the number of samples.
      absl::StrCat(options.samples == 0 ? config.evaluation().samples()
                                        : options.samples));
  add("--seed", absl::StrCat(options.seed));
  if (!options.inception.empty()) add("--inception", options.inception);
  if (options.json) argv->push_back("--json");
  const absl::StatusOr<int> code = RunToEnd(*argv);
  if (!code.ok()) return Complain("evaluate", code.status());
  return *code == 0 ? kOk : kFailed;
}

}  // namespace

void AddEvaluate(Command& program) {
  auto options = std::make_shared<Options>();
  Command& command =
      program.AddCommand({.name = "evaluate",
                          .about = "Score a run's generators",
                          .footer = kExamples,
                          .run = [options] { return RunEvaluate(*options); }});
  AddModelChoice(command, options->choice);
  command.AddOption("--data", &options->data,
                    "folder or file of the data; the run's if not given",
                    {.value_name = "DIR"});
  command.AddOption("--inception", &options->inception,
                    "TorchScript features for a true FID; deploy/inception.py "
                    "makes it",
                    {.value_name = "FILE"});
  command.AddOption("--samples", &options->samples,
                    "generated images; the run's evaluation.samples if not "
                    "given");
  command.AddOption("--seed", &options->seed, "of the latent vectors",
                    {.show_default = true});
  command.AddOption("--json", &options->json, "answer as JSON");
}

}  // namespace gossamer
