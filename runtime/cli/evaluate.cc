// gossamer evaluate: scores of a run's generators against held-out data.

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "algorithms/base/status_macros.h"
#include "runtime/cli/command.h"
#include "runtime/cli/fleet_process.h"
#include "runtime/cli/models.h"
#include "runtime/cli/run_folder.h"

namespace gossamer {
namespace {

constexpr char kExamples[] = R"(examples:
  gossamer evaluate --run runs/quickstart                # the mean of all peers
  gossamer evaluate --run runs/quickstart --of 1 --samples 4096 --json
  gossamer evaluate --run runs/cifar10 --inception inception.pt --samples 50000
  gossamer evaluate --run runs/cifar10 --follow   # with --set evaluation.every=0

A run scores itself beside its training, on the machine of one peer.  --follow
does it on any machine that sees the folder, and the run needs no score of its
own.
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
  bool follow = false;
};

// Scores the newest checkpoint unless its files are `last`, and sets `last`.
// Returns the exit code of gossamer-models.
absl::StatusOr<int> Score(const Options& options,
                          std::vector<std::string>& last) {
  RunConfig config;
  std::vector<std::string> states;
  GOSSAMER_ASSIGN_OR_RETURN(
      std::vector<std::string> argv,
      ModelsCommand("evaluate", options.choice, config, &states));
  if (states == last) return 0;
  GOSSAMER_ASSIGN_OR_RETURN(const std::string data,
                            DataFolder(config, options.data));
  const auto add = [&argv](const std::string& flag, const std::string& value) {
    argv.push_back(flag);
    argv.push_back(value);
  };
  // A data set that is drawn from a formula has no folder.
  if (!data.empty()) add("--data", data);
  add("--samples",
      // As many as the run's own evaluations take, because a score depends on
      // the number of samples.
      absl::StrCat(options.samples == 0 ? config.evaluation().samples()
                                        : options.samples));
  add("--seed", absl::StrCat(options.seed));
  add("--round", absl::StrCat(RunFolder::RoundOf(states.front())));
  if (!options.inception.empty()) add("--inception", options.inception);
  // The processors are the training's, which may go on here.
  if (options.follow) add("--threads", "1");
  if (options.json) argv.push_back("--json");
  last = std::move(states);
  return RunToEnd(argv);
}

bool AllExist(const std::vector<std::string>& files) {
  return std::ranges::all_of(files, [](const std::string& file) {
    return std::filesystem::exists(file);
  });
}

// Scores until the checkpoint of the run's end.
int Follow(const Options& options) {
  const RunFolder folder(options.choice.run);
  std::vector<std::string> last;
  std::vector<uint64_t> seen;
  bool told = false;
  for (;; absl::SleepFor(absl::Seconds(1))) {
    // A resumed run may have more rounds.
    const auto config = folder.LoadConfig();
    if (!config.ok()) return PrintError("evaluate", config.status());
    if (!last.empty() && RunFolder::RoundOf(last.front()) > config->rounds()) {
      return kOk;
    }
    // To choose among checkpoints is to read them whole, so names come first.
    const std::vector<uint64_t> named = folder.NewestNamed();
    if (std::exchange(seen, named) == named) {
      if (!std::exchange(told, true)) {
        std::cerr
            << "evaluate: waits for the next checkpoint; Ctrl-C ends it\n";
      }
      continue;
    }
    const absl::StatusOr<int> code = Score(options, last);
    const bool none_yet = absl::IsFailedPrecondition(code.status()) ||
                          absl::IsNotFound(code.status());
    if (!code.ok() && !none_yet) return PrintError("evaluate", code.status());
    // A checkpoint of which a file is gone was replaced while it was read.
    if (code.ok() && *code != 0 && AllExist(last)) return kFailed;
  }
}

int RunEvaluate(const Options& options) {
  if (options.follow) return Follow(options);
  std::vector<std::string> last;
  const absl::StatusOr<int> code = Score(options, last);
  if (!code.ok()) return PrintError("evaluate", code.status());
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
  command.AddOption("--follow", &options->follow,
                    "score each checkpoint as it comes, until the run's last; "
                    "Ctrl-C ends it");
  command.AddOption("--json", &options->json, "answer as JSON");
}

}  // namespace gossamer
