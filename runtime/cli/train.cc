// gossamer train: a whole fleet on this machine, from configuration to picture.

#include "runtime/cli/train.h"

#include <filesystem>
#include <iostream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "algorithms/base/status_macros.h"
#include "nlohmann/json.hpp"
#include "runtime/cli/command.h"
#include "runtime/cli/conditions.h"
#include "runtime/cli/local_fleet.h"
#include "runtime/config/composition_check.h"
#include "runtime/config/run_config.h"
#include "topology/fleet/event_kind.h"

namespace gossamer {
namespace {

constexpr char kExamples[] = R"(examples:
  gossamer train --config deploy/configs/quickstart.textproto --data data/emoji-32
  gossamer train --config c.textproto --data d --set peers=8 --set mixing.graph=torus
  gossamer train --config c.textproto --data d --resume   # go on after Ctrl-C
  gossamer train --config runs/a/config.textproto --name again --replay runs/a

Ctrl-C stops the fleet at a round that all peers agree on, with a checkpoint;
a second Ctrl-C ends it at once.  With --json, stdout is one object: folder,
samples, curves (paths or null) and summary (as in summary.json).)";

// Checks that the existing run is the one that is asked for.
absl::Status CheckSameRun(const RunFolder& folder, const RunConfig& config) {
  // ConfigurationHash leaves out the name, evaluation, checkpoints, transport,
  // device and the data folder: these may change between two starts.
  GOSSAMER_ASSIGN_OR_RETURN(const RunConfig before, folder.LoadConfig());
  if (ConfigurationHash(before) == ConfigurationHash(config)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--resume: ", folder.path(), " was started with another configuration:\n",
      ConfigurationDifference(before, config), "resume with ",
      folder.ConfigPath(), ", or choose another --name"));
}

absl::Status PrepareFolder(const RunFolder& folder, const RunConfig& config,
                           const TrainOptions& options) {
  std::error_code error;
  if (!std::filesystem::exists(folder.path(), error)) {
    if (!options.resume) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "--resume: there is no ", folder.path(), "; start without --resume"));
  }
  // A folder that is not a run's may hold anything, so not even --overwrite
  // replaces it.
  if (!folder.Exists() && !std::filesystem::is_empty(folder.path(), error)) {
    return absl::InvalidArgumentError(
        absl::StrCat(folder.path(),
                     " is there and is not a run's folder; "
                     "choose another --name or --runs"));
  }
  // Checkpoints fit one configuration; a changed one is another run.
  if (options.resume) return CheckSameRun(folder, config);
  if (!options.overwrite) {
    if (!folder.Exists()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(folder.path(),
                     " is there already; take --resume to go on, "
                     "--overwrite to replace it, or another --name"));
  }
  // A run of another name begins with a full budget, too; but nothing here
  // forgets what was spent.
  const std::string spent = folder.PeerPath(1) + "/spent";
  // A ledger that cannot be looked at counts as one that is there.
  if (std::filesystem::exists(spent, error) || error) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--overwrite would delete ", spent,
        ", the ledger of a privacy budget that stays spent; take another "
        "--name"));
  }
  std::filesystem::remove_all(folder.path(), error);
  if (error) return absl::ErrnoToStatus(error.value(), folder.path());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<FleetSpec> PrepareTraining(const TrainOptions& options) {
  FleetSpec spec;
  GOSSAMER_ASSIGN_OR_RETURN(spec.config,
                            LoadRunConfig(options.config, options.set));
  GOSSAMER_RETURN_IF_ERROR(CheckGameIsHere(spec.config));
  if (!options.name.empty()) {
    spec.config.set_name(options.name);
    // A name has rules of its own, as a folder and in certificates.
    GOSSAMER_RETURN_IF_ERROR(ValidateRunConfig(spec.config));
  }
  if (options.adapt) GOSSAMER_RETURN_IF_ERROR(options.adapt(spec.config));
  GOSSAMER_ASSIGN_OR_RETURN(spec.data, DataFolder(spec.config, options.data));
  // The absolute path lets sample and evaluate find the data later.
  SetDataFolder(spec.data, spec.config);
  spec.run_folder = absl::StrCat(options.runs, "/", spec.config.name());
  spec.resume = options.resume;
  spec.replay = options.replay;
  if (!spec.replay.empty()) {
    const RunFolder before(spec.replay);
    const absl::StatusOr<RunConfig> config = before.LoadConfig();
    if (!config.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--replay: ", config.status().message()));
    }
    // The decisions of a run fit only its own configuration.
    if (ConfigurationHash(*config) != ConfigurationHash(spec.config)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--replay: ", spec.replay, " has another configuration:\n",
          ConfigurationDifference(*config, spec.config), "replay with ",
          before.ConfigPath()));
    }
  }
  spec.conditions = LoopbackConditions();
  spec.title = absl::StrCat(spec.config.name(), "  ", spec.config.algorithm(),
                            "  ", spec.config.peers(), " peers");
  // The folder is prepared last: every other error leaves an earlier run
  // untouched.
  GOSSAMER_RETURN_IF_ERROR(
      PrepareFolder(RunFolder(spec.run_folder), spec.config, options));
  return spec;
}

