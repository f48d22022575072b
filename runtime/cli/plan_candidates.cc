#include "runtime/cli/plan_candidates.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "algorithms/method/registry.h"
#include "runtime/config/run_config.h"

namespace gossamer {
namespace {

// The first method of those that are compared by themselves, among those that
// average exactly over all peers or among those that gossip.
const Method& FirstCompared(bool centralized) {
  const Method* first = nullptr;
  for (const Method* method : Methods()) {
    if (method->centralized() != centralized || method->help.compared == 0) {
      continue;
    }
    if (first == nullptr || method->help.compared < first->help.compared) {
      first = method;
    }
  }
  return *first;
}

std::string Algorithm(const Method& method) {
  return absl::StrCat("algorithm=", std::string(method.name));
}

// The codecs that a plan tries by itself: floats, two widths of innovations,
// and the choice by measuring.
constexpr std::array<std::string_view, 4> kCodecs = {"dense-f32", "innov-int8",
                                                     "innov-int4", "auto"};
constexpr std::array<std::string_view, 3> kOverlaps = {"0", "1", "auto"};

struct Mixing {
  std::string name;
  std::vector<std::string> changes;
};

Mixing Graph(const std::string& graph) {
  return {graph, {absl::StrCat("mixing.graph=", graph)}};
}

// A prime number of peers makes a torus a ring, as do two sides of two.
bool TorusFits(uint32_t peers) {
  if (peers < 6) return false;
  for (uint32_t side = 2; side * side <= peers; ++side) {
    if (peers % side == 0) return true;
  }
  return false;
}

std::vector<Mixing> MixingsOf(uint32_t peers, const std::string& sites) {
  std::vector<Mixing> mixings = {Graph("ring")};
  if (TorusFits(peers)) mixings.push_back(Graph("torus"));
  // With two peers every schedule has the same single edge.
  if (peers > 2) {
    mixings.push_back(Graph("permuted-ring"));
    mixings.push_back(Graph("random-matching"));
  }
  if (!sites.empty()) {
    Mixing skewed = Graph("locality-skewed");
    skewed.changes.push_back(absl::StrCat("mixing.sites=", sites));
    mixings.push_back(std::move(skewed));
  }
  return mixings;
}

// Returns whether `text` goes on with a field of the configuration and "=".
// Options of codecs have no dots, and no names of whole configurations.
bool FieldFollows(std::string_view text) {
  const size_t end = text.find('=');
  if (end == std::string_view::npos) return false;
  const std::string_view name = text.substr(0, end);
  const bool letters = std::ranges::all_of(name, [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '_' || c == '.';
  });
  return letters &&
         (name.find('.') != std::string_view::npos ||
          RunConfig::descriptor()->FindFieldByName(std::string(name)));
}

// Returns a number that is smaller for a better candidate.
double Badness(const PlanFigures& figures, PlanGoal goal) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  switch (goal) {
    case PlanGoal::kRounds:
      return 1 / figures.rounds_per_second;
    case PlanGoal::kWaiting:
      return figures.waiting_share;
    case PlanGoal::kBytes:
      return figures.bytes_per_round;
    case PlanGoal::kConsensus:
      return figures.consensus_distance;
    case PlanGoal::kScore:
      return figures.score.value_or(kNone);
  }
  return kNone;
}

// Returns those of `left` that are as good as the best one by `goal`.
std::vector<size_t> AlikeBest(std::span<const PlanFigures> figures,
                              const std::vector<size_t>& left, PlanGoal goal) {
  const auto badness = [&](size_t i) {
    const double value = Badness(figures[i], goal);
    // A candidate without this figure is last, not first.
    return std::isnan(value) ? std::numeric_limits<double>::infinity() : value;
  };
  double best = std::numeric_limits<double>::infinity();
  for (const size_t i : left) best = std::min(best, badness(i));
  // A share may be 0, of which a relative margin would be none.
  const double most =
      goal == PlanGoal::kWaiting ? best + kPlanAlike : best * (1 + kPlanAlike);
  std::vector<size_t> alike;
  for (const size_t i : left) {
    if (badness(i) <= most) alike.push_back(i);
  }
  return alike;
}

constexpr std::pair<std::string_view, PlanGoal> kGoals[] = {
    {"rounds", PlanGoal::kRounds},
    {"waiting", PlanGoal::kWaiting},
    {"bytes", PlanGoal::kBytes},
    {"consensus", PlanGoal::kConsensus},
    {"score", PlanGoal::kScore}};

}  // namespace

