#include "tests/simulation/rare_mixing.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "topology/view.h"

namespace gossamer::simulation {
namespace {

constexpr double kRareGraph = 0.12;  // share of fixed schedules
constexpr double kDeepOverlap = 0.06;
constexpr double kClockwork = 0.5;  // share of those whose links are slow
// A ring with few chords needs rounds that grow with the square of its size.
constexpr int kMaxOfEdgeList = 16;

// Draws a ring, which makes the graph connected, and some chords.  In half of
// the lists every edge has a weight of its own, small enough that no row
// exceeds 1.
std::string DrawEdges(int peers, Draws& d) {
  std::set<std::pair<int, int>> edges;
  for (int i = 0; i < peers; ++i) {
    edges.insert(std::minmax({i, (i + 1) % peers}));
  }
  for (int chords = d.Int(0, peers); chords > 0; --chords) {
    const int a = d.Int(0, peers - 1), b = d.Int(0, peers - 1);
    if (a != b) edges.insert(std::minmax({a, b}));
  }
  std::vector<int> degrees(static_cast<size_t>(peers));
  for (const auto& [a, b] : edges) {
    ++degrees[static_cast<size_t>(a)];
    ++degrees[static_cast<size_t>(b)];
  }
  const int most = *std::ranges::max_element(degrees);
  const bool weighted = d.Chance(0.5);
  std::string text;
  for (const auto& [a, b] : edges) {
    absl::StrAppend(&text, text.empty() ? "" : " ", a, "-", b);
    if (weighted) {
      absl::StrAppendFormat(&text, ":%.4f", d.Between(0.5, 1) / (1 + most));
    }
  }
  return text;
}

}  // namespace

int LateOf(const Scenario& s, int most) {
  int late = 0;
  while (late < most && s.peers - late - 1 >= 3 &&
         MakeSchedule(s.schedule, s.peers - late - 1, s.seed).ok()) {
    ++late;
  }
  return late;
}

void DrawRareGraph(Scenario& s, Draws d) {
  if (IsTimeVarying(s.schedule.graph) || s.centralized() ||
      !d.Chance(kRareGraph)) {
    return;
  }
  const ScheduleSpec before = s.schedule;
  const std::string kind = d.Of<const char*>({"erdos-renyi", "edge-list"});
  if (kind == "erdos-renyi") {
    s.schedule.graph = kind;
    s.schedule.edge_probability = d.Of({0.3, 0.5, 0.7});
  } else if (kind == "edge-list" && s.peers <= kMaxOfEdgeList) {
    s.schedule.graph = kind;
    s.schedule.edges = DrawEdges(s.peers, d);
  }
  // A draw may not be connected, or its weights may exceed one.
  if (!MakeSchedule(s.schedule, s.peers, s.seed).ok()) s.schedule = before;
  s.late = LateOf(s, s.late);
}

// Every round has the same length, below that of an exchange: payloads of two
// ends might never meet without PayloadStagger.  Without overlap payloads are
// so far apart that they may need longer than a seed to meet.
void DrawClockwork(Scenario& s, Draws d) {
  if (s.centralized() || s.chebyshev || s.optimizer.name == "cold" ||
      IsTimeVarying(s.schedule.graph) || s.overlap == 0 ||
      s.link.latency < s.TimeOfCompute() ||
      s.deadline.kind == DeadlinePolicy::Kind::kNone || !d.Chance(kClockwork)) {
    return;
  }
  s.clockwork = true;
  s.deadline.kind = DeadlinePolicy::Kind::kFixed;
  s.deadline.fixed = s.TimeOfCompute() * d.Between(0.1, 1.2);
  s.overlap = 1;
  s.step_jitter = s.link.jitter = 0;
  s.slowness = 1;
}

void DrawDeepOverlap(Scenario& s, Draws d) {
  const bool one_at_a_time = s.codec.starts_with("power-gossip");
  if (s.overlap == 0 || s.clockwork || one_at_a_time ||
      !d.Chance(kDeepOverlap)) {
    return;
  }
  s.overlap = d.Int(4, kMaxOverlap);
}

}  // namespace gossamer::simulation
