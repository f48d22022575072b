#include "runtime/cli/comparison.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"
#include "runtime/telemetry/progress.h"

namespace gossamer {
namespace {

using Json = nlohmann::ordered_json;

struct Row {
  std::string algorithm;
  std::vector<uint64_t> seeds;
  std::vector<double> last, best, rate, bytes, consensus, seconds;
};

std::vector<Row> RowsOf(const std::vector<ComparedRun>& runs) {
  std::vector<Row> rows;
  for (const ComparedRun& run : runs) {
    auto row = std::find_if(rows.begin(), rows.end(), [&](const Row& r) {
      return r.algorithm == run.algorithm;
    });
    if (row == rows.end()) {
      rows.push_back({.algorithm = run.algorithm,
                      .seeds = {},
                      .last = {},
                      .best = {},
                      .rate = {},
                      .bytes = {},
                      .consensus = {},
                      .seconds = {}});
      row = rows.end() - 1;
    }
    const RunSummary& s = run.summary;
    row->seeds.push_back(run.seed);
    if (s.last_score) row->last.push_back(s.last_score->value);
    if (s.best_score) row->best.push_back(s.best_score->value);
    if (s.consensus_distance) {
      row->consensus.push_back(s.consensus_distance->value);
    }
    row->rate.push_back(s.rounds_per_second);
    row->bytes.push_back(s.bytes_per_round);
    row->seconds.push_back(s.training_seconds);
  }
  return rows;
}

std::string Cell(const std::vector<double>& values, bool spread) {
  const std::optional<Spread> s = SpreadOf(values);
  if (!s) return "-";
  if (!spread || values.size() < 2) return absl::StrFormat("%.4g", s->mean);
  return absl::StrFormat("%.4g +- %.2g", s->mean, s->deviation);
}

Json MeanJson(const std::vector<double>& values) {
  const std::optional<Spread> s = SpreadOf(values);
  return s ? Json(s->mean) : Json();
}

}  // namespace

std::optional<Spread> SpreadOf(const std::vector<double>& values) {
  if (values.empty()) return std::nullopt;
  const double n = static_cast<double>(values.size());
  Spread s;
  for (double v : values) s.mean += v / n;
  if (values.size() == 1) return s;
  for (double v : values) s.deviation += (v - s.mean) * (v - s.mean) / (n - 1);
  s.deviation = std::sqrt(s.deviation);
  return s;
}

std::string FormatComparison(const std::vector<ComparedRun>& runs) {
  std::string text =
      absl::StrFormat("%-16s %5s %20s %12s %10s %14s %12s\n", "algorithm",
                      "seeds", "score (lower: better)", "best score",
                      "rounds/s", "bytes per round", "consensus");
  for (const Row& row : RowsOf(runs)) {
    const std::optional<Spread> bytes = SpreadOf(row.bytes);
    absl::StrAppendFormat(&text, "%-16s %5d %21s %12s %10s %15s %12s\n",
                          row.algorithm, row.seeds.size(), Cell(row.last, true),
                          Cell(row.best, false), Cell(row.rate, false),
                          bytes ? HumanBytes(bytes->mean) : "-",
                          Cell(row.consensus, false));
  }
  return text;
}

std::string ComparisonJson(const std::vector<ComparedRun>& runs) {
  Json json = {{"algorithms", Json::array()}, {"runs", Json::array()}};
  for (const Row& row : RowsOf(runs)) {
    Json entry = {{"algorithm", row.algorithm}, {"seeds", row.seeds}};
    const std::optional<Spread> last = SpreadOf(row.last);
    entry["score_mean"] = last ? Json(last->mean) : Json();
    entry["score_deviation"] = last ? Json(last->deviation) : Json();
    entry["best_score_mean"] = MeanJson(row.best);
    entry["rounds_per_second"] = MeanJson(row.rate);
    entry["bytes_per_round"] = MeanJson(row.bytes);
    entry["consensus_distance"] = MeanJson(row.consensus);
    entry["training_seconds"] = MeanJson(row.seconds);
    json["algorithms"].push_back(std::move(entry));
  }
  for (const ComparedRun& run : runs) {
    Json entry = {{"algorithm", run.algorithm},
                  {"seed", run.seed},
                  {"folder", run.folder}};
    entry["summary"] = Json::parse(ToJson(run.summary));
    json["runs"].push_back(std::move(entry));
  }
  return json.dump(2) + "\n";
}

}  // namespace gossamer
