#include "runtime/cli/compare_plan.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "algorithms/base/status_macros.h"
#include "google/protobuf/util/message_differencer.h"
#include "runtime/base/plain_file.h"
#include "runtime/cli/conditions.h"
#include "runtime/cli/rehearse.h"
#include "runtime/cli/run_folder.h"
#include "runtime/cli/variants.h"
#include "runtime/config/run_config.h"
#include "runtime/lab/scenario.h"

namespace gossamer {
namespace {

struct Network {
  std::string name;
  std::string scenario;  // file; empty: loopback
};

// Returns `text` in the characters that a folder's and a run's name may have.
std::string FileName(std::string text) {
  for (char& c : text) {
    const bool fits = absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
                      c == '.' || c == '_' || c == '-';
    if (!fits) c = '-';
  }
  return text;
}

absl::StatusOr<std::string> ScenarioOf(const std::string& folder,
                                       const std::string& rtt,
                                       const std::string& rate) {
  const std::string name = FileName(absl::StrCat("rtt-", rtt, "-", rate));
  const std::string text = absl::StrCat("name: \"", name, "\"\nlink { rtt: \"",
                                        rtt, "\" rate: \"", rate, "\" }\n");
  // The text is parsed under the flags' names, so that an error names what the
  // person has written.
  GOSSAMER_RETURN_IF_ERROR(ParseScenario(text, "--rtt, --rate", 2).status());
  const std::string path =
      absl::StrCat(folder, "/networks/", name, ".textproto");
  GOSSAMER_RETURN_IF_ERROR(MakeFolder(folder + "/networks"));
  GOSSAMER_RETURN_IF_ERROR(WriteTextFile(path, text));
  return path;
}

absl::StatusOr<std::vector<Network>> NetworksOf(const CompareOptions& options,
                                                const std::string& folder,
                                                uint32_t peers) {
  if (options.rtts.empty() && options.rate != "unlimited") {
    return absl::InvalidArgumentError(
        "--rate is the rate of the networks of --rtt; give --rtt, too");
  }
  std::vector<Network> networks;
  for (const std::string& file : options.scenarios) {
    if (file == "local") {
      networks.push_back({"local", ""});
      continue;
    }
    GOSSAMER_ASSIGN_OR_RETURN(const Scenario scenario,
                              LoadScenario(file, peers));
    networks.push_back({scenario.name, file});
  }
  for (const std::string& rtt : options.rtts) {
    GOSSAMER_ASSIGN_OR_RETURN(std::string file,
                              ScenarioOf(folder, rtt, options.rate));
    const bool limited = options.rate != "unlimited";
    // The name stands in tables and folders; without a rate it is the round
    // trip alone.
    networks.push_back({limited ? absl::StrCat(rtt, " ", options.rate) : rtt,
                        std::move(file)});
  }
  if (networks.empty()) networks.push_back({"local", ""});
  if (options.rehearse) {
    for (Network& network : networks) {
      if (network.scenario.empty()) {
        return absl::InvalidArgumentError(
            "--rehearse needs networks to predict: give --scenarios or --rtt, "
            "without local");
      }
      absl::StrAppend(&network.name, ", rehearsed");
    }
  }
  for (size_t i = 0; i < networks.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      // Their runs would share a folder.
      if (FileName(networks[i].name) != FileName(networks[j].name)) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("two networks are called \"", networks[i].name, "\""));
    }
  }
  return networks;
}

// Keeps all that the numbers of a run stand for, so also how it was evaluated,
// and on which data.
RunConfig Compared(RunConfig config) {
  config.clear_name();
  // How often a run saves and what it is called does not change its numbers.
  config.clear_checkpoint();
  return config;
}

// Returns the differences between the run in a folder and the one that is asked
// for, a line each.
absl::StatusOr<std::string> DifferenceFrom(const RunFolder& folder,
                                           const PlannedRun& run,
                                           const std::string& data) {
  GOSSAMER_ASSIGN_OR_RETURN(const RunConfig before, folder.LoadConfig());
  RunConfig now = run.config;
  SetDataFolder(data, now);
  std::string lines;
  google::protobuf::util::MessageDifferencer differencer;
  differencer.ReportDifferencesToString(&lines);
  differencer.Compare(Compared(before), Compared(now));
  return lines + ConditionsDifference(folder.ReadConditions(), run.conditions);
}

