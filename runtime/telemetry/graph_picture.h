// A picture of a fleet's mixing: the graph, and its matrix as a heat map.
//
// This header knows nothing of how the two were made.

#ifndef GOSSAMER_RUNTIME_TELEMETRY_GRAPH_PICTURE_H_
#define GOSSAMER_RUNTIME_TELEMETRY_GRAPH_PICTURE_H_

#include <string>

#include "absl/status/status.h"
#include "topology/graph_layout.h"
#include "topology/mixing_matrix.h"

namespace gossamer {

// Writes a PNG of 1520 x 820 pixels to `path`.  The graph is on the left, its
// edges as wide as their weights; W is on the right, dark where it is large,
// with its scale; `title` (UTF-8) is above.  Returns kUnavailable if the file
// cannot be written, kInvalidArgument if W has no weight.
//
//   DrawMixing(w, LayOut("torus", w), "torus of 16, gap 0.4", "torus.png")
absl::Status DrawMixing(const MixingMatrix& w, const GraphLayout& layout,
                        const std::string& title, const std::string& path);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TELEMETRY_GRAPH_PICTURE_H_
