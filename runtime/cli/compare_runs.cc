#include "runtime/cli/compare_runs.h"

#include <fstream>
#include <iostream>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "algorithms/base/status_macros.h"
#include "nlohmann/json.hpp"
#include "runtime/base/steady_time.h"
#include "runtime/cli/fleet_process.h"
#include "runtime/cli/run_folder.h"
#include "runtime/config/run_config.h"
#include "runtime/telemetry/elapsed.h"
#include "runtime/telemetry/progress.h"

namespace gossamer {
namespace {

// Returns the summary of a run if it has finished.  The plan has checked that
// the folder's configuration and conditions are the run's.
absl::StatusOr<RunSummary> Finished(const PlannedRun& run) {
  const RunFolder folder(run.folder);
  // The logs may have the last round of a command that died before its last
  // score or checkpoint: it says by summary.json that it came to its end.
  std::ifstream file(folder.SummaryPath());
  const auto said = nlohmann::json::parse(file, nullptr, false);
  if (!said.is_object() || !said.contains("finished") ||
      said["finished"] != true) {
    return absl::NotFoundError("not finished");
  }
  return folder.Summarize(run.config);
}

// Returns the round from which a run can go on; 0: none.
uint64_t ResumeRound(const PlannedRun& run) {
  return RunFolder(run.folder)
      .NewestCommonRound(static_cast<int>(run.config.peers()));
}

std::string HowItGoesOn(const PlannedRun& run) {
  const uint64_t round = ResumeRound(run);
  if (round == 0) {
    return "the same command begins this run anew (there is no checkpoint that "
           "all peers have)";
  }
  return absl::StrCat("the same command goes on with this run from round ",
                      round);
}

// Makes the run by a command of its own, which shows its progress.  Its results
// are files.
absl::Status RunOne(const PlannedRun& run, SignalWaiter& signals) {
  ProcessSpec spec{.name = run.folder,
                   .argv = {SiblingProgram("gossamer")},
                   .log = "",
                   // Results of the run on stdout would mix with those of the
                   // comparison.
                   .silent = true};
  spec.argv.insert(spec.argv.end(), run.arguments.begin(), run.arguments.end());
  // The plan has checked that a folder that is there holds this run.
  spec.argv.push_back(ResumeRound(run) > 0 ? "--resume" : "--overwrite");
  const absl::StatusOr<ProcessExit> exit = RunPassingSignals(spec, signals);
  if (absl::IsAborted(exit.status())) {
    return absl::AbortedError(absl::StrCat("stopped; ", HowItGoesOn(run)));
  }
  GOSSAMER_RETURN_IF_ERROR(exit.status());
  if (exit->ok()) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(
      "the run in ", run.folder, " ", exit->Describe(),
      "; what it said is above.  Once that is mended, ", HowItGoesOn(run)));
}

std::vector<ScorePoint> ScoresOf(const std::string& folder) {
  const auto logs = RunFolder(folder).ReadLogs();
  if (!logs.ok() || logs->empty()) return {};
  std::vector<ScorePoint> scores;
  // The first peer evaluates.
  const std::vector<RoundMetrics>& rounds = (*logs)[0].rounds;
  const std::vector<Elapsed> elapsed = ElapsedOf(rounds);
  for (size_t i = 0; i < rounds.size(); ++i) {
    if (!rounds[i].score) continue;
    scores.push_back({.round = rounds[i].round,
                      .seconds = elapsed[i].seconds,
                      .bytes = static_cast<double>(elapsed[i].bytes_sent),
                      .score = *rounds[i].score});
  }
  return scores;
}

ComparedRun Result(const PlannedRun& run, RunSummary summary) {
  const RunConfig& config = run.config;
  const uint64_t batch =
      config.game().has_gan() ? config.game().gan().batch() : 0;
  return {.game = run.game,
          .network = run.network,
          .algorithm = run.algorithm,
          .seed = config.seed(),
          .folder = run.folder,
          // Every step of every peer takes one batch of its own shard.
          .images = summary.steps * batch * config.peers(),
          .summary = summary,
          .scores = ScoresOf(run.folder)};
}

// Returns a line such as "compare 3/12: quickstart, dp-oadam, seed 2, in
// wan-100ms; about 12m left".
std::string Title(const ComparePlan& plan, size_t i, double mean_seconds) {
  const PlannedRun& run = plan.runs[i];
  const MixingConfig& mixing = run.config.mixing();
  std::string title = absl::StrCat(
      "compare ", i + 1, "/", plan.runs.size(), ": ", run.game, ", ",
      run.algorithm, ", seed ", run.config.seed(), ", in ", run.network);
  if (IsCentralized(run.config) && mixing.all_reduce() != "auto") {
    absl::StrAppend(&title, ", all-reduce ", mixing.all_reduce());
  }
  if (mean_seconds > 0) {
    const double left =
        mean_seconds * static_cast<double>(plan.runs.size() - i);
    absl::StrAppend(&title, "; about ", HumanDuration(absl::Seconds(left)),
                    " left");
  }
  return title;
}

// Returns ": goes on from round 120", or "" for a run that does not exist.
std::string Beginning(const PlannedRun& run) {
  if (!RunFolder(run.folder).Exists()) return "";
  const uint64_t round = ResumeRound(run);
  return round > 0 ? absl::StrCat(": goes on from round ", round)
                   : ": begins anew (no checkpoint that all peers have)";
}

}  // namespace

absl::StatusOr<std::vector<ComparedRun>> RunAll(const ComparePlan& plan) {
  SignalWaiter signals;
  std::vector<ComparedRun> done;
  double seconds = 0;  // of the runs that this process has made
  int made = 0;
  for (size_t i = 0; i < plan.runs.size(); ++i) {
    const PlannedRun& run = plan.runs[i];
    const std::string title = Title(plan, i, made > 0 ? seconds / made : 0);
    // The runs that are kept take no time, so the mean for the time left is of
    // those that were made here alone.
    absl::StatusOr<RunSummary> summary = Finished(run);
    if (summary.ok()) {
      std::cerr << title << ": kept, it has finished\n";
    } else {
      std::cerr << title << Beginning(run) << "\n";
      const absl::Time start = SteadyNow();
      GOSSAMER_RETURN_IF_ERROR(RunOne(run, signals));
      // The command ended well; a run that was stopped from elsewhere has not
      // finished all the same.
      summary = Finished(run);
      if (!summary.ok()) {
        return absl::AbortedError(absl::StrCat(
            run.folder, " stopped before its last round; ", HowItGoesOn(run)));
      }
      seconds += absl::ToDoubleSeconds(SteadyNow() - start);
      ++made;
    }
    done.push_back(Result(run, *std::move(summary)));
  }
  return done;
}

}  // namespace gossamer
