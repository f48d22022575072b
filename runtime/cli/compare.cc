// gossamer compare: the same training with several algorithms, in several
// networks.

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "algorithms/base/status_macros.h"
#include "runtime/base/plain_file.h"
#include "runtime/cli/command.h"
#include "runtime/cli/compare_panels.h"
#include "runtime/cli/compare_plan.h"
#include "runtime/cli/compare_runs.h"
#include "runtime/cli/comparison.h"
#include "runtime/cli/report.h"
#include "runtime/cli/run_folder.h"
#include "runtime/cli/shell_word.h"
#include "runtime/config/run_config.h"

namespace gossamer {
namespace {

constexpr char kExamples[] = R"(examples:
  gossamer compare --config deploy/configs/quickstart.textproto --data data/emoji-32
  gossamer compare --config c.textproto --data d --seeds 1,2,3 \
      --algorithms dp-oadam,dp-oadam+mixing.codec=dense-f32,cp-oadam
  gossamer compare --config deploy/configs/synthetic.textproto \
      --rtt 0ms,100ms --rate 100mbit                     # in the lab: as root
  gossamer compare --config c.textproto --data d \
      --scenarios local,deploy/lab/three_continents.textproto
  gossamer compare --config deploy/configs/quadratic.textproto \
      --methods dense-f32,innov-int4,innov-sign,power-gossip,cold,dyna-cold
  gossamer compare --config deploy/configs/quadratic.textproto \
      --also deploy/configs/bilinear.textproto,deploy/configs/gaussian.textproto \
      --methods all                              # several games in one report
  gossamer compare --config deploy/configs/synthetic.textproto --rehearse \
      --rtt 0ms,100ms,200ms --rate 100mbit      # predicted: no root, no lab

Every algorithm runs for the same rounds, peers and batch, so all see as many
images, one run after the other on this machine.  An algorithm that is not the
file's brings its own defaults (graph, schedule, overlap), and its optimizer if
that differs by default from the file's algorithm's; one that averages over all
peers takes the fastest all-reduce of the network at hand unless a setting names
one.

--methods all takes every method that can train a game, and says why it leaves
the others out.

The same command goes on where it was ended: runs that are finished are kept,
others resume from the last checkpoint that all peers have, or begin anew where
there is none (checkpoint.every; a rehearsal has none).

Leaves report.html (table, curves, samples; needs no network), comparison.png
and report.json.  JSON keys: games, a list of game, score_name, target, settings
and runs.  Settings are a list of network, algorithm, seeds and the mean and
deviation over seeds of images, score, best_score, seconds_to_target,
bytes_to_target, rounds_per_second, computing_seconds_per_round,
waiting_seconds_per_round, exchange_seconds, bytes_per_round,
consensus_distance, training_seconds; runs of network, algorithm, seed, folder,
images, summary (as in summary.json).)";

// The report holds the command that makes it again, so options with their
// default values are left out only where they are empty.
std::string CommandOf(const CompareOptions& o) {
  std::vector<std::string> words = {"gossamer", "compare", "--config",
                                    ShellWord(o.config)};
  const auto add = [&](const char* flag, const std::string& value) {
    if (!value.empty()) words.insert(words.end(), {flag, ShellWord(value)});
  };
  add("--also", absl::StrJoin(o.also, ","));
  add("--data", o.data);
  add("--runs", o.runs);
  add("--name", o.name);
  if (o.methods.empty()) {
    add("--algorithms", absl::StrJoin(o.algorithms, ","));
  } else {
    add("--methods", absl::StrJoin(o.methods, ","));
  }
  add("--seeds", absl::StrJoin(o.seeds, ","));
  add("--scenarios", absl::StrJoin(o.scenarios, ","));
  add("--rtt", absl::StrJoin(o.rtts, ","));
  if (!o.rtts.empty()) add("--rate", o.rate);
  if (o.rehearse) words.push_back("--rehearse");
  add("--step-time", o.step_time);
  if (o.target) add("--target", absl::StrCat(*o.target));
  for (const std::string& set : o.set) add("--set", set);
  return absl::StrJoin(words, " ");
}

// Returns, for each algorithm after the first, the lines of the configuration
// that it changes.
std::vector<std::pair<std::string, std::string>> DifferencesFrom(
    const PlannedRun& first, const ComparePlan& plan) {
  std::vector<std::pair<std::string, std::string>> differences;
  for (const PlannedRun& run : plan.runs) {
    // Only the algorithm differs among the rest: networks and seeds are columns
    // of their own.
    if (run.game != first.game || run.network != first.network ||
        run.config.seed() != first.config.seed() ||
        run.algorithm == first.algorithm) {
      continue;
    }
    std::string lines = ConfigurationDifference(first.config, run.config);
    absl::StripTrailingAsciiWhitespace(&lines);
    differences.emplace_back(run.algorithm,
                             absl::StrReplaceAll(lines, {{"modified: ", ""}}));
  }
  for (const LeftOut& left_out : plan.left_out) {
    if (left_out.game != first.game) continue;
    differences.emplace_back(left_out.algorithm,
                             absl::StrCat("left out: ", left_out.why));
  }
  return differences;
}

absl::StatusOr<Report> MakeReport(const CompareOptions& options,
                                  const ComparePlan& plan,
                                  const std::vector<ComparedRun>& all) {
  Report report{.title = std::filesystem::path(plan.folder).filename().string(),
                .games = {},
                .command = CommandOf(options),
                .machine = DescribeMachine()};
  for (Comparison& comparison : Compare(all, options.target)) {
    ReportGame& game = report.games.emplace_back();
    std::vector<ComparedRun> runs;
    std::ranges::copy_if(all, std::back_inserter(runs), [&](const auto& run) {
      return run.game == comparison.game;
    });
    const auto first =
        std::ranges::find(plan.runs, comparison.game, &PlannedRun::game);
    game.configuration = ToTextProto(first->config);
    game.comparison = std::move(comparison);
    // Runs come game by game.  A report of one game keeps the plain names.
    const bool alone = plan.runs[0].game == plan.runs.back().game;
    const std::string& name = game.comparison.game;
    game.curves = {
        {"every line is a run", absl::StrCat(plan.folder, "/comparison",
                                             alone ? "" : "-" + name, ".png")}};
    if (const std::vector<Panel> panels = ComparisonPanels(runs);
        !panels.empty()) {
      GOSSAMER_RETURN_IF_ERROR(DrawCurves(
          panels, absl::StrCat(report.title, alone ? "" : ": " + name),
          game.curves[0].path));
    }
    game.differences = DifferencesFrom(*first, plan);
    // One grid of each setting is enough: that of its first seed.
    for (const ComparedRun& run : runs) {
      if (run.seed != runs[0].seed) continue;
      game.samples.push_back(
          {absl::StrCat(run.algorithm, ", ", run.network, ", seed ", run.seed),
           RunFolder(run.folder).NewestSamples()});
    }
  }
  return report;
}

int RunCompare(const CompareOptions& options) {
  absl::StatusOr<ComparePlan> plan = MakeComparePlan(options);
  if (!plan.ok()) {
    // A plan that cannot be is a wrong command line, whatever the cause's code.
    return PrintError("compare",
                      absl::InvalidArgumentError(plan.status().message()));
  }
  for (const LeftOut& left_out : plan->left_out) {
    std::cerr << "compare: " << left_out.game << " without "
              << left_out.algorithm << ": " << left_out.why << "\n";
  }
  // Everything was checked: from here on only a run itself can fail.
  const auto runs = RunAll(*plan);
  if (!runs.ok()) return PrintError("compare", runs.status());
  const absl::StatusOr<Report> report = MakeReport(options, *plan, *runs);
  if (!report.ok()) return PrintError("compare", report.status());
  std::string table;
  std::vector<Comparison> comparisons;
  for (const ReportGame& game : report->games) {
    if (report->games.size() > 1) {
      absl::StrAppend(&table, game.comparison.game, "\n");
    }
    table += FormatComparison(game.comparison);
    comparisons.push_back(game.comparison);
  }
  const std::string json = ComparisonJson(comparisons, *runs);
  for (const auto& [name, text] :
       {std::pair("report.json", json), {"report.html", ReportHtml(*report)}}) {
    const absl::Status written =
        WriteTextFile(absl::StrCat(plan->folder, "/", name), text);
    if (!written.ok()) return PrintError("compare", written);
  }
  if (options.json) {
    std::cout << json;
  } else {
    std::cout << table << "report   " << plan->folder << "/report.html\n";
  }
  return kOk;
}

}  // namespace