absl::Status CheckFolder(const PlannedRun& run, const std::string& data) {
  const RunFolder folder(run.folder);
  if (!folder.Exists()) return absl::OkStatus();
  GOSSAMER_ASSIGN_OR_RETURN(const std::string difference,
                            DifferenceFrom(folder, run, data));
  // A finished or resumable run of the same configuration is used; another one
  // is never overwritten.
  if (difference.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(run.folder, " holds a run that is not the one asked for:\n",
                   difference, "choose another --name, or remove that folder"));
}

// One file that is compared.
struct ComparedGame {
  std::string file;
  RunConfig given;     // what it and --set say
  RunConfig base;      // resolved
  std::string data;    // folder; empty: it needs none
  std::string folder;  // of its runs
};

// Returns the conditions of a run, and says what is missing before the first
// run does.
absl::StatusOr<std::string> ConditionsOf(const CompareOptions& options,
                                         const Network& network,
                                         RunConfig config) {
  if (network.scenario.empty()) return LoopbackConditions();
  GOSSAMER_ASSIGN_OR_RETURN(const Scenario scenario,
                            LoadScenario(network.scenario, config.peers()));
  if (!options.rehearse) return LabConditions(scenario);
  RehearseOptions rehearsal;
  rehearsal.step_time = options.step_time;
  GOSSAMER_ASSIGN_OR_RETURN(const StepTimes steps,
                            PrepareRehearsal(rehearsal, config));
  GOSSAMER_RETURN_IF_ERROR(CheckRehearsal(config, scenario));
  return RehearsalConditions(scenario, steps.source);
}

absl::StatusOr<std::vector<ComparedGame>> GamesOf(
    const CompareOptions& options) {
  std::vector<std::string> files = {options.config};
  files.insert(files.end(), options.also.begin(), options.also.end());
  std::vector<ComparedGame> games;
  for (const std::string& file : files) {
    ComparedGame game;
    game.file = file;
    GOSSAMER_ASSIGN_OR_RETURN(game.base, LoadRunConfig(file, options.set));
    GOSSAMER_ASSIGN_OR_RETURN(game.given, LoadGiven(file, options.set));
    if (options.rehearse &&
        (game.base.game().has_gan() || game.base.game().has_datalens())) {
      return absl::InvalidArgumentError(absl::StrCat(
          file,
          ": --rehearse compares games with a closed form (synthetic, "
          "quadratic, bilinear): in virtual time no networks are trained.  "
          "gossamer lab --rehearse --steps-of RUN predicts the times of one "
          "run"));
    }
    GOSSAMER_ASSIGN_OR_RETURN(game.data, DataFolder(game.base, options.data));
    for (const ComparedGame& other : games) {
      // The name is the folder and the label of a game's runs.
      if (other.base.name() != game.base.name()) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(other.file, " and ", file, " are both called \"",
                       game.base.name(), "\"; give one another name"));
    }
    games.push_back(std::move(game));
  }
  return games;
}

// Returns the changes that a variant makes to its file, in order: --set, the
// seed, then the variant's own, of which the last word counts.
std::vector<std::string> ChangesOf(const CompareOptions& options,
                                   const Variant& variant, uint64_t seed) {
  std::vector<std::string> changes = options.set;
  changes.push_back(absl::StrCat("seed=", seed));
  changes.insert(changes.end(), variant.changes.begin(), variant.changes.end());
  return changes;
}

// Describes a run and its conditions; kInvalidArgument if it cannot be.
absl::StatusOr<PlannedRun> DescribeRun(const CompareOptions& options,
                                       const ComparedGame& game,
                                       const Network& network,
                                       const Variant& variant, uint64_t seed) {
  PlannedRun run;
  run.game = game.base.name();
  run.network = network.name;
  run.algorithm = variant.name;
  GOSSAMER_ASSIGN_OR_RETURN(
      run.config, LoadRunConfig(game.file, ChangesOf(options, variant, seed)));
  run.config.set_name(FileName(absl::StrCat(variant.name, "-seed-", seed)));
  GOSSAMER_RETURN_IF_ERROR(ValidateRunConfig(run.config));
  GOSSAMER_ASSIGN_OR_RETURN(run.conditions,
                            ConditionsOf(options, network, run.config));
  return run;
}

