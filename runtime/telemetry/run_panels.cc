#include "runtime/telemetry/run_panels.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace gossamer {
namespace {

// Returns "proxy-fid (lower is better)", by the name of a round's score.
std::string ScoreTitle(const RoundMetrics& metrics) {
  return absl::StrCat(metrics.score_name.empty() ? "score" : metrics.score_name,
                      " (lower is better)");
}

}  // namespace

std::vector<Panel> RunPanels(const std::vector<PeerLog>& peers,
                             const std::vector<Sample>& consensus) {
  Panel generator{.title = "generator loss"};
  Panel discriminator{.title = "discriminator loss"};
  Panel score{.title = "", .log_y = true, .markers = true};
  Panel distance{.title = "consensus distance", .log_y = true};
  for (const PeerLog& peer : peers) {
    Series g{peer.label, {}}, d{peer.label, {}}, s{peer.label, {}};
    for (const RoundMetrics& m : peer.rounds) {
      const double round = static_cast<double>(m.round);
      g.points.emplace_back(round, m.generator_loss);
      d.points.emplace_back(round, m.discriminator_loss);
      if (!m.score) continue;
      s.points.emplace_back(round, *m.score);
      score.title = ScoreTitle(m);
    }
    // A peer that has not finished a round has no line, and no place in the
    // legend.
    if (g.points.empty()) continue;
    generator.series.push_back(std::move(g));
    discriminator.series.push_back(std::move(d));
    if (!s.points.empty()) score.series.push_back(std::move(s));
  }
  Series fleet{"fleet", {}};
  for (const Sample& sample : consensus) {
    fleet.points.emplace_back(static_cast<double>(sample.round), sample.value);
  }
  if (!fleet.points.empty()) distance.series.push_back(std::move(fleet));
  double last = 0;
  for (const Series& s : generator.series) {
    last = std::max(last, s.points.back().first);
  }
  std::vector<Panel> panels;
  for (Panel* panel : {&generator, &discriminator, &score, &distance}) {
    // All panels end at the same round, so that they can be compared at a
    // glance.
    panel->x_end = last;
    if (!panel->series.empty()) panels.push_back(std::move(*panel));
  }
  return panels;
}

}  // namespace gossamer
