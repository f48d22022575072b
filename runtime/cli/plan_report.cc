#include "runtime/cli/plan_report.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "runtime/telemetry/progress.h"

namespace gossamer {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kShown = 10;
constexpr size_t kLongestName = 24;

double PerSecond(const Candidate& c) { return 1 / c.seconds_per_round; }
std::string Millis(double seconds) {
  return absl::StrFormat("%.3g ms", 1e3 * seconds);
}

// The ring's ranks in order, from its edge list.
std::string NameOf(const Candidate& c) {
  if (c.schedule.edges.empty()) return c.name;
  std::string ranks;
  for (size_t at = 0; at != std::string::npos;) {
    const size_t end = c.schedule.edges.find(' ', at);
    const std::string edge = c.schedule.edges.substr(at, end - at);
    absl::StrAppend(&ranks, ranks.empty() ? "" : "-",
                    edge.substr(0, edge.find('-')));
    at = end == std::string::npos ? end : end + 1;
  }
  // Whole in the lines to copy.
  if (ranks.size() > kLongestName)
    ranks = ranks.substr(0, kLongestName) + "...";
  return absl::StrCat("ring ", ranks);
}

// The candidate like `as` but for what is given.
const Candidate* Find(const Plan& plan, const std::string& name,
                      const std::string& codec, int overlap) {
  const auto found = std::ranges::find_if(plan.candidates, [&](const auto& c) {
    return c.name == name && c.codec == codec && c.overlap == overlap;
  });
  return found == plan.candidates.end() ? nullptr : &*found;
}

std::string PaceReason(const PlanInput& input, const Plan& plan) {
  const Candidate& best = plan.candidates[0];
  const double step = input.request.step_seconds;
  std::string out = absl::StrFormat(
      "It makes %.3g rounds/s.  Steps of %s alone would make %.3g, and coding "
      "takes %s a round.  ",
      PerSecond(best), Millis(step), 1 / step,
      Millis(best.busy_seconds - step));
  const std::string exchange = Millis(best.exchange_seconds);
  if (Hidden(best) && best.overlap > 0) {
    absl::StrAppend(&out, "The network costs nothing: an exchange takes ",
                    exchange, " at most and hides behind ", best.overlap,
                    best.overlap == 1 ? " step." : " steps.");
  } else if (Hidden(best)) {
    absl::StrAppend(&out, "The network is so fast (an exchange takes ",
                    exchange, ") that nothing need be hidden.");
  } else {
    absl::StrAppend(&out, "The network costs the rest, although exchanges (",
                    exchange, " at most) hide behind ", best.overlap,
                    " steps: no candidate is faster by more than 3 %.");
  }
  return out;
}

std::vector<std::string> Reasons(const PlanInput& input, const Plan& plan) {
  const Candidate& best = plan.candidates[0];
  std::vector<std::string> reasons = {PaceReason(input, plan)};
  double fastest = best.seconds_per_round;
  for (const Candidate& c : plan.candidates) {
    fastest = std::min(fastest, c.seconds_per_round);
  }
  const auto alike =
      std::ranges::count_if(plan.candidates, [fastest](const Candidate& c) {
        return c.seconds_per_round <= fastest / (1 - kAlike);
      });
  reasons.push_back(absl::StrFormat(
      "Of %d candidates, %d are as fast as the fastest within 3 %%; of these "
      "it keeps the peers closest together (%.3g), or as close as any within "
      "3 %% with fewer bytes.",
      plan.candidates.size(), alike, best.consensus_distance));
  if (best.overlap > 0) {
    const Candidate* less = Find(plan, best.name, best.codec, best.overlap - 1);
    if (less != nullptr) {
      reasons.push_back(absl::StrFormat(
          "With overlap_steps %d it would make %.3g rounds/s at a consensus "
          "distance of %.3g.",
          less->overlap, PerSecond(*less), less->consensus_distance));
    }
  }
  const Candidate* ring = Find(plan, "ring", best.codec, best.overlap);
  if (ring != nullptr && best.name != "ring") {
    reasons.push_back(absl::StrFormat(
        "The ring as numbered would make %.3g rounds/s with the same codec and "
        "overlap, at %.3g.",
        PerSecond(*ring), ring->consensus_distance));
  }
  reasons.push_back(absl::StrFormat(
      "Centralized training (cp-oadam) would make %.3g rounds/s at best, with "
      "the all-reduce \"%s\".",
      1 / plan.centralized.round, std::string(plan.centralized.name)));
  return reasons;
}

std::string Row(size_t place, const Candidate& c, size_t width) {
  return absl::StrFormat("%3d  %-*s %-10s %2d %6.3f %9.3g %10s %10s %10.3g\n",
                         place, width, NameOf(c), c.codec, c.overlap, c.gamma,
                         PerSecond(c), Millis(c.exchange_seconds),
                         HumanBytes(c.bytes_per_round), c.consensus_distance);
}

Json CandidateJson(const Candidate& c) {
  Json json = {{"name", c.name},
               {"graph", c.schedule.schedule == "fixed" ? Json(c.schedule.graph)
                                                        : Json()},
               {"schedule", c.schedule.schedule},
               {"edges", c.schedule.edges},
               {"codec", c.codec},
               {"overlap_steps", c.overlap},
               {"gamma", c.gamma},
               {"rounds_per_second", PerSecond(c)},
               {"seconds_per_round", c.seconds_per_round},
               {"hidden", Hidden(c)},
               {"busy_seconds", c.busy_seconds},
               {"exchange_seconds", c.exchange_seconds},
               {"bytes_per_round", c.bytes_per_round}};
  json["consensus_distance"] =
      std::isfinite(c.consensus_distance) ? Json(c.consensus_distance) : Json();
  json["contraction"] = c.contraction;
  return json;
}

Json CheckJson(const PlanCheck& c) {
  return {{"why", c.why},
          {"candidate", CandidateJson(c.predicted)},
          {"folder", c.folder},
          {"measured_rounds_per_second", c.rounds_per_second},
          {"error", c.error()},
          {"measured_step_seconds", c.step_seconds},
          {"predicted_with_that_step", c.predicted_with_that_step},
          {"error_with_that_step", c.error_with_that_step()},
          {"measured_exchange_seconds", c.exchange_seconds},
          {"whole_run_rounds_per_second", c.whole_run_rounds_per_second}};
}

}  // namespace

