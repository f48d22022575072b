#include "runtime/cli/compare_panels.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/cli/run_folder.h"

namespace gossamer {

std::vector<Panel> ComparisonPanels(const std::vector<ComparedRun>& runs) {
  Panel by_round{.title = "", .log_y = true, .markers = true};
  Panel by_time{
      .title = "", .x_label = "seconds", .log_y = true, .markers = true};
  Panel by_bytes{.title = "",
                 // The first peer has the scores; its traffic is theirs.
                 .x_label = "MB sent by the first peer",
                 .log_y = true,
                 .log_x = true,
                 .markers = true};
  Panel consensus{.title = "", .log_y = true};
  std::string score = "score";
  for (const ComparedRun& run : runs) {
    const std::string label = run.network == runs[0].network
                                  ? run.algorithm
                                  : run.algorithm + ", " + run.network;
    Series rounds{label, {}}, times{label, {}}, bytes{label, {}},
        distance{label, {}};
    for (const ScorePoint& p : run.scores) {
      // All runs of a game have one kind of score.
      score = run.summary.score_name;
      rounds.points.emplace_back(static_cast<double>(p.round), p.score);
      times.points.emplace_back(p.seconds, p.score);
      bytes.points.emplace_back(1e-6 * p.bytes, p.score);
    }
    for (const Consensus& s : RunFolder(run.folder).ReadConsensus()) {
      distance.points.emplace_back(static_cast<double>(s.round), s.distance);
    }
    // A run without values adds an empty series, so that a colour means the
    // same run in all panels.
    by_round.series.push_back(std::move(rounds));
    by_time.series.push_back(std::move(times));
    by_bytes.series.push_back(std::move(bytes));
    consensus.series.push_back(std::move(distance));
  }
  std::vector<Panel> panels;
  for (Panel* p : {&by_round, &by_time, &by_bytes, &consensus}) {
    const bool drawn = std::ranges::any_of(
        p->series, [](const Series& s) { return !s.points.empty(); });
    if (!drawn) continue;
    p->title = absl::StrCat(
        runs[0].game, ": ",
        p == &consensus ? "consensus distance" : score + " (lower is better)",
        " by ", p->x_label);
    panels.push_back(std::move(*p));
  }
  return panels;
}

}  // namespace gossamer
