// Undirected graphs over ranks 0 .. M-1, and the families that have names.
//
// Pure functions of their arguments; knows nothing of weights' rules, rounds
// or peers.

#ifndef GOSSAMER_TOPOLOGY_GRAPH_H_
#define GOSSAMER_TOPOLOGY_GRAPH_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "topology/mixing_schedule.h"

namespace gossamer {

// Views of more peers are refused, and graphs of more edges: every peer keeps
// both.
inline constexpr int kMaxPeers = 16'384;
inline constexpr int kMaxEdges = 1 << 20;

// An edge by the ranks of its ends.
struct GraphEdge {
  int a = 0;  // a < b
  int b = 0;
  double weight = 0;  // given by the user, in (0, 1]; 0: by the weights' rule
  friend bool operator==(const GraphEdge&, const GraphEdge&) = default;
};

// Simple: no loops, no double edges; edges sorted by (a, b).
struct Graph {
  int size = 0;
  std::vector<GraphEdge> edges;
};

// The graph that `spec.graph` names, connected, on `size` peers:
//   ring            0-1-...-0; two peers have one edge
//   torus           rows x columns as square as `size` allows; a side of two
//                   gives single edges, a prime `size` a ring
//   random-regular  every degree is spec.degree; from `seed`
//   erdos-renyi     every edge with spec.edge_probability; from `seed`, redrawn
//                   until connected
//   complete, star (centre 0)
//   hypercube, one-peer-exponential   rank - rank XOR 2^k; a power of two
//   edge-list       spec.edges; see ParseEdgeList
// kInvalidArgument names what cannot be, and what would do; a graph of more
// than kMaxEdges cannot.
absl::StatusOr<Graph> MakeGraph(const ScheduleSpec& spec, int size,
                                uint64_t seed);

// "0-1 1-2:0.3, 2-0": pairs of ranks, an optional weight, separated by blanks
// or commas.  kInvalidArgument gives the position (from 1) of a malformed,
// repeated or looping edge, or of a rank or weight out of range.
absl::StatusOr<Graph> ParseEdgeList(const std::string& text, int size);

std::vector<int> Degrees(const Graph& graph);

// OK, or kInvalidArgument with a peer that peer 0 cannot reach.
absl::Status CheckConnected(const Graph& graph);

// {rows, columns}, rows <= columns, of the most square torus of `size` peers.
std::pair<int, int> TorusShape(int size);

}  // namespace gossamer

#endif  // GOSSAMER_TOPOLOGY_GRAPH_H_
