// gossamer sample: a grid of samples from a run's generators.

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/cli/command.h"
#include "runtime/cli/fleet_process.h"
#include "runtime/cli/models.h"

namespace gossamer {
namespace {

constexpr char kExamples[] = R"(examples:
  gossamer sample --run runs/quickstart                  # of the mean of all peers
  gossamer sample --run runs/quickstart --of 2 --seed 7 --out two.png
  gossamer sample --run runs/sagan_emoji32 --class hand  # of a model with classes

Uses the newest checkpoint: of the peer, or that all peers have.)";

struct Options {
  ModelChoice choice;
  std::string out = "grid.png";
  std::string of_class;
  uint64_t seed = 1;
};

int RunSample(const Options& options) {
  RunConfig config;
  auto argv = ModelsCommand("sample", options.choice, config);
  if (!argv.ok()) return PrintError("sample", argv.status());
  for (const std::string& word :
       {std::string("--out"), options.out, std::string("--seed"),
        absl::StrCat(options.seed)}) {
    argv->push_back(word);
  }
  if (!options.of_class.empty()) {
    argv->push_back("--class");
    argv->push_back(options.of_class);
  }
  const absl::StatusOr<int> code = RunToEnd(*argv);
  if (!code.ok()) return PrintError("sample", code.status());
  // gossamer-models writes to the same stderr and has given its reason there.
  // Its code is not passed on: kUsage would blame this command line for a wrong
  // one that ModelsCommand() has made.
  return *code == 0 ? kOk : kFailed;
}

}  // namespace

void AddSample(Command& program) {
  auto options = std::make_shared<Options>();
  Command& command =
      program.AddCommand({.name = "sample",
                          .about = "Draw samples of a run's generators",
                          .footer = kExamples,
                          .run = [options] { return RunSample(*options); }});
  AddModelChoice(command, options->choice);
  command.AddOption("--out", &options->out, "the picture",
                    {.show_default = true, .value_name = "PNG"});
  command.AddOption("--class", &options->of_class,
                    "the class of all samples, by name or number, of a model "
                    "with classes; some of each if not given",
                    {.value_name = "NAME|N"});
  command.AddOption("--seed", &options->seed, "of the latent vectors",
                    {.show_default = true});
}

}  // namespace gossamer
