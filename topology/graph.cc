#include "topology/graph.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "algorithms/base/rng.h"
#include "algorithms/base/spelling.h"
#include "algorithms/base/status_macros.h"

namespace gossamer {
namespace {

// Draws of a random graph before it is given up as never connected.
constexpr int kMaxDraws = 100;

// Ordered, so that equal graphs have their edges in one order at every peer.
using Pairs = std::set<std::pair<int, int>>;

// Loops and repetitions come from wrapping around small rings and tori; both
// vanish here.
void Insert(int a, int b, Pairs& pairs) {
  if (a != b) pairs.insert(std::minmax(a, b));
}

Graph FromPairs(int size, const Pairs& pairs) {
  Graph graph{.size = size, .edges = {}};
  graph.edges.reserve(pairs.size());
  for (const auto& [a, b] : pairs) graph.edges.push_back({.a = a, .b = b});
  return graph;
}

Graph Ring(int size) {
  Pairs pairs;
  for (int i = 0; i < size; ++i) Insert(i, (i + 1) % size, pairs);
  return FromPairs(size, pairs);
}

Graph Complete(int size) {
  Pairs pairs;
  for (int a = 0; a < size; ++a) {
    for (int b = a + 1; b < size; ++b) Insert(a, b, pairs);
  }
  return FromPairs(size, pairs);
}

Graph Star(int size) {
  Pairs pairs;
  for (int b = 1; b < size; ++b) Insert(0, b, pairs);
  return FromPairs(size, pairs);
}

absl::StatusOr<Graph> Torus(int size) {
  if (size < 2) {
    return absl::InvalidArgumentError(
        "torus: needs at least 2 peers, not 1; use a ring");
  }
  const auto [rows, columns] = TorusShape(size);
  Pairs pairs;
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < columns; ++c) {
      const int here = r * columns + c;
      Insert(here, r * columns + (c + 1) % columns, pairs);
      Insert(here, (r + 1) % rows * columns + c, pairs);
    }
  }
  return FromPairs(size, pairs);
}

absl::StatusOr<Graph> Hypercube(const std::string& name, int size) {
  if (!std::has_single_bit(static_cast<unsigned>(size))) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s: needs a power of two of peers, not %d; use %d or %d, or a "
        "random-regular graph",
        name, size, std::bit_floor(static_cast<unsigned>(size)),
        std::bit_ceil(static_cast<unsigned>(size))));
  }
  Pairs pairs;
  for (int i = 0; i < size; ++i) {
    for (int bit = 1; bit < size; bit *= 2) Insert(i, i ^ bit, pairs);
  }
  return FromPairs(size, pairs);
}

// A circulant graph of the wanted degree, mixed by double-edge swaps: (a, b),
// (c, d) become (a, d), (c, b) when that leaves the graph simple.  Unlike
// pairing stubs at random it never gets stuck, whatever the degree.
Graph SwappedCirculant(int size, int degree, RngKey key) {
  Pairs pairs;
  for (int i = 0; i < size; ++i) {
    for (int d = 1; d <= degree / 2; ++d) Insert(i, (i + d) % size, pairs);
    if (degree % 2 == 1) Insert(i, (i + size / 2) % size, pairs);
  }
  std::vector<std::pair<int, int>> edges(pairs.begin(), pairs.end());
  // Several look-ups a swap, and twenty swaps an edge.
  absl::flat_hash_set<std::pair<int, int>> present(edges.begin(), edges.end());
  const auto pair = [](int a, int b) {
    return std::pair(std::min(a, b), std::max(a, b));
  };
  const uint64_t n = edges.size();
  const uint64_t swaps = 20 * n;  // several per edge even when half are refused
  for (uint64_t s = 0; s < swaps; ++s) {
    auto& [a, b] = edges[key.Below(n, 3 * s)];
    auto& [c, d] = edges[key.Below(n, 3 * s + 1)];
    if (key.Bits(3 * s + 2) & 1) std::swap(c, d);
    if (a == d || c == b || present.contains(pair(a, d)) ||
        present.contains(pair(c, b))) {
      continue;
    }
    present.erase(pair(a, b));
    present.erase(pair(c, d));
    std::swap(b, d);
    present.insert(pair(a, b));
    present.insert(pair(c, d));
  }
  return FromPairs(size, Pairs(present.begin(), present.end()));
}

absl::StatusOr<Graph> RandomRegular(int size, int degree, uint64_t seed) {
  if (degree < 0 || degree >= size) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "random-regular: degree %d is not possible among %d peers; it must be "
        "below their number",
        degree, size));
  }
  if (size % 2 == 1 && degree % 2 == 1) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "random-regular: %d peers of degree %d have half an edge left over; "
        "make one of them even",
        size, degree));
  }
  // All draws are functions of the seed, so every peer finds the same graph by
  // itself, and gives up the same ones.
  const RngKey key = RngKey(seed).Fold("random-regular");
  for (int draw = 0; draw < kMaxDraws; ++draw) {
    Graph graph = SwappedCirculant(size, degree, key.Fold(draw));
    if (CheckConnected(graph).ok()) return graph;
  }
  return absl::InvalidArgumentError(absl::StrFormat(
      "random-regular: no connected graph of degree %d on %d peers in %d "
      "draws; take a degree of at least 3",
      degree, size, kMaxDraws));
}

