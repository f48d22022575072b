#include "topology/graph_layout.h"

#include <cmath>
#include <numbers>

namespace gossamer {
namespace {

// Rank `first` at the top, the others clockwise.
void PlaceOnCircle(size_t first, std::vector<Point>& nodes) {
  const size_t n = nodes.size() - first;
  for (size_t i = 0; i < n; ++i) {
    const double angle =
        2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(n);
    nodes[first + i] = {.x = 0.5 + 0.5 * std::sin(angle),
                        .y = 0.5 - 0.5 * std::cos(angle)};
  }
}

// Odd rows and columns are shifted a little, so that an edge around the torus
// does not run over the nodes between its ends.
void PlaceOnGrid(std::vector<Point>& nodes) {
  const auto [rows, columns] = TorusShape(static_cast<int>(nodes.size()));
  // One pitch for both directions, so that cells are square; the longer side
  // fills the picture.
  const double pitch = 1.0 / columns;
  for (int i = 0; i < rows * columns; ++i) {
    const int r = i / columns;
    const int c = i % columns;
    const double bow_x = 0.5 * std::sin(std::numbers::pi * (r + 0.5) / rows);
    const double bow_y = 0.5 * std::sin(std::numbers::pi * (c + 0.5) / columns);
    nodes[i] = {.x = (c + 0.1 + bow_x) * pitch,
                .y = 0.5 + (r + 0.1 + bow_y - 0.5 * rows) * pitch};
  }
}

}  // namespace

GraphLayout LayOut(std::string_view graph, const MixingMatrix& w) {
  GraphLayout layout;
  layout.nodes.assign(w.size(), {.x = 0.5, .y = 0.5});
  // A torus of a prime number of peers is a ring, and drawn as one.
  if (graph == "torus" && TorusShape(w.size()).first > 1) {
    PlaceOnGrid(layout.nodes);
  } else if (graph == "star" && w.size() > 1) {
    PlaceOnCircle(1, layout.nodes);
  } else if (w.size() > 1) {
    PlaceOnCircle(0, layout.nodes);
  }
  for (int a = 0; a < w.size(); ++a) {
    for (int b = a + 1; b < w.size(); ++b) {
      if (w(a, b) > 0) {
        layout.edges.push_back({.a = a, .b = b, .weight = w(a, b)});
      }
    }
  }
  return layout;
}

}  // namespace gossamer
