#include "topology/mixing_schedule.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "algorithms/base/rng.h"
#include "algorithms/base/status_macros.h"
#include "topology/graph.h"
#include "topology/mixing_matrix.h"
#include "topology/sites.h"
#include "topology/skewed_matching.h"

namespace gossamer {
namespace {

class Fixed : public MixingSchedule {
 public:
  explicit Fixed(std::vector<MixingRow> rows) : rows_(std::move(rows)) {}
  int size() const override { return static_cast<int>(rows_.size()); }
  MixingRow Row(int rank, uint64_t) const override { return rows_[rank]; }
  bool is_static() const override { return true; }

 private:
  std::vector<MixingRow> rows_;
};

// The order of the ranks in one round.
std::vector<int> Order(uint64_t seed, std::string_view purpose, uint64_t round,
                       int size) {
  return RngKey(seed).Fold(purpose).Fold(round).Permutation(size);
}

int PositionOf(int rank, const std::vector<int>& order) {
  return static_cast<int>(std::find(order.begin(), order.end(), rank) -
                          order.begin());
}

// A ring whose ranks are relabelled by a permutation drawn every round.
class PermutedRing : public MixingSchedule {
 public:
  PermutedRing(int size, uint64_t seed) : size_(size), seed_(seed) {}
  int size() const override { return size_; }
  // Of up to three ranks every ring is the complete graph, so all permutations
  // give one matrix.
  bool is_static() const override { return size_ <= 3; }

  MixingRow Row(int rank, uint64_t round) const override {
    if (size_ == 1) return {};
    if (size_ == 2) return {{{.rank = 1 - rank, .weight = 0.5}}};
    const std::vector<int> order = Order(seed_, "permuted-ring", round, size_);
    const int at = PositionOf(rank, order);
    // Sorted, as a row is: corrections are applied in the order of neighbours,
    // and that order must not depend on the draw.
    const auto [a, b] =
        std::minmax(order[(at + 1) % size_], order[(at + size_ - 1) % size_]);
    return {{{.rank = a, .weight = 1.0 / 3}, {.rank = b, .weight = 1.0 / 3}}};
  }

  // tr(W'W) = M/3 for every ring, and a random relabelling spreads what is not
  // the mean over all M - 1 directions alike.
  std::optional<double> expected_contraction() const override {
    // Weights of 1/3, or 1/2 for two, make W the matrix of the mean.
    if (size_ <= 3) return 0;
    return (size_ / 3.0 - 1) / (size_ - 1);
  }

 private:
  int size_;
  uint64_t seed_;
};

// Disjoint pairs drawn every round; of an odd number one peer rests.
class RandomMatching : public MixingSchedule {
 public:
  RandomMatching(int size, uint64_t seed) : size_(size), seed_(seed) {}
  int size() const override { return size_; }
  bool is_static() const override { return size_ <= 2; }

  MixingRow Row(int rank, uint64_t round) const override {
    const std::vector<int> order = Order(seed_, "matching", round, size_);
    // Positions 0 and 1 are a pair, 2 and 3, and so on; the last of an odd
    // number has no partner.
    const int partner = PositionOf(rank, order) ^ 1;
    if (partner >= size_) return {};
    return {{{.rank = order[partner], .weight = 0.5}}};
  }

  // W'W = W = (I + P)/2 with E[P_ij] equal for all i != j, so the eigenvalue
  // is (1 - 1/(M-1))/2 for even M; for odd M the resting peer makes E[P] = J.
  std::optional<double> expected_contraction() const override {
    if (size_ == 1) return 0;
    return size_ % 2 == 1 ? 0.5 : 0.5 * (size_ - 2) / (size_ - 1);
  }

 private:
  int size_;
  uint64_t seed_;
};

// Pairs at distance 2^(round mod log2 M): M ranks average exactly in log2 M
// rounds.  By XOR, so that it is symmetric, which addition mod M is not.
class OnePeerExponential : public MixingSchedule {
 public:
  explicit OnePeerExponential(int size)
      : size_(size), bits_(std::bit_width(static_cast<unsigned>(size)) - 1) {}
  int size() const override { return size_; }
  bool is_static() const override { return bits_ <= 1; }
  uint64_t period() const override { return std::max(bits_, 1); }

  MixingRow Row(int rank, uint64_t round) const override {
    if (bits_ == 0) return {};
    return {{{.rank = rank ^ (1 << round % bits_), .weight = 0.5}}};
  }