std::string PlanText(const PlanInput& input, const Plan& plan) {
  const PlanRequest& request = input.request;
  std::string out = absl::StrFormat(
      "%s: %d peers, %d parameters, steps of %s\n", input.network,
      request.links.size, request.parameters, Millis(request.step_seconds));
  for (size_t i = 0; i < input.hosts.size(); ++i) {
    absl::StrAppend(&out, i == 0 ? "ranks: " : ", ", i, " ", input.hosts[i]);
  }
  absl::StrAppend(&out, "\n");
  for (const std::string& warning : input.warnings) {
    absl::StrAppend(&out, "warning: ", warning, "\n");
  }
  const size_t shown = std::min(kShown, plan.candidates.size());
  size_t width = 5;
  for (size_t i = 0; i < shown; ++i) {
    width = std::max(width, NameOf(plan.candidates[i]).size());
  }
  absl::StrAppendFormat(&out, "\n%3s  %-*s %-10s %2s %6s %9s %10s %10s %10s\n",
                        "", width, "graph", "codec", "h", "gamma", "rounds/s",
                        "exchange", "sent/round", "consensus");
  for (size_t i = 0; i < shown; ++i) {
    absl::StrAppend(&out, Row(i + 1, plan.candidates[i], width));
  }
  absl::StrAppend(
      &out, "\nh: overlap_steps.  consensus: mean squared distance of a ",
      "parameter from the\nfleet's mean, if every step adds noise of variance "
      "1; to rank by.\n\nrecommended: ",
      NameOf(plan.candidates[0]), ", ", plan.candidates[0].codec,
      ", overlap_steps ", plan.candidates[0].overlap, "\n");
  for (const std::string& reason : Reasons(input, plan)) {
    absl::StrAppend(&out, "  ", reason, "\n");
  }
  absl::StrAppend(&out, "\n", ConfigurationOf(plan.candidates[0]));
  const std::string sites = SitesText(plan.sites);
  if (!sites.empty()) {
    absl::StrAppend(
        &out, "\nsites: round trips are ", Millis(plan.sites.near),
        " and less within, ", Millis(plan.sites.far),
        " and more between them; where bytes\nbetween them are dear "
        "(gossamer methods locality-skewed):\n  schedule: "
        "\"locality-skewed\" sites: \"",
        sites, "\"\n");
  }
  return out;
}

std::string ChecksText(const std::vector<PlanCheck>& checks,
                       double wanted_step) {
  std::string out = absl::StrFormat("\n%-16s %-26s %9s %9s %7s %9s %14s\n", "",
                                    "", "predicted", "measured", "error",
                                    "real step", "error with it");
  for (const PlanCheck& c : checks) {
    absl::StrAppendFormat(
        &out, "%-16s %-26s %9.3f %9.3f %+6.1f%% %9s %+13.1f%%\n", c.why,
        absl::StrCat(c.predicted.name, " ", c.predicted.codec, " h",
                     c.predicted.overlap),
        PerSecond(c.predicted), c.rounds_per_second, 100 * c.error(),
        Millis(c.step_seconds), 100 * c.error_with_that_step());
  }
  return out +
         "rounds/s of the later half of the rounds; error: predicted over "
         "measured, less 1\n";
}

Json PlanJson(const PlanInput& input, const Plan& plan,
              const std::vector<PlanCheck>& checks) {
  Json json = {{"network", input.network},
               {"peers", input.request.links.size},
               {"hosts", input.hosts},
               {"parameters", input.request.parameters},
               {"step_seconds", input.request.step_seconds},
               {"warnings", input.warnings}};
  Json best = CandidateJson(plan.candidates[0]);
  best["configuration"] = ConfigurationOf(plan.candidates[0]);
  best["reasons"] = Reasons(input, plan);
  json["recommended"] = std::move(best);
  json["candidates"] = Json::array();
  for (size_t i = 0; i < std::min(kShown, plan.candidates.size()); ++i) {
    json["candidates"].push_back(CandidateJson(plan.candidates[i]));
  }
  json["centralized"] = {{"all_reduce", std::string(plan.centralized.name)},
                         {"rounds_per_second", 1 / plan.centralized.round}};
  json["sites"] = SitesText(plan.sites);
  json["checks"] = checks.empty() ? Json() : Json::array();
  for (const PlanCheck& c : checks) json["checks"].push_back(CheckJson(c));
  return json;
}

}  // namespace gossamer
