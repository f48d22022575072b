// A picture of how a fleet mixes: the graph, and its matrix as a heat map.
//
// Draws what it is given; knows nothing of how it was made.

#ifndef GOSSAMER_RUNTIME_TELEMETRY_GRAPH_PICTURE_H_
#define GOSSAMER_RUNTIME_TELEMETRY_GRAPH_PICTURE_H_

#include <string>

#include "absl/status/status.h"
#include "topology/graph_layout.h"
#include "topology/mixing_matrix.h"

namespace gossamer {

// Writes a PNG of 1520 x 820 pixels to `path`: left the graph, edges as wide
// as their weights; right W, dark where it is large, with its scale; `title`
// (UTF-8) above.  kUnavailable if the file cannot be written.
//
//   DrawMixing(w, LayOut("torus", w), "torus of 16, gap 0.4", "torus.png")
absl::Status DrawMixing(const MixingMatrix& w, const GraphLayout& layout,
                        const std::string& title, const std::string& path);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TELEMETRY_GRAPH_PICTURE_H_
