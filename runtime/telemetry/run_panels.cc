#include "runtime/telemetry/run_panels.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "algorithms/base/plain_text.h"

namespace gossamer {
namespace {

// Returns "proxy-fid (lower is better)", by the name of a round's score.
std::string ScoreTitle(const RoundMetrics& metrics) {
  return absl::StrCat(metrics.score_name.empty() ? "score" : metrics.score_name,
                      " (lower is better)");
}

// Returns the panel of one player's loss, without points that are not finite.
Panel LossPanel(const std::string& player, const std::vector<PeerLog>& peers) {
  // A name may come from another machine.
  Panel panel{.title = absl::StrCat(PlainText(player), " loss")};
  for (const PeerLog& peer : peers) {
    Series s{peer.label, {}};
    for (const RoundMetrics& m : peer.rounds) {
      const double loss = ValueOf(m.losses, player);
      if (!std::isfinite(loss)) continue;
      s.points.emplace_back(static_cast<double>(m.round), loss);
    }
    // A peer without a point has no line, and no place in the legend.
    if (!s.points.empty()) panel.series.push_back(std::move(s));
  }
  return panel;
}

// The fleet's distance, and the part of each player in it.
std::vector<Series> DistanceSeries(const std::vector<Consensus>& consensus) {
  std::vector<std::string> players;
  for (const Consensus& sample : consensus) AddPlayers(sample.players, players);
  std::vector<Series> all = {{"fleet", {}}};
  for (const std::string& player : players) all.push_back({player, {}});
  for (const Consensus& sample : consensus) {
    const auto round = static_cast<double>(sample.round);
    all[0].points.emplace_back(round, sample.distance);
    for (size_t i = 0; i < players.size(); ++i) {
      const double distance = ValueOf(sample.players, players[i]);
      if (std::isfinite(distance)) {
        all[i + 1].points.emplace_back(round, distance);
      }
    }
  }
  if (all[0].points.empty()) all.clear();
  return all;
}

}  // namespace

std::vector<Panel> RunPanels(const std::vector<PeerLog>& peers,
                             const std::vector<Consensus>& consensus) {
  std::vector<std::string> players;
  double last = 0;
  Panel score{.title = "", .log_y = true, .markers = true};
  Panel distance{.title = "consensus distance", .log_y = true};
  for (const PeerLog& peer : peers) {
    Series s{peer.label, {}};
    for (const RoundMetrics& m : peer.rounds) {
      const double round = static_cast<double>(m.round);
      last = std::max(last, round);
      AddPlayers(m.losses, players);
      if (!m.score) continue;
      s.points.emplace_back(round, *m.score);
      score.title = ScoreTitle(m);
    }
    if (!s.points.empty()) score.series.push_back(std::move(s));
  }
  distance.series = DistanceSeries(consensus);
  std::vector<Panel> panels;
  for (const std::string& player : players) {
    panels.push_back(LossPanel(player, peers));
  }
  panels.push_back(std::move(score));
  panels.push_back(std::move(distance));
  std::erase_if(panels, [](const Panel& p) { return p.series.empty(); });
  // All panels end at the same round, so that they can be compared at a glance.
  for (Panel& panel : panels) panel.x_end = last;
  return panels;
}

}  // namespace gossamer
