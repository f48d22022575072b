// A partition of a graph's edges into matchings, the same at every peer.
//
// Pairs of one matching share no end, so they can exchange at the same time,
// and matchings taken in order give all peers one order of pairs.  This header
// knows nothing of rounds, weights or what the pairs exchange.

#ifndef GOSSAMER_TOPOLOGY_EDGE_COLOURING_H_
#define GOSSAMER_TOPOLOGY_EDGE_COLOURING_H_

#include <compare>
#include <span>
#include <vector>

namespace gossamer {

// An edge between two different ranks, the smaller one first.
struct RankPair {
  int lower = 0;
  int upper = 0;
  friend auto operator<=>(const RankPair&, const RankPair&) = default;
};

// Returns the colour of each edge, from 0, in the order of `edges`, which has
// no edge twice.  Edges of one colour are a matching.  The result depends on
// the set of edges alone.  Of a graph of degree d it takes at most 2d - 1
// colours: edges in ascending order each take the first colour that is free at
// both ends.  Complete graphs of 2^k ranks need the least possible, 2^k - 1.
std::vector<int> ColourEdges(std::span<const RankPair> edges);

}  // namespace gossamer

#endif  // GOSSAMER_TOPOLOGY_EDGE_COLOURING_H_
