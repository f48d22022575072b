#include "runtime/cli/plan_report.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/cli/shell_word.h"
#include "runtime/telemetry/progress.h"

namespace gossamer {
namespace {

using Json = nlohmann::ordered_json;

// The rows of a table for people, beside those with a mark.
constexpr size_t kShown = 20;

std::string SetFlags(const std::vector<std::string>& changes) {
  std::string flags;
  for (const std::string& change : changes) {
    absl::StrAppend(&flags, flags.empty() ? "" : " ", "--set ",
                    ShellWord(change));
  }
  return flags;
}

std::string Mark(const PlanResult& result, size_t i) {
  std::string mark;
  if (i == result.recommended) mark += "*";
  if (result.rows[i].configured) mark += "=";
  if (result.rows[i].candidate.baseline) mark += "c";
  return mark;
}

Json RowJson(const PlanResult::Row& row) {
  const PlanFigures& f = row.figures;
  return {{"name", row.candidate.name},
          {"set", row.candidate.changes},
          {"configured", row.configured},
          {"baseline", row.candidate.baseline},
          {"rounds_per_second", f.rounds_per_second},
          {"waiting_share", f.waiting_share},
          {"exchange_seconds", f.exchange_seconds},
          {"bytes_per_round", f.bytes_per_round},
          {"far_bytes_per_round",
           f.far_bytes_per_round ? Json(*f.far_bytes_per_round) : Json()},
          {"consensus_distance", f.consensus_distance},
          {"score", f.score ? Json(*f.score) : Json()}};
}

}  // namespace

std::string PlanText(const PlanResult& result) {
  std::string out = absl::StrFormat(
      "%s: %d peers, %d parameters%s, steps %s, %d rounds each\n",
      result.network, result.hosts.size(), result.parameters,
      result.stand_in ? " of a synthetic game in place of the networks" : "",
      result.step_times, result.rounds);
  // The heading "candidate" is as wide.
  size_t width = 9;
  bool far = false, score = false;
  for (const PlanResult::Row& row : result.rows) {
    width = std::max(width, row.candidate.name.size());
    far |= row.figures.far_bytes_per_round.has_value();
    score |= row.figures.score.has_value();
  }
  absl::StrAppendFormat(&out, "\n   %-*s %9s %8s %10s %11s", width, "candidate",
                        "rounds/s", "waiting", "exchange", "sent/round");
  // Columns that no row has are left out.
  if (far) absl::StrAppendFormat(&out, " %11s", "far/round");
  absl::StrAppendFormat(&out, " %10s", "consensus");
  if (score) absl::StrAppendFormat(&out, " %10s", "score");
  absl::StrAppend(&out, "\n");
  for (size_t i = 0; i < result.rows.size(); ++i) {
    const PlanResult::Row& row = result.rows[i];
    const PlanFigures& f = row.figures;
    // Rows come in order, the best first.  Those with a mark are always shown:
    // a person compares the recommended one with what is configured, and both
    // with the centralized baseline.
    if (i >= kShown && Mark(result, i).empty()) continue;
    absl::StrAppendFormat(
        &out, "%-2s %-*s %9.3f %7.1f%% %7.1f ms %11s", Mark(result, i), width,
        row.candidate.name, f.rounds_per_second, 100 * f.waiting_share,
        1e3 * f.exchange_seconds, HumanBytes(f.bytes_per_round));
    if (far) {
      absl::StrAppendFormat(&out, " %11s",
                            HumanBytes(f.far_bytes_per_round.value_or(0)));
    }
    absl::StrAppendFormat(&out, " %10.3g", f.consensus_distance);
    if (score) absl::StrAppendFormat(&out, " %10.3g", f.score.value_or(0));
    absl::StrAppend(&out, "\n");
  }
  if (result.rows.size() > kShown) {
    absl::StrAppendFormat(&out, "the %d best of %d; --json has all\n", kShown,
                          result.rows.size());
  }
  absl::StrAppend(
      &out, "\n*: recommended, by --by ", result.goal,
      "; =: as configured; c: centralized, to compare with.\nFigures are of "
      "the later half of the rounds.  sent/round: by a peer, mean",
      far ? "; far/round: between sites, of all peers" : "",
      ".\nconsensus: mean over peers of the squared distance from their "
      "mean.\n");
  for (const PlanResult::LeftOut& left : result.left_out) {
    absl::StrAppend(&out, "left out: ", left.name, ": ", left.why, "\n");
  }
  if (!result.recommended) return out;
  const PlanCandidate& best = result.rows[*result.recommended].candidate;
  absl::StrAppend(&out, "\nrecommended: ", best.name, "\n  ");
  if (best.changes.empty()) {
    return absl::StrCat(out, result.config, " as it is\n");
  }
  return absl::StrCat(out, SetFlags(best.changes), "\n");
}

Json PlanJson(const PlanResult& result) {
  Json json = {{"network", result.network},
               {"peers", result.hosts.size()},
               {"hosts", result.hosts},
               {"parameters", result.parameters},
               {"step_times", result.step_times},
               {"rounds", result.rounds},
               {"by", result.goal},
               {"warnings", result.warnings},
               {"recommended", Json()},
               {"candidates", Json::array()},
               {"left_out", Json::array()}};
  if (result.recommended) {
    const PlanResult::Row& best = result.rows[*result.recommended];
    json["recommended"] = RowJson(best);
    json["recommended"]["flags"] = SetFlags(best.candidate.changes);
  }
  for (const PlanResult::Row& row : result.rows) {
    json["candidates"].push_back(RowJson(row));
  }
  for (const PlanResult::LeftOut& left : result.left_out) {
    json["left_out"].push_back({{"name", left.name}, {"why", left.why}});
  }
  return json;
}

}  // namespace gossamer