std::vector<PlanCandidate> DefaultCandidates(const RunConfig& base,
                                             const std::string& sites) {
  std::vector<PlanCandidate> candidates;
  const bool centralized = IsCentralized(base);
  for (const Mixing& mixing : MixingsOf(base.peers(), sites)) {
    for (const std::string_view codec : kCodecs) {
      for (const std::string_view overlap : kOverlaps) {
        PlanCandidate& c = candidates.emplace_back();
        c.name = absl::StrCat(mixing.name, " ", std::string(codec), " overlap ",
                              std::string(overlap));
        if (centralized) {
          c.changes.push_back(Algorithm(FirstCompared(/*centralized=*/false)));
        }
        c.changes.insert(c.changes.end(), mixing.changes.begin(),
                         mixing.changes.end());
        c.changes.push_back(absl::StrCat("mixing.codec=", std::string(codec)));
        c.changes.push_back(
            absl::StrCat("mixing.overlap_steps=", std::string(overlap)));
      }
    }
  }
  // The configuration itself is the centralized one to compare with.
  if (centralized) return candidates;
  const Method& baseline = FirstCompared(/*centralized=*/true);
  candidates.push_back(
      // The baseline shows what the network costs a training that averages over
      // all peers in every step.
      {.name = std::string(baseline.name),
       .changes = {Algorithm(baseline),
                   absl::StrCat("step.optimizer=",
                                std::string(baseline.defaults.optimizer)),
                   absl::StrCat("mixing.graph=",
                                std::string(baseline.defaults.graph)),
                   "mixing.all_reduce=auto", "mixing.overlap_steps=0"},
       .baseline = true});
  return candidates;
}

PlanCandidate ParseCandidate(const std::string& text) {
  PlanCandidate candidate{.name = text, .changes = {}};
  size_t begin = 0;
  for (size_t at = 0; at <= text.size(); ++at) {
    const bool ends = at == text.size() ||
                      (text[at] == ',' &&
                       FieldFollows(std::string_view(text).substr(at + 1)));
    if (!ends) continue;
    candidate.changes.push_back(text.substr(begin, at - begin));
    begin = at + 1;
  }
  return candidate;
}

std::string SitesOfRegions(const Scenario& scenario, int peers) {
  std::vector<std::string> order;
  std::map<std::string, std::vector<int>> ids;
  const int count = std::min(peers, static_cast<int>(scenario.hosts.size()));
  for (int rank = 0; rank < count; ++rank) {
    const std::string& region = scenario.hosts[rank].region;
    // A host without a region may be anywhere.
    if (region.empty()) return "";
    if (ids[region].empty()) order.push_back(region);
    ids[region].push_back(rank + 1);
  }
  // Ranks go through the regions one after the other.
  const bool shared = std::ranges::any_of(
      ids, [](const auto& region) { return region.second.size() > 1; });
  if (order.size() < 2 || !shared) return "";
  return absl::StrJoin(order, " ", [&](std::string* out, const auto& region) {
    const std::vector<int>& own = ids[region];
    absl::StrAppend(out, region, ":", own.front());
    if (own.size() > 1) absl::StrAppend(out, "-", own.back());
  });
}

std::vector<std::string> PlanGoalNames() {
  std::vector<std::string> names;
  for (const auto& [name, goal] : kGoals) names.emplace_back(name);
  return names;
}

std::optional<PlanGoal> PlanGoalOf(std::string_view name) {
  for (const auto& [known, goal] : kGoals) {
    if (known == name) return goal;
  }
  return std::nullopt;
}

std::vector<size_t> RankFigures(std::span<const PlanFigures> figures,
                                PlanGoal goal) {
  std::vector<size_t> left(figures.size());
  std::iota(left.begin(), left.end(), size_t{0});
  std::vector<size_t> ranked;
  while (!left.empty()) {
    std::vector<size_t> alike = left;
    for (const PlanGoal next :
         {goal, PlanGoal::kRounds, PlanGoal::kConsensus, PlanGoal::kBytes}) {
      alike = AlikeBest(figures, alike, next);
    }
    // The best is taken and the rest ranked anew: "alike" is no order, since it
    // does not carry over from one pair to the next.
    ranked.push_back(alike.front());
    std::erase(left, alike.front());
  }
  return ranked;
}

}  // namespace gossamer