namespace {

void PrintResults(const RunFolder& folder, const RunConfig& config,
                  const RunSummary& s) {
  absl::PrintF(
      "%s %d of %d rounds in %s (%.2f rounds/s, %s per peer and "
      "round)\n",
      s.finished ? "trained" : "stopped after", s.rounds, config.rounds(),
      HumanDuration(absl::Seconds(s.training_seconds)), s.rounds_per_second,
      HumanBytes(s.bytes_per_round));
  if (s.first_score && s.last_score) {
    absl::PrintF("%-8s %.4g at round %d, %.4g at round %d (lower is better)\n",
                 s.score_name, s.first_score->value, s.first_score->round,
                 s.last_score->value, s.last_score->round);
  }
  if (s.epsilon) {
    const DataLensConfig& votes = config.game().datalens();
    absl::PrintF(
        "privacy  (%.4g, %g)-DP of %g%s\n", *s.epsilon, votes.delta(),
        votes.epsilon(),
        votes.has_noise_seed() ? ", were the noise's seed not known" : "");
  }
  // Only the events that ask for an action are shown.
  for (const EventInfo& kind : kEventKinds) {
    const auto told = s.events.find(std::string(kind.name));
    if (kind.action.empty() || told == s.events.end()) continue;
    absl::PrintF("event    %s, %d times: %s\n", kind.name, told->second,
                 kind.action);
  }
  absl::PrintF("folder   %s\n", folder.path());
  const std::string samples = folder.NewestSamples();
  if (!samples.empty()) absl::PrintF("samples  %s\n", samples);
  // A run without rounds has none.
  if (std::filesystem::exists(folder.CurvesPath())) {
    absl::PrintF("curves   %s\n", folder.CurvesPath());
  }
  // The hint is a command that works as it stands: the folder's own
  // configuration has the name and every change of --set.
  if (!s.finished) {
    absl::PrintF("go on    gossamer train --resume --config %s --runs %s\n",
                 folder.ConfigPath(),
                 std::filesystem::path(folder.path()).parent_path().string());
  }
}

void PrintJson(const RunFolder& folder, const RunSummary& summary) {
  const std::string samples = folder.NewestSamples();
  nlohmann::ordered_json json = {{"folder", folder.path()}};
  json["samples"] = samples.empty() ? nlohmann::ordered_json()
                                    : nlohmann::ordered_json(samples);
  json["curves"] = std::filesystem::exists(folder.CurvesPath())
                       ? nlohmann::ordered_json(folder.CurvesPath())
                       : nlohmann::ordered_json();
  json["summary"] = nlohmann::ordered_json::parse(ToJson(summary));
  std::cout << json.dump(2) << "\n";
}

int RunTrain(const TrainOptions& options) {
  SignalWaiter signals;
  absl::StatusOr<FleetSpec> spec = PrepareTraining(options);
  if (!spec.ok()) return PrintError("train", spec.status());
  return Train("train", *std::move(spec), options, signals);
}

}  // namespace

int ShowResults(const std::string& command, const absl::Status& status,
                const RunFolder& folder, const RunConfig& config, bool json) {
  // The results are written even after a failure: they show how far the run
  // came.
  const absl::StatusOr<RunSummary> summary = folder.WriteResults(config);
  if (!status.ok()) return PrintError(command, status);
  if (!summary.ok()) return PrintError(command, summary.status());
  if (json) {
    PrintJson(folder, *summary);
  } else {
    PrintResults(folder, config, *summary);
  }
  return kOk;
}

int Train(const std::string& command, FleetSpec spec,
          const TrainOptions& options, SignalWaiter& signals) {
  const RunFolder folder(spec.run_folder);
  const RunConfig config = spec.config;
  ProgressDisplay display(stderr);
  if (options.resume) {
    const uint64_t round =
        folder.NewestCommonRound(static_cast<int>(config.peers()));
    display.Print(round == 0 ? std::string("no checkpoint that all peers have: "
                                           "starting from the beginning")
                             : absl::StrCat("going on from round ", round));
  }
  // A setting that the method does not read is no error, but a person who set
  // it expects an effect.
  if (const auto unused = FindUnused(config); !unused.empty()) {
    display.Print(absl::StrCat("note: ", config.algorithm(),
                               " makes no use of ",
                               absl::StrJoin(unused, ", ")));
  }
  const absl::Status status =
      LocalFleet(std::move(spec), signals, display).Run();
  return ShowResults(command, status, folder, config, options.json);
}

void AddTrain(Command& program) {
  auto options = std::make_shared<TrainOptions>();
  Command& command = program.AddCommand(
      {.name = "train",
       .about = "Train with a whole fleet of peers on this machine",
       .footer = kExamples,
       .run = [options] { return RunTrain(*options); }});
  AddTrainingOptions(command, *options,
                     "name of this run, its folder in --runs");
  command.AddOption("--resume", &options->resume,
                    "go on from the newest common checkpoint");
  command.AddOption("--overwrite", &options->overwrite,
                    "replace a run of the same name", {.excludes = "--resume"});
  command.AddOption("--replay", &options->replay,
                    "repeat that run bit for bit: also what its peers decided "
                    "by the clock",
                    {.value_name = "RUN", .excludes = "--resume"});
}

}  // namespace gossamer
