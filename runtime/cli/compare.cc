// gossamer compare: the same training with one algorithm after the other.

#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "runtime/base/status_macros.h"
#include "runtime/cli/command.h"
#include "runtime/cli/comparison.h"
#include "runtime/cli/local_fleet.h"
#include "runtime/peer/run_config.h"

namespace gossamer {
namespace {

constexpr char kExamples[] = R"(examples:
  gossamer compare --config deploy/configs/quickstart.textproto --data data/emoji-32
  gossamer compare --config c.textproto --data d --seeds 1,2,3 \
      --algorithms dp-oadam,rand-dp-oadam,cp-oadam --json

Every algorithm runs for the same rounds, peers and batch, so all see as many
images, one run after the other on this machine.  What an algorithm implies
(graph, schedule, optimizer) is its own unless it is the file's algorithm.
Runs that are finished are kept: the same command goes on where it was ended.

JSON keys: algorithms, a list of algorithm, seeds, score_mean, score_deviation,
best_score_mean, rounds_per_second, bytes_per_round, consensus_distance,
training_seconds (means over seeds, or null); runs, a list of algorithm, seed,
folder, summary (as in summary.json).  The same is in report.json.)";

struct Options : TrainingOptions {
  std::vector<std::string> algorithms = {"dp-oadam", "rand-dp-oadam",
                                         "cp-oadam"};
  std::vector<uint64_t> seeds = {1};
};

struct Plan {
  std::string folder;
  std::vector<FleetSpec> runs;  // algorithm by algorithm, seed by seed
};

// `text` is the file's: every algorithm resolves it anew.
absl::StatusOr<RunConfig> ConfigFor(const Options& options,
                                    const std::string& own_algorithm,
                                    const std::string& algorithm,
                                    uint64_t seed) {
  std::vector<std::string> overrides = options.set;
  overrides.push_back("algorithm=" + algorithm);
  overrides.push_back(absl::StrCat("seed=", seed));
  overrides.push_back(absl::StrCat("name=", algorithm, "-seed-", seed));
  if (algorithm != own_algorithm) {
    // Empty: what the algorithm implies.
    overrides.push_back("mixing.schedule=");
    overrides.push_back("step.optimizer=");
    if (algorithm == "rand-dp-oadam" || algorithm == "cp-oadam") {
      overrides.push_back("mixing.graph=");
    }
    if (algorithm == "cp-oadam") {
      overrides.push_back("mixing.overlap_steps=0");
      overrides.push_back("mixing.mixing_rounds=1");
    }
  }
  return LoadRunConfig(options.config, overrides);
}

absl::StatusOr<Plan> MakePlan(const Options& options) {
  GOSSAMER_ASSIGN_OR_RETURN(const RunConfig base,
                            LoadRunConfig(options.config, options.set));
  GOSSAMER_ASSIGN_OR_RETURN(const std::string data,
                            DataFolder(base, options.data));
  Plan plan;
  plan.folder = absl::StrCat(
      options.runs, "/",
      options.name.empty() ? "compare-" + base.name() : options.name);
  for (const std::string& algorithm : options.algorithms) {
    for (uint64_t seed : options.seeds) {
      FleetSpec& spec = plan.runs.emplace_back();
      GOSSAMER_ASSIGN_OR_RETURN(
          spec.config, ConfigFor(options, base.algorithm(), algorithm, seed));
      if (!data.empty()) {
        spec.config.mutable_game()->mutable_gan()->mutable_data()->set_path(
            data);
      }
      spec.data = data;
      spec.run_folder = absl::StrCat(plan.folder, "/", spec.config.name());
    }
  }
  return plan;
}

// The summary of a run that has finished with this very configuration.
absl::StatusOr<RunSummary> Finished(const FleetSpec& spec) {
  std::ifstream file(RunFolder(spec.run_folder).SummaryPath());
  std::stringstream text;
  text << file.rdbuf();
  GOSSAMER_ASSIGN_OR_RETURN(RunSummary summary, ParseSummary(text.str()));
  if (!summary.finished ||
      summary.configuration_hash != ConfigurationHash(spec.config)) {
    return absl::NotFoundError("not finished, or of another configuration");
  }
  return summary;
}

absl::StatusOr<RunSummary> RunOne(const FleetSpec& spec, SignalWaiter& signals,
                                  ProgressDisplay& display) {
  const RunFolder folder(spec.run_folder);
  std::error_code error;
  if (folder.Exists()) std::filesystem::remove_all(spec.run_folder, error);
  GOSSAMER_RETURN_IF_ERROR(LocalFleet(spec, signals, display).Run());
  GOSSAMER_ASSIGN_OR_RETURN(RunSummary summary,
                            folder.WriteResults(spec.config));
  if (!summary.finished) {
    return absl::AbortedError(
        "stopped; the same command goes on with this run");
  }
  return summary;
}

absl::StatusOr<std::vector<ComparedRun>> RunAll(Plan& plan,
                                                SignalWaiter& signals) {
  ProgressDisplay display(stderr);
  std::vector<ComparedRun> done;
  double seconds = 0;  // of the runs made by this process
  int made = 0;
  for (size_t i = 0; i < plan.runs.size(); ++i) {
    FleetSpec& spec = plan.runs[i];
    const size_t left = plan.runs.size() - i - 1;
    spec.title =
        absl::StrCat("compare ", i + 1, "/", plan.runs.size(), "  ",
                     spec.config.algorithm(), "  seed ", spec.config.seed());
    if (made > 0 && left > 0) {
      spec.note =
          absl::StrCat("then ", left, " more, about ",
                       HumanDuration(absl::Seconds(seconds / made *
                                                   static_cast<double>(left))));
    } else if (left > 0) {
      spec.note = absl::StrCat("then ", left, " more");
    }
    absl::StatusOr<RunSummary> summary = Finished(spec);
    if (summary.ok()) {
      display.Print(absl::StrCat(spec.title, ": kept, it has finished"));
    } else {
      const absl::Time start = absl::Now();
      summary = RunOne(spec, signals, display);
      if (!summary.ok()) return summary.status();
      seconds += absl::ToDoubleSeconds(absl::Now() - start);
      ++made;
    }
    done.push_back({spec.config.algorithm(), spec.config.seed(),
                    spec.run_folder, *std::move(summary)});
  }
  return done;
}

// Scores over rounds and over time: a line for every run, a colour for every
// algorithm.
std::vector<Panel> ScorePanels(const std::vector<ComparedRun>& runs) {
  Panel by_round{.title = "", .log_y = true, .markers = true};
  Panel by_time{.title = "score over time",
                .x_label = "seconds",
                .log_y = true,
                .markers = true};
  for (const ComparedRun& run : runs) {
    const auto logs = RunFolder(run.folder).ReadLogs();
    if (!logs.ok() || logs->empty()) continue;
    Series rounds{run.algorithm, {}}, times{run.algorithm, {}};
    const std::vector<RoundMetrics>& first = (*logs)[0].rounds;
    for (const RoundMetrics& m : first) {
      if (!m.score) continue;
      by_round.title = ScoreTitle(m);
      rounds.points.emplace_back(static_cast<double>(m.round), *m.score);
      times.points.emplace_back(
          absl::ToDoubleSeconds(m.finished - first[0].finished), *m.score);
    }
    if (rounds.points.empty()) continue;
    by_round.series.push_back(std::move(rounds));
    by_time.series.push_back(std::move(times));
  }
  if (by_round.series.empty()) return {};
  return {std::move(by_round), std::move(by_time)};
}

int RunCompare(const Options& options) {
  SignalWaiter signals;
  absl::StatusOr<Plan> plan = MakePlan(options);
  if (!plan.ok()) {
    return Complain("compare",
                    absl::InvalidArgumentError(plan.status().message()));
  }
  const auto runs = RunAll(*plan, signals);
  if (!runs.ok()) return Complain("compare", runs.status());
  const std::string json = ComparisonJson(*runs);
  const std::string report = plan->folder + "/report.json";
  const std::string picture = plan->folder + "/comparison.png";
  if (const absl::Status written = WriteTextFile(report, json); !written.ok()) {
    return Complain("compare", written);
  }
  const std::vector<Panel> panels = ScorePanels(*runs);
  absl::Status drawn;
  if (!panels.empty()) {
    drawn = DrawCurves(panels,
                       std::filesystem::path(plan->folder).filename().string(),
                       picture);
    if (!drawn.ok()) return Complain("compare", drawn);
  }
  if (options.json) {
    std::cout << json;
  } else {
    std::cout << FormatComparison(*runs) << "report   " << report << "\n";
    if (!panels.empty()) std::cout << "picture  " << picture << "\n";
  }
  return kOk;
}

}  // namespace

void AddCompare(Command& program) {
  auto options = std::make_shared<Options>();
  Command& command = program.AddCommand(
      {.name = "compare",
       .about = "Train with several algorithms and compare them",
       .footer = kExamples,
       .run = [options] { return RunCompare(*options); }});
  AddTrainingOptions(command, *options,
                     "folder of this comparison in --runs; compare-NAME of "
                     "the configuration if not given");
  command.AddOption("--algorithms", &options->algorithms, "which, in order",
                    {.show_default = true, .delimiter = ','});
  command.AddOption("--seeds", &options->seeds, "one run of each per seed",
                    {.show_default = true, .delimiter = ','});
}

}  // namespace gossamer