void AddCompare(Command& program) {
  auto options = std::make_shared<CompareOptions>();
  Command& command = program.AddCommand(
      {.name = "compare",
       .about = "Train with several algorithms and compare them",
       .footer = kExamples,
       .run = [options] { return RunCompare(*options); }});
  AddTrainingOptions(command, *options,
                     "folder of this comparison in --runs; compare-NAME of "
                     "the configuration if not given");
  command.AddOption("--also", &options->also,
                    "configurations of further games, in the same report",
                    {.value_name = "FILE,...", .delimiter = ','});
  command.AddOption("--algorithms", &options->algorithms,
                    "which, in order; NAME+path=value changes a setting",
                    {.show_default = true, .delimiter = ','});
  command.AddOption(
      "--methods", &options->methods,
      "instead: names that gossamer methods lists, with options "
      "as in innov-topk:k=32; or all",
      {.value_name = "NAME,...", .delimiter = ',', .excludes = "--algorithms"});
  command.AddOption("--seeds", &options->seeds, "one run of each per seed",
                    {.show_default = true, .delimiter = ','});
  command.AddOption("--scenarios", &options->scenarios,
                    "networks of the lab, or local; needs root",
                    {.value_name = "FILE,...", .delimiter = ','});
  command.AddOption("--rtt", &options->rtts,
                    "networks with this round-trip time between all peers",
                    {.value_name = "TIME,...", .delimiter = ','});
  command.AddOption("--rate", &options->rate,
                    "of every link of --rtt, each way, such as 100mbit",
                    {.show_default = true});
  command.AddOption("--rehearse", &options->rehearse,
                    "predict the runs in virtual time instead of the lab; of "
                    "games with a closed form");
  command.AddOption("--step-time", &options->step_time,
                    "with --rehearse: of one gradient", {.value_name = "TIME"});
  command.AddOption("--target", &options->target,
                    "the score of time-to-target; if not given the worst of "
                    "the runs' best, or twice their median if that is less");
}

}  // namespace gossamer