// Completes a run with its folder and the command that fills it.
absl::Status PlaceRun(const CompareOptions& options, const ComparedGame& game,
                      const Network& network, const Variant& variant,
                      PlannedRun& run) {
  const std::string& name = run.config.name();
  const std::string parent =
      network.name == "local"
          ? game.folder
          : absl::StrCat(game.folder, "/", FileName(network.name));
  run.folder = absl::StrCat(parent, "/", name);
  if (network.scenario.empty()) {
    run.arguments = {"train"};
  } else {
    run.arguments = {"lab", "--scenario", network.scenario};
    if (options.rehearse) run.arguments.push_back("--rehearse");
    if (!options.step_time.empty()) {
      run.arguments.insert(run.arguments.end(),
                           {"--step-time", options.step_time});
    }
  }
  for (const std::string& word :
       {std::string("--config"), game.file, std::string("--runs"), parent,
        std::string("--name"), name}) {
    run.arguments.push_back(word);
  }
  if (!game.data.empty()) {
    run.arguments.insert(run.arguments.end(), {"--data", game.data});
  }
  for (const std::string& change :
       ChangesOf(options, variant, run.config.seed())) {
    run.arguments.insert(run.arguments.end(), {"--set", change});
  }
  return CheckFolder(run, game.data);
}

// Notes a method that is left out, once for all networks and seeds that refuse
// it alike.
void LeaveOut(LeftOut left_out, ComparePlan& plan) {
  if (std::ranges::find(plan.left_out, left_out) == plan.left_out.end()) {
    plan.left_out.push_back(std::move(left_out));
  }
}

// Adds the runs of a game; methods of "all" that cannot train it are left out.
absl::Status AddRuns(const CompareOptions& options, const ComparedGame& game,
                     ComparePlan& plan) {
  GOSSAMER_ASSIGN_OR_RETURN(
      const std::vector<Variant> variants,
      VariantsOf(options.algorithms, options.methods, game.given));
  GOSSAMER_ASSIGN_OR_RETURN(
      const std::vector<Network> networks,
      NetworksOf(options, plan.folder, game.base.peers()));
  const bool all =
      options.methods.size() == 1 && options.methods[0] == kAllMethods;
  absl::Status refused;
  const size_t before = plan.runs.size();
  for (const Network& network : networks) {
    for (const Variant& variant : variants) {
      for (uint64_t seed : options.seeds) {
        absl::StatusOr<PlannedRun> run =
            DescribeRun(options, game, network, variant, seed);
        if (!run.ok()) {
          const std::string why(run.status().message());
          refused =
              absl::InvalidArgumentError(absl::StrCat(variant.name, ": ", why));
          // A method that was named must be able to train.
          if (!all) return refused;
          LeaveOut({game.base.name(), variant.name, why}, plan);
          continue;
        }
        GOSSAMER_RETURN_IF_ERROR(
            PlaceRun(options, game, network, variant, *run));
        plan.runs.push_back(*std::move(run));
      }
    }
  }
  // A game that no method can train is an error of the command, with the last
  // reason.
  return plan.runs.size() == before ? refused : absl::OkStatus();
}

}  // namespace

absl::StatusOr<ComparePlan> MakeComparePlan(const CompareOptions& options) {
  if (!options.rehearse && !options.step_time.empty()) {
    return absl::InvalidArgumentError("--step-time is of --rehearse");
  }
  const std::set<uint64_t> seeds(options.seeds.begin(), options.seeds.end());
  // Two runs of one seed would share a folder, and count as two draws.
  if (seeds.size() != options.seeds.size()) {
    return absl::InvalidArgumentError("--seeds: one is named twice");
  }
  GOSSAMER_ASSIGN_OR_RETURN(std::vector<ComparedGame> games, GamesOf(options));
  ComparePlan plan;
  plan.folder = absl::StrCat(
      options.runs, "/",
      options.name.empty() ? "compare-" + games[0].base.name() : options.name);
  for (ComparedGame& game : games) {
    game.folder = games.size() == 1
                      ? plan.folder
                      : absl::StrCat(plan.folder, "/", game.base.name());
    GOSSAMER_RETURN_IF_ERROR(AddRuns(options, game, plan));
  }
  return plan;
}

}  // namespace gossamer
