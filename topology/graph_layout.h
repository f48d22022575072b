// The places at which to draw the peers of a graph.
//
// Coordinates only; the renderer is elsewhere (runtime/telemetry).

#ifndef GOSSAMER_TOPOLOGY_GRAPH_LAYOUT_H_
#define GOSSAMER_TOPOLOGY_GRAPH_LAYOUT_H_

#include <string_view>
#include <vector>

#include "topology/mixing_matrix.h"

namespace gossamer {

// A place in the picture.
struct Point {
  double x = 0;
  double y = 0;
};

// A picture's content, without colours or sizes.
struct GraphLayout {
  std::vector<Point> nodes;      // by rank, in [0, 1] x [0, 1], y downwards
  std::vector<GraphEdge> edges;  // a < b, weight W_ab
};

// Places the ranks of `graph` (a name of MakeGraph: torus as a grid, star with
// 0 in the middle, all others on a circle) and takes the edges from the
// non-zero entries of W off its diagonal.
GraphLayout LayOut(std::string_view graph, const MixingMatrix& w);

}  // namespace gossamer

#endif  // GOSSAMER_TOPOLOGY_GRAPH_LAYOUT_H_