// The edges that a graph of that name has, or is expected to have.
double EdgesOf(const ScheduleSpec& spec, int size) {
  const double pairs = 0.5 * size * (size - 1.0);
  if (spec.graph == "complete") return pairs;
  if (spec.graph == "erdos-renyi") return pairs * spec.edge_probability;
  if (spec.graph == "random-regular") return 0.5 * size * spec.degree;
  return 0;  // all others have few
}

absl::StatusOr<Graph> ErdosRenyi(int size, double p, uint64_t seed) {
  if (!(p >= 0 && p <= 1)) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "erdos-renyi: edge_probability %g is not between 0 and 1", p));
  }
  const RngKey key = RngKey(seed).Fold("erdos-renyi");
  for (int draw = 0; draw < kMaxDraws; ++draw) {
    const RngKey edges = key.Fold(draw);
    Pairs pairs;
    uint64_t i = 0;
    for (int a = 0; a < size; ++a) {
      for (int b = a + 1; b < size; ++b) {
        if (edges.Uniform(i++) < p) Insert(a, b, pairs);
      }
    }
    Graph graph = FromPairs(size, pairs);
    if (CheckConnected(graph).ok()) return graph;
  }
  // ln(M)/M is where such graphs become connected; twice that is comfortable.
  return absl::InvalidArgumentError(absl::StrFormat(
      "erdos-renyi: none of %d graphs of %d peers with edge_probability %g was "
      "connected; take at least %.2g",
      kMaxDraws, size, p, std::min(1.0, 2 * std::log(size) / size)));
}

}  // namespace

std::pair<int, int> TorusShape(int size) {
  int rows = 1;
  // The largest divisor up to the root: the squarer the torus, the larger its
  // spectral gap.
  for (int r = 2; r * r <= size; ++r) {
    if (size % r == 0) rows = r;
  }
  return {rows, size / rows};
}

std::vector<int> Degrees(const Graph& graph) {
  std::vector<int> degrees(graph.size, 0);
  for (const GraphEdge& e : graph.edges) {
    ++degrees[e.a];
    ++degrees[e.b];
  }
  return degrees;
}

absl::Status CheckConnected(const Graph& graph) {
  // Union-find with path halving.
  std::vector<int> parent(graph.size);
  std::iota(parent.begin(), parent.end(), 0);
  auto root = [&parent](int i) {
    while (parent[i] != i) i = parent[i] = parent[parent[i]];
    return i;
  };
  for (const GraphEdge& e : graph.edges) parent[root(e.a)] = root(e.b);
  for (int i = 1; i < graph.size; ++i) {
    if (root(i) != root(0)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the graph is not connected: peer ", i,
          " cannot be reached from peer 0; add an edge between their parts"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Graph> MakeGraph(const ScheduleSpec& spec, int size,
                                uint64_t seed) {
  if (size < 1 || size > kMaxPeers) {
    return absl::InvalidArgumentError(
        absl::StrFormat("a graph has 1 to %d peers, not %d", kMaxPeers, size));
  }
  const std::string& name = spec.graph;
  if (const double edges = EdgesOf(spec, size); edges > kMaxEdges) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s: %d peers would have %.0f edges, more than %d; take a graph with "
        "fewer, such as random-regular of degree 4",
        name, size, edges, kMaxEdges));
  }
  if (name == "ring") return Ring(size);
  if (name == "torus") return Torus(size);
  if (name == "random-regular") {
    return RandomRegular(size, spec.degree, seed);
  }
  if (name == "erdos-renyi") {
    return ErdosRenyi(size, spec.edge_probability, seed);
  }
  if (name == "complete") return Complete(size);
  if (name == "star") return Star(size);
  // The schedule of that name takes the hypercube's edges one dimension at a
  // time.
  if (name == "hypercube" || name == "one-peer-exponential") {
    return Hypercube(name, size);
  }
  if (name == "edge-list") {
    GOSSAMER_ASSIGN_OR_RETURN(Graph graph, ParseEdgeList(spec.edges, size));
    GOSSAMER_RETURN_IF_ERROR(CheckConnected(graph));
    if (graph.edges.size() <= kMaxEdges) return graph;
    return absl::InvalidArgumentError(
        absl::StrCat("edge-list: ", graph.edges.size(), " edges, of which ",
                     kMaxEdges, " are possible"));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "there is no graph \"", name, "\"; ", Suggestion(name, GraphNames())));
}

}  // namespace gossamer
