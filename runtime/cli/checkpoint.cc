// gossamer checkpoint: what a run has saved, whether it is whole, its generator
// for other programs, and the way back to what was set aside.

#include <iostream>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "algorithms/base/status_macros.h"
#include "nlohmann/json.hpp"
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
  gossamer checkpoint restore --run runs/quickstart
  gossamer checkpoint export --run runs/quickstart --out generator.safetensors
  gossamer checkpoint export --run runs/quickstart --of 2 --raw --out two.safetensors

list and verify read every file and compare it with the SHA-256 of its manifest;
verify's exit code is 1 if one is not whole, or there is none.  A damaged one
does no harm: a peer starts from the newest that is whole.

A peer whose fleet begins before its newest checkpoint sets that one aside
(event checkpoint_aside); nothing reads it by itself, so that verify tells of a
damaged one and does not fail.  restore gives those of one round their names
back, of all peers whose folders are here, or of none: stop the fleet first, do
the same on all machines, and start all with --resume.

export writes one
tensor per name, which safetensors.torch.load_file() reads: of the mean of all
peers, or of one peer; its moving average, or with --raw the parameters.

JSON keys: run, common_round (the newest that every peer has whole; 0: none),
checkpoints (a list of peer, round, set_aside, whole, problem, bytes, layout,
configuration); restore's are of what is there afterwards.)";

struct PeerCheckpoint {
  uint64_t peer = 0;
  StoredCheckpoint stored;
  bool set_aside = false;
};

struct Options {
  std::string run;
  bool json = false;
  ModelChoice choice;
  std::string out;
  uint64_t round = 0;  // to restore; 0: the one that was set aside
};

absl::StatusOr<std::vector<PeerCheckpoint>> ListAll(const RunFolder& run) {
  // The folder of a peer on a machine of its own has no configuration.
  if (run.PeerIds().empty()) {
    GOSSAMER_RETURN_IF_ERROR(run.LoadConfig().status());
  }
  std::vector<PeerCheckpoint> all;
  for (const uint64_t peer : run.PeerIds()) {
    const CheckpointStore store = run.Checkpoints(peer);
    GOSSAMER_ASSIGN_OR_RETURN(auto list, store.List());
    for (StoredCheckpoint& stored : list) {
      all.push_back({peer, std::move(stored)});
    }
    // Both kinds are listed: a person who looks for lost rounds finds them only
    // here.
    GOSSAMER_ASSIGN_OR_RETURN(list, store.ListSetAside());
    for (StoredCheckpoint& stored : list) {
      all.push_back({peer, std::move(stored), /*set_aside=*/true});
    }
  }
  return all;
}

// The newest round of which every peer has a whole checkpoint; 0: none.
uint64_t NewestCommonRound(const RunFolder& run,
                           const std::vector<PeerCheckpoint>& all) {
  std::vector<uint64_t> whole;
  for (const auto& [peer, c, aside] : all) {
    if (!aside && c.integrity.ok()) whole.push_back(c.round);
  }
  return NewestOfAll(whole, run.PeerIds().size());
}

void PrintTable(const RunFolder& run, const std::vector<PeerCheckpoint>& all) {
  absl::PrintF("%4s %9s %10s  %-16s  %s\n", "peer", "round", "size", "layout",
               "");
  bool any_aside = false;
  for (const auto& [peer, c, aside] : all) {
    any_aside = any_aside || aside;
    absl::PrintF(
        "%4d %9d %10s  %-16s  %s%s\n", peer, c.round,
        HumanBytes(static_cast<double>(c.bytes)),
        c.integrity.ok() ? absl::StrFormat("%016x", c.id.layout_fingerprint)
                         : "",
        aside ? "set aside, " : "",
        c.integrity.ok() ? "whole" : std::string(c.integrity.message()));
  }
  const uint64_t common = NewestCommonRound(run, all);
  if (common > 0) {
    absl::PrintF("all peers have round %d; --resume goes on from it\n", common);
  } else {
    absl::PrintF("there is no round that all peers have\n");
  }
  // The hint comes with the table: nothing else reads checkpoints that were set
  // aside.
  if (any_aside) {
    absl::PrintF(
        "gossamer checkpoint restore --run %s: back to what was set "
        "aside\n",
        run.path());
  }
}

void PrintJson(const RunFolder& run, const std::vector<PeerCheckpoint>& all) {
  nlohmann::ordered_json json = {
      {"run", run.path()},
      {"common_round", NewestCommonRound(run, all)},
      {"checkpoints", nlohmann::ordered_json::array()}};
  for (const auto& [peer, c, aside] : all) {
    json["checkpoints"].push_back(
        {{"peer", peer},
         {"round", c.round},
         {"set_aside", aside},
         {"whole", c.integrity.ok()},
         {"problem", std::string(c.integrity.message())},
         {"bytes", c.bytes},
         {"layout", absl::StrFormat("%016x", c.id.layout_fingerprint)},
         {"configuration", absl::StrFormat("%016x", c.id.configuration_hash)}});
  }
  std::cout << json.dump(2) << "\n";
}

