// The order in which peers form the cheapest ring: a ring waits for its slowest
// edge, so the largest edge counts first and the sum of all edges second.
//
// Pure.  Knows nothing of what a cost is made of: latency, transfer, money.

#ifndef GOSSAMER_TOPOLOGY_RING_ORDER_H_
#define GOSSAMER_TOPOLOGY_RING_ORDER_H_

#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace gossamer {

// Up to so many peers the order is the best there is; beyond, a good one.
inline constexpr int kExactRingPeers = 12;

struct RingOrder {
  // All ranks once, from 0 on, towards the smaller of its two neighbours.
  std::vector<int> order;
  double largest = 0;  // cost of an edge
  double sum = 0;      // of all edges; two peers have one
  bool exact = true;   // no ring is cheaper
};

// `costs` is size x size, row-major and symmetric; its diagonal means nothing.
// Deterministic.  kInvalidArgument, with the place, unless costs are finite,
// not negative and the same both ways, and size is 2 to kMaxPeers.
//
// Exact: Held and Karp's dynamic programme over subsets (SIAM J. 1962), once
// for the bottleneck and once for the sum of what keeps to it; O(2^M M^2).
// Beyond: 2-opt (Croes, Operations Research 1958) and moves of single peers
// from nearest-neighbour rings, at falling limits of the largest edge.
absl::StatusOr<RingOrder> BestRingOrder(int size,
                                        std::span<const double> costs);

// "0-2 2-1 1-3 3-0", as the graph edge-list takes it.
std::string RingEdges(std::span<const int> order);

}  // namespace gossamer

#endif  // GOSSAMER_TOPOLOGY_RING_ORDER_H_
