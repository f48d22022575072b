#include "runtime/cli/plan_check.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "algorithms/base/status_macros.h"
#include "runtime/cli/fleet_process.h"
#include "runtime/cli/run_folder.h"
#include "runtime/telemetry/summary.h"

namespace gossamer {
namespace {

constexpr double kSeconds = 30;  // of a run, about
constexpr double kLeastRounds = 60;
constexpr double kMostRounds = 2000;

std::string FileName(std::string text) {
  for (char& c : text) {
    const bool fits = absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
                      c == '.' || c == '_' || c == '-';
    if (!fits) c = '-';
  }
  return text;
}

struct Wanted {
  std::string why;
  Candidate candidate;
};

absl::StatusOr<std::vector<Wanted>> Choose(const PlanRequest& request,
                                           const Plan& plan) {
  const Candidate& best = plan.candidates[0];
  Candidate exposed = best;
  exposed.overlap = 0;
  Candidate plain{.name = "ring",
                  .schedule = {.edges = ""},
                  .codec = "innov-int4",
                  .overlap = 1};
  std::vector<Wanted> wanted;
  for (const Wanted& one :
       {Wanted{"recommended", best}, Wanted{"without overlap", exposed},
        Wanted{"unplanned", plain}}) {
    const bool there = std::ranges::any_of(wanted, [&](const Wanted& w) {
      return w.candidate.name == one.candidate.name &&
             w.candidate.codec == one.candidate.codec &&
             w.candidate.overlap == one.candidate.overlap;
    });
    if (there) continue;
    GOSSAMER_ASSIGN_OR_RETURN(Candidate predicted,
                              Predict(request, one.candidate));
    wanted.push_back({one.why, std::move(predicted)});
  }
  return wanted;
}

std::string ConfigurationFor(const PlanRequest& request,
                             const Candidate& candidate) {
  const double rounds = std::clamp(kSeconds / candidate.seconds_per_round,
                                   kLeastRounds, kMostRounds);
  return absl::StrFormat(
      "# Written by gossamer plan --check.\n"
      "seed: %d\npeers: %d\nrounds: %.0f\nalgorithm: \"dp-oadam\"\n%s"
      "game { synthetic { parameters: %d step_time: \"%.0fus\" pace: "
      "\"sleep\" } }\nevaluation { every: 0 }\n",
      request.seed, request.links.size, rounds, ConfigurationOf(candidate),
      request.parameters, 1e6 * request.step_seconds);
}

// What the later half of the rounds came to.
absl::Status Measure(PlanCheck& check) {
  const RunFolder folder(check.folder);
  GOSSAMER_ASSIGN_OR_RETURN(const std::vector<PeerLog> logs, folder.ReadLogs());
  double slowest = std::numeric_limits<double>::infinity();
  double computing = 0, counted = 0;
  std::vector<double> exchanges;
  double whole = std::numeric_limits<double>::infinity();
  for (const PeerLog& log : logs) {
    const size_t n = log.rounds.size();
    if (n < 4) return absl::DataLossError(check.folder + ": hardly any rounds");
    const RoundMetrics& middle = log.rounds[n / 2];
    const RoundMetrics& last = log.rounds[n - 1];
    const auto rate = [&last](const RoundMetrics& from) {
      return static_cast<double>(last.round - from.round) /
             absl::ToDoubleSeconds(last.finished - from.finished);
    };
    slowest = std::min(slowest, rate(middle));
    whole = std::min(whole, rate(log.rounds[0]));
    for (size_t k = n / 2 + 1; k < n; ++k) {
      computing += log.rounds[k].seconds_computing;
      exchanges.push_back(log.rounds[k].seconds_exchanging);
      ++counted;
    }
  }
  if (exchanges.empty()) return absl::DataLossError(check.folder + ": no logs");
  const auto median =
      exchanges.begin() + static_cast<std::ptrdiff_t>(exchanges.size() / 2);
  std::nth_element(exchanges.begin(), median, exchanges.end());
  check.rounds_per_second = slowest;
  check.whole_run_rounds_per_second = whole;
  check.step_seconds = computing / counted;
  check.exchange_seconds = *median;
  return absl::OkStatus();
}

absl::StatusOr<PlanCheck> RunOne(const PlanInput& input, const Wanted& wanted,
                                 const std::string& folder,
                                 const std::string& scenario,
                                 SignalWaiter& signals) {
  const Candidate& c = wanted.candidate;
  const std::string name =
      FileName(absl::StrCat(c.name, "-", c.codec, "-h", c.overlap));
  const std::string config = absl::StrCat(folder, "/", name, ".textproto");
  GOSSAMER_RETURN_IF_ERROR(
      WriteTextFile(config, ConfigurationFor(input.request, c)));
  std::cerr << "plan: " << wanted.why << ", " << name << "\n";
  const ProcessSpec spec{
      .name = name,
      .argv = {SiblingProgram("gossamer"), "lab", "--scenario", scenario,
               "--config", config, "--runs", folder, "--name", name,
               "--overwrite"},
      .log = "",
      .silent = true};
  GOSSAMER_ASSIGN_OR_RETURN(const ProcessExit exit,
                            RunPassingSignals(spec, signals));
  PlanCheck check{.why = wanted.why,
                  .predicted = c,
                  .folder = absl::StrCat(folder, "/", name)};
  if (!exit.ok()) {
    return absl::InternalError(absl::StrCat("the run in ", check.folder, " ",
                                            exit.Describe(),
                                            "; what it said is above"));
  }
  GOSSAMER_RETURN_IF_ERROR(Measure(check));
  PlanRequest as_it_was = input.request;
  as_it_was.step_seconds = check.step_seconds;
  GOSSAMER_ASSIGN_OR_RETURN(const Candidate again, Predict(as_it_was, c));
  check.predicted_with_that_step = 1 / again.seconds_per_round;
  return check;
}

}  // namespace

absl::StatusOr<std::vector<PlanCheck>> CheckPlan(const PlanOptions& options,
                                                 const PlanInput& input,
                                                 const Plan& plan) {
  const std::string folder =
      absl::StrCat(options.runs, "/plan-", FileName(input.network));
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  std::string scenario = input.scenario_file;
  if (scenario.empty()) {
    scenario = folder + "/network.textproto";
    GOSSAMER_RETURN_IF_ERROR(WriteTextFile(scenario, input.scenario_text));
  }
  GOSSAMER_ASSIGN_OR_RETURN(const std::vector<Wanted> wanted,
                            Choose(input.request, plan));
  SignalWaiter signals;
  std::vector<PlanCheck> checks;
  for (const Wanted& w : wanted) {
    GOSSAMER_ASSIGN_OR_RETURN(PlanCheck check,
                              RunOne(input, w, folder, scenario, signals));
    checks.push_back(std::move(check));
  }
  return checks;
}

}  // namespace gossamer
