#include "topology/edge_colouring.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <set>

namespace gossamer {

std::vector<int> ColourEdges(std::span<const RankPair> edges) {
  std::vector<size_t> order(edges.size());
  std::iota(order.begin(), order.end(), size_t{0});
  // The order of the caller must not matter: each peer lists its own edges
  // first.
  std::ranges::sort(order, {}, [&](size_t i) { return edges[i]; });
  std::map<int, std::set<int>> taken;  // colours, by rank
  std::vector<int> colours(edges.size());
  for (const size_t i : order) {
    std::set<int>& lower = taken[edges[i].lower];
    std::set<int>& upper = taken[edges[i].upper];
    int colour = 0;
    while (lower.contains(colour) || upper.contains(colour)) ++colour;
    lower.insert(colour);
    upper.insert(colour);
    colours[i] = colour;
  }
  return colours;
}

}  // namespace gossamer
