#include "runtime/cli/comparison.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"
#include "runtime/telemetry/progress.h"

namespace gossamer {
namespace {

using Json = nlohmann::ordered_json;
using Values = std::vector<double> ComparedSetting::*;

// The names are keys of report.json, which other programs read.
constexpr std::pair<const char*, Values> kMeasures[] = {
    {"images", &ComparedSetting::images},
    {"score", &ComparedSetting::last_score},
    {"best_score", &ComparedSetting::best_score},
    {"seconds_to_target", &ComparedSetting::seconds_to_target},
    {"bytes_to_target", &ComparedSetting::bytes_to_target},
    {"rounds_per_second", &ComparedSetting::rounds_per_second},
    {"computing_seconds_per_round", &ComparedSetting::computing},
    {"waiting_seconds_per_round", &ComparedSetting::waiting},
    {"exchange_seconds", &ComparedSetting::exchange},
    {"bytes_per_round", &ComparedSetting::bytes_per_round},
    {"consensus_distance", &ComparedSetting::consensus_distance},
    {"training_seconds", &ComparedSetting::training_seconds},
};

ComparedSetting& SettingOf(const ComparedRun& run, Comparison& comparison) {
  for (ComparedSetting& s : comparison.settings) {
    if (s.network == run.network && s.algorithm == run.algorithm) return s;
  }
  ComparedSetting& added = comparison.settings.emplace_back();
  added.network = run.network;
  added.algorithm = run.algorithm;
  return added;
}

void Add(const ComparedRun& run, std::optional<double> target,
         ComparedSetting& setting) {
  const RunSummary& s = run.summary;
  // A run of no rounds has no times, either.
  const double rounds = static_cast<double>(std::max<uint64_t>(1, s.rounds));
  setting.seeds.push_back(run.seed);
  setting.images.push_back(static_cast<double>(run.images));
  // A run without a value is left out of the mean, which is then of fewer
  // seeds; the report marks such a cell.
  if (s.last_score) setting.last_score.push_back(s.last_score->value);
  if (s.best_score) setting.best_score.push_back(s.best_score->value);
  if (s.consensus_distance) {
    setting.consensus_distance.push_back(s.consensus_distance->value);
  }
  setting.rounds_per_second.push_back(s.rounds_per_second);
  setting.bytes_per_round.push_back(s.bytes_per_round);
  setting.training_seconds.push_back(s.training_seconds);
  setting.computing.push_back(s.seconds_computing / rounds);
  setting.waiting.push_back(s.seconds_waiting / rounds);
  // Zero means that no exchange was timed, and a mean with it would flatter.
  if (s.exchange_seconds > 0) setting.exchange.push_back(s.exchange_seconds);
  if (!target) return;
  for (const ScorePoint& p : run.scores) {
    // The first time that counts: scores are noisy and may rise again.
    if (p.score > *target) continue;
    setting.seconds_to_target.push_back(p.seconds);
    setting.bytes_to_target.push_back(p.bytes);
    break;
  }
}

std::string Cell(const std::vector<double>& values, bool spread,
                 double unit = 1) {
  const std::optional<Spread> s = SpreadOf(values);
  if (!s) return "-";
  if (!spread || values.size() < 2) {
    return absl::StrFormat("%.4g", s->mean * unit);
  }
  return absl::StrFormat("%.4g +- %.2g", s->mean * unit, s->deviation * unit);
}

// Returns the target of a game, from its runs with scores.
std::optional<double> TargetOf(const std::vector<ComparedRun>& runs,
                               const std::string& game) {
  std::vector<double> best;
  for (const ComparedRun& run : runs) {
    if (run.game != game || !run.summary.best_score) continue;
    best.push_back(run.summary.best_score->value);
  }
  if (best.empty()) return std::nullopt;
  std::ranges::sort(best);
  // The worst run sets the target, so that every run has a time; one that
  // learnt nothing must not set it.
  return std::min(best.back(), 2 * best[best.size() / 2]);
}

}  // namespace

std::optional<Spread> SpreadOf(const std::vector<double>& values) {
  if (values.empty()) return std::nullopt;
  const double n = static_cast<double>(values.size());
  Spread s;
  for (double v : values) s.mean += v / n;
  if (values.size() == 1) return s;
  // n - 1 and not n: the seeds are a few of many, and their mean is taken from
  // the same values.
  for (double v : values) s.deviation += (v - s.mean) * (v - s.mean) / (n - 1);
  s.deviation = std::sqrt(s.deviation);
  return s;
}

std::vector<Comparison> Compare(const std::vector<ComparedRun>& runs,
                                std::optional<double> target) {
  std::vector<Comparison> games;
  const auto of = [&](const ComparedRun& run) -> Comparison& {
    const auto it = std::ranges::find(games, run.game, &Comparison::game);
    if (it != games.end()) return *it;
    Comparison& added = games.emplace_back();
    added.game = run.game;
    added.target = target ? target : TargetOf(runs, run.game);
    return added;
  };
  for (const ComparedRun& run : runs) {
    // All runs are looked at before any is counted: a target is of all of them.
    Comparison& comparison = of(run);
    if (run.summary.best_score) {
      comparison.score_name = run.summary.score_name;
    }
  }
  for (const ComparedRun& run : runs) {
    Comparison& comparison = of(run);
    Add(run, comparison.target, SettingOf(run, comparison));
  }
  return games;
}

std::string FormatComparison(const Comparison& comparison) {
  int network = 7, algorithm = 9;
  for (const ComparedSetting& s : comparison.settings) {
    network = std::max(network, static_cast<int>(s.network.size()));
    algorithm = std::max(algorithm, static_cast<int>(s.algorithm.size()));
  }
  std::string text = absl::StrFormat(
      "%-*s  %-*s %5s %18s %10s %10s %9s %9s %9s %10s %10s\n", network,
      "network", algorithm, "algorithm", "seeds",
      comparison.score_name.empty() ? "score" : comparison.score_name,
      "to target", "sent then", "rounds/s", "compute", "waiting", "bytes",
      "consensus");
  for (const ComparedSetting& s : comparison.settings) {
    const std::optional<Spread> bytes = SpreadOf(s.bytes_per_round);
    const std::optional<Spread> sent = SpreadOf(s.bytes_to_target);
    absl::StrAppendFormat(
        &text, "%-*s  %-*s %5d %18s %8s s %10s %9s %6s ms %6s ms %10s %10s\n",
        network, s.network, algorithm, s.algorithm, s.seeds.size(),
        Cell(s.last_score, true), Cell(s.seconds_to_target, false),
        sent ? HumanBytes(sent->mean) : "-", Cell(s.rounds_per_second, false),
        Cell(s.computing, false, 1e3), Cell(s.waiting, false, 1e3),
        bytes ? HumanBytes(bytes->mean) : "-",
        Cell(s.consensus_distance, false));
  }
  if (comparison.target) {
    absl::StrAppendFormat(
        &text,
        "target: the first time that %s is at most %.4g, and what the first "
        "peer had sent then; compute, waiting and bytes of a round\n",
        comparison.score_name, *comparison.target);
  }
  return text;
}

std::string ComparisonJson(const std::vector<Comparison>& comparisons,
                           const std::vector<ComparedRun>& runs) {
  Json games = Json::array();
  for (const Comparison& comparison : comparisons) {
    Json json;
    json["game"] = comparison.game;
    json["score_name"] = comparison.score_name;
    json["target"] = comparison.target ? Json(*comparison.target) : Json();
    json["settings"] = Json::array();
    for (const ComparedSetting& s : comparison.settings) {
      Json entry = {{"network", s.network},
                    {"algorithm", s.algorithm},
                    {"seeds", s.seeds}};
      for (const auto& [name, values] : kMeasures) {
        const std::optional<Spread> spread = SpreadOf(s.*values);
        entry[absl::StrCat(name, "_mean")] =
            spread ? Json(spread->mean) : Json();
        entry[absl::StrCat(name, "_deviation")] =
            spread ? Json(spread->deviation) : Json();
      }
      json["settings"].push_back(std::move(entry));
    }
    json["runs"] = Json::array();
    for (const ComparedRun& run : runs) {
      if (run.game != comparison.game) continue;
      Json entry = {{"network", run.network},
                    {"algorithm", run.algorithm},
                    {"seed", run.seed},
                    {"folder", run.folder},
                    {"images", run.images}};
      entry["summary"] = Json::parse(ToJson(run.summary));
      json["runs"].push_back(std::move(entry));
    }
    games.push_back(std::move(json));
  }
  return Json({{"games", std::move(games)}}).dump(2) + "\n";
}

}  // namespace gossamer
