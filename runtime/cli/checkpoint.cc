// gossamer checkpoint: what a run has saved, whether it is whole, and its
// generator for other programs.

#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"
#include "runtime/base/status_macros.h"
#include "runtime/checkpoint/checkpoint_store.h"
#include "runtime/cli/command.h"
#include "runtime/cli/fleet_process.h"
#include "runtime/cli/models.h"
#include "runtime/cli/run_folder.h"
#include "runtime/telemetry/progress.h"

namespace gossamer {
namespace {

constexpr char kExamples[] = R"(examples:
  gossamer checkpoint list --run runs/quickstart
  gossamer checkpoint verify --run runs/quickstart && echo whole
  gossamer checkpoint export --run runs/quickstart --out generator.safetensors
  gossamer checkpoint export --run runs/quickstart --of 2 --raw --out two.safetensors

list and verify read every file and compare it with the SHA-256 of its manifest;
verify's exit code is 1 if one is not whole, or there is none.  A damaged one
does no harm: a peer starts from the newest that is whole.  export writes one
tensor per name, which safetensors.torch.load_file() reads: of the mean of all
peers, or of a rank; its moving average, or with --raw the parameters.

JSON keys: run, common_round (the newest that every peer has whole; 0: none),
checkpoints (a list of rank, round, whole, problem, bytes, layout,
configuration).)";

struct RankedCheckpoint {
  int rank = 0;
  StoredCheckpoint stored;
};

struct Options {
  std::string run;
  bool json = false;
  ModelChoice choice;
  std::string out;
};

absl::StatusOr<std::vector<RankedCheckpoint>> ListAll(const RunFolder& run) {
  GOSSAMER_RETURN_IF_ERROR(run.LoadConfig().status());
  std::vector<RankedCheckpoint> all;
  for (const int rank : run.Ranks()) {
    const CheckpointStore store(run.PeerPath(rank) + "/checkpoints", 1);
    GOSSAMER_ASSIGN_OR_RETURN(std::vector<StoredCheckpoint> list, store.List());
    for (StoredCheckpoint& stored : list) {
      all.push_back({rank, std::move(stored)});
    }
  }
  return all;
}

void PrintTable(const RunFolder& run,
                const std::vector<RankedCheckpoint>& all) {
  absl::PrintF("%4s %9s %10s  %-16s  %s\n", "rank", "round", "size", "layout",
               "");
  for (const auto& [rank, c] : all) {
    absl::PrintF(
        "%4d %9d %10s  %-16s  %s\n", rank, c.round,
        HumanBytes(static_cast<double>(c.bytes)),
        c.whole.ok() ? absl::StrFormat("%016x", c.id.layout_fingerprint) : "",
        c.whole.ok() ? "whole" : std::string(c.whole.message()));
  }
  const uint64_t common =
      run.NewestCommonRound(static_cast<int>(run.Ranks().size()));
  if (common > 0) {
    absl::PrintF("all peers have round %d; --resume goes on from it\n", common);
  } else {
    absl::PrintF("there is no round that all peers have\n");
  }
}

void PrintJson(const RunFolder& run, const std::vector<RankedCheckpoint>& all) {
  nlohmann::ordered_json json = {
      {"run", run.path()},
      {"common_round",
       run.NewestCommonRound(static_cast<int>(run.Ranks().size()))},
      {"checkpoints", nlohmann::ordered_json::array()}};
  for (const auto& [rank, c] : all) {
    json["checkpoints"].push_back(
        {{"rank", rank},
         {"round", c.round},
         {"whole", c.whole.ok()},
         {"problem", std::string(c.whole.message())},
         {"bytes", c.bytes},
         {"layout", absl::StrFormat("%016x", c.id.layout_fingerprint)},
         {"configuration", absl::StrFormat("%016x", c.id.configuration_hash)}});
  }
  std::cout << json.dump(2) << "\n";
}

// `verify`: the exit code says whether all is well.
int RunList(const Options& options, bool verify) {
  const RunFolder run(options.run);
  const auto all = ListAll(run);
  if (!all.ok()) return Complain("checkpoint", all.status());
  options.json ? PrintJson(run, *all) : PrintTable(run, *all);
  if (!verify) return kOk;
  if (all->empty()) {
    return Complain("checkpoint",
                    absl::NotFoundError(absl::StrCat(
                        run.path(),
                        " has no checkpoint; let the run finish, "
                        "or stop it with Ctrl-C, which saves one")));
  }
  int damaged = 0;
  for (const auto& [rank, c] : *all) damaged += !c.whole.ok();
  if (damaged == 0) return kOk;
  return Complain("checkpoint", absl::DataLossError(absl::StrCat(
                                    damaged, " of ", all->size(),
                                    " checkpoints are not whole")));
}

int RunExport(const Options& options) {
  RunConfig config;
  auto argv = ModelsCommand("export", options.choice, config);
  if (!argv.ok()) return Complain("checkpoint", argv.status());
  argv->insert(argv->end(), {"--out", options.out});
  const absl::StatusOr<int> code = RunToEnd(*argv);
  if (!code.ok()) return Complain("checkpoint", code.status());
  return *code == 0 ? kOk : kFailed;
}

}  // namespace

void AddCheckpoint(Command& program) {
  auto options = std::make_shared<Options>();
  Command& command = program.AddCommand(
      {.name = "checkpoint",
       .about = "List, verify and export what a run has saved",
       .footer = kExamples});
  for (const bool verify : {false, true}) {
    Command& c = command.AddCommand(
        {.name = verify ? "verify" : "list",
         .about = verify ? "Tell by the exit code whether all are whole"
                         : "List all checkpoints of a run",
         .footer = kExamples,
         .run = [options, verify] { return RunList(*options, verify); }});
    c.AddOption("--run", &options->run, "folder of the run, as in runs/x",
                {.required = true, .value_name = "DIR"});
    c.AddOption("--json", &options->json, "answer as JSON");
  }
  Command& exported =
      command.AddCommand({.name = "export",
                          .about = "Write the generator, tensor by tensor",
                          .footer = kExamples,
                          .run = [options] { return RunExport(*options); }});
  AddModelChoice(exported, options->choice);
  exported.AddOption("--out", &options->out, "safetensors",
                     {.required = true, .value_name = "FILE"});
}

}  // namespace gossamer