 private:
  int size_;
  int bits_;
};

absl::Status CheckSize(int size) {
  if (size >= 1 && size <= kMaxPeers) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a fleet has 1 to ", kMaxPeers, " peers, not ", size));
}

// Every round has the same edges.
constexpr std::string_view kStaticGraphs[] = {
    "ring",      "torus",          "complete",    "star",
    "hypercube", "random-regular", "erdos-renyi", "edge-list"};
// Edges change from round to round.
constexpr std::string_view kTimeVaryingGraphs[] = {
    "permuted-ring", "random-matching", "one-peer-exponential",
    "locality-skewed"};

// Every founder of the fleet must be at a site, and some must share one.
void CheckSites(const ScheduleSpec& spec, int peers, Problems& problems) {
  if (spec.graph != "locality-skewed") {
    if (spec.sites.empty()) return;
    problems.Refuse("sites", "is given, but the graph is ", spec.graph,
                    ": leave it out, or take graph locality-skewed");
    return;
  }
  problems.Range("variance_budget", spec.variance_budget, 0.0, 1000.0);
  const auto sites = Sites::Parse(spec.sites);
  if (!sites.ok()) return problems.Refuse("sites", sites.status().message());
  const std::vector<PeerId> founders = FoundingMembers(peers);
  for (const PeerId id : founders) {
    if (sites->Has(id)) continue;
    problems.Refuse("sites", "does not say where peer ", id.value, " of ",
                    peers, " is; add it to a site, or give it its own");
    return;
  }
  const std::vector<int> of = sites->Of(founders);
  const std::set<int> different(of.begin(), of.end());
  if (different.size() > 1 && different.size() < of.size()) return;
  problems.Refuse("sites", "puts the ", of.size(), " peers ",
                  different.size() == 1
                      ? "at one site: nothing is far"
                      : "each at its own site: nothing is near",
                  "; take graph random-matching");
}

}  // namespace

Problems ProblemsOf(const ScheduleSpec& spec, int peers, uint64_t seed) {
  Problems problems;
  problems.OneOf("graph", spec.graph, GraphNames());
  problems.Range("peers", peers, 1, kMaxPeers);
  if (!problems.empty()) return problems;
  CheckSites(spec, peers, problems);
  if (!problems.empty()) return problems;
  if (const auto made = MakeSchedule(spec, peers, seed); !made.ok()) {
    problems.Refuse("graph", "with ", peers,
                    " peers: ", made.status().message());
  }
  return problems;
}

std::span<const std::string_view> GraphNames() {
  static const auto* const names = [] {
    auto* all = new std::vector<std::string_view>(std::begin(kStaticGraphs),
                                                  std::end(kStaticGraphs));
    all->insert(all->end(), std::begin(kTimeVaryingGraphs),
                std::end(kTimeVaryingGraphs));
    return all;
  }();
  return *names;
}

bool IsTimeVarying(std::string_view graph) {
  return std::ranges::find(kTimeVaryingGraphs, graph) !=
         std::end(kTimeVaryingGraphs);
}

absl::StatusOr<std::unique_ptr<MixingSchedule>> MakeSchedule(
    const ScheduleSpec& spec, int size, uint64_t seed) {
  GOSSAMER_RETURN_IF_ERROR(CheckSize(size));
  return MakeSchedule(spec, FoundingMembers(size), seed);
}

absl::StatusOr<std::unique_ptr<MixingSchedule>> MakeSchedule(
    const ScheduleSpec& spec, std::span<const PeerId> members, uint64_t seed) {
  const auto size = static_cast<int>(members.size());
  GOSSAMER_RETURN_IF_ERROR(CheckSize(size));
  if (spec.graph == "one-peer-exponential") {
    // Its edges over all rounds are those of a hypercube, of as many peers.
    GOSSAMER_RETURN_IF_ERROR(MakeGraph(spec, size, seed).status());
    return std::make_unique<OnePeerExponential>(size);
  }
  if (spec.graph == "permuted-ring") {
    return std::make_unique<PermutedRing>(size, seed);
  }
  if (spec.graph == "random-matching") {
    return std::make_unique<RandomMatching>(size, seed);
  }
  if (spec.graph == "locality-skewed") {
    GOSSAMER_ASSIGN_OR_RETURN(const Sites sites, Sites::Parse(spec.sites));
    return SkewedMatching::Create(sites.Of(members), spec.variance_budget,
                                  seed);
  }
  GOSSAMER_ASSIGN_OR_RETURN(const Graph graph, MakeGraph(spec, size, seed));
  GOSSAMER_ASSIGN_OR_RETURN(std::vector<MixingRow> rows, MakeRows(graph));
  return std::make_unique<Fixed>(std::move(rows));
}

std::vector<int> NeighborsOf(const MixingSchedule& schedule, int rank) {
  std::set<int> met;
  for (uint64_t round = 1; round <= schedule.period(); ++round) {
    for (const Neighbor& n : schedule.Row(rank, round).neighbors) {
      met.insert(n.rank);
    }
  }
  if (IsRandomized(schedule)) {
    for (int other = 0; other < schedule.size(); ++other) met.insert(other);
    met.erase(rank);
  }
  return {met.begin(), met.end()};
}

int MinDegree(const MixingSchedule& schedule) {
  size_t fewest = static_cast<size_t>(schedule.size()) - 1;
  if (IsRandomized(schedule)) return static_cast<int>(fewest);
  for (int rank = 0; rank < schedule.size(); ++rank) {
    fewest = std::min(fewest, NeighborsOf(schedule, rank).size());
  }
  return static_cast<int>(fewest);
}

}  // namespace gossamer