// The exit code says whether all is well that a fleet would go on from.
int Judge(const RunFolder& run, const std::vector<PeerCheckpoint>& all) {
  int of_the_run = 0, damaged = 0, damaged_aside = 0;
  for (const auto& [peer, c, aside] : all) {
    of_the_run += !aside;
    (aside ? damaged_aside : damaged) += !c.integrity.ok();
  }
  // A damaged checkpoint that was set aside harms no run, so it does not change
  // the exit code.
  if (damaged_aside > 0) {
    std::cerr << "gossamer checkpoint: of those set aside, which no fleet goes "
                 "on from by itself, "
              << damaged_aside << " not whole\n";
  }
  if (of_the_run == 0) {
    return PrintError("checkpoint",
                      absl::NotFoundError(absl::StrCat(
                          run.path(),
                          " has no checkpoint; let the run finish, "
                          "or stop it with Ctrl-C, which saves one")));
  }
  if (damaged == 0) return kOk;
  return PrintError("checkpoint", absl::DataLossError(absl::StrCat(
                                      damaged, " of ", of_the_run,
                                      " checkpoints are not whole")));
}

int RunList(const Options& options, bool verify) {
  const RunFolder run(options.run);
  const auto all = ListAll(run);
  if (!all.ok()) return PrintError("checkpoint", all.status());
  options.json ? PrintJson(run, *all) : PrintTable(run, *all);
  return verify ? Judge(run, *all) : kOk;
}

// Returns the round to restore.  It has to be one: peers that went back to
// different rounds would not go on together.
absl::StatusOr<uint64_t> RoundToRestore(
    const Options& options, const std::vector<PeerCheckpoint>& all) {
  std::set<uint64_t> rounds;
  for (const auto& [peer, c, aside] : all) {
    if (aside) rounds.insert(c.round);
  }
  if (options.round != 0 && rounds.contains(options.round)) {
    return options.round;
  }
  if (rounds.empty()) {
    return absl::NotFoundError(
        absl::StrCat(options.run, ": nothing is set aside"));
  }
  if (options.round == 0 && rounds.size() == 1) return *rounds.begin();
  return absl::InvalidArgumentError(
      absl::StrCat(options.run, ": what is set aside is of round ",
                   absl::StrJoin(rounds, ", "), "; choose with --round"));
}

absl::Status Restore(const Options& options) {
  const RunFolder run(options.run);
  GOSSAMER_ASSIGN_OR_RETURN(const auto all, ListAll(run));
  GOSSAMER_ASSIGN_OR_RETURN(const uint64_t round, RoundToRestore(options, all));
  std::vector<uint64_t> peers;
  for (const auto& [peer, c, aside] : all) {
    if (!aside || c.round != round) continue;
    GOSSAMER_RETURN_IF_ERROR(run.Checkpoints(peer).CheckRestoreSetAside(round));
    peers.push_back(peer);
  }
  // All are checked before the first is restored.  If the disk fails in
  // between, the same command goes on.
  for (const uint64_t peer : peers) {
    GOSSAMER_RETURN_IF_ERROR(run.Checkpoints(peer).RestoreSetAside(round));
  }
  return absl::OkStatus();
}

int RunRestore(const Options& options) {
  const absl::Status status = Restore(options);
  if (!status.ok()) return PrintError("checkpoint", status);
  // The list is shown afterwards, since what matters is what --resume will
  // find.
  return RunList(options, /*verify=*/false);
}

int RunExport(const Options& options) {
  RunConfig config;
  auto argv = ModelsCommand("export", options.choice, config);
  if (!argv.ok()) return PrintError("checkpoint", argv.status());
  argv->insert(argv->end(), {"--out", options.out});
  const absl::StatusOr<int> code = RunToEnd(*argv);
  if (!code.ok()) return PrintError("checkpoint", code.status());
  return *code == 0 ? kOk : kFailed;
}

}  // namespace

void AddCheckpoint(Command& program) {
  auto options = std::make_shared<Options>();
  Command& command = program.AddCommand(
      {.name = "checkpoint",
       .about = "List, verify, restore and export what a run has saved",
       .footer = kExamples});
  const auto add = [&](const char* name, const char* about,
                       int (*run)(const Options&)) -> Command& {
    Command& c =
        command.AddCommand({.name = name,
                            .about = about,
                            .footer = kExamples,
                            .run = [options, run] { return run(*options); }});
    c.AddOption("--run", &options->run, "folder of the run, as in runs/x",
                {.required = true, .value_name = "DIR"});
    c.AddOption("--json", &options->json, "answer as JSON");
    return c;
  };
  add("list", "List all checkpoints of a run",
      [](const Options& o) { return RunList(o, /*verify=*/false); });
  add("verify", "Tell by the exit code whether all are whole",
      [](const Options& o) { return RunList(o, /*verify=*/true); });
  add("restore", "Give those that were set aside their names back", RunRestore)
      .AddOption("--round", &options->round,
                 "which, where those of several rounds were set aside",
                 {.value_name = "ROUND"});
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
