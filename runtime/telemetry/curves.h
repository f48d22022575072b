// Draws curves as a picture: series in panels with axes, ticks and a legend.
//
// This header knows nothing of what the curves measure.

#ifndef GOSSAMER_RUNTIME_TELEMETRY_CURVES_H_
#define GOSSAMER_RUNTIME_TELEMETRY_CURVES_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace gossamer {

struct Series {
  std::string label;                              // shown in the legend
  std::vector<std::pair<double, double>> points;  // x ascending
};

struct Panel {
  std::string title;
  std::string x_label = "round";
  // Values that are not above 0 are left out, unless all are.
  bool log_y = false;
  bool log_x = false;    // the same; the axis begins at the first point
  bool markers = false;  // a dot on every point
  double x_end = 0;      // the axis goes at least this far
  std::vector<Series> series = {};
};

// Writes a PNG of 800 by 500 pixels per panel, two panels to a row.  Long
// series are averaged down to the width; non-finite points are left out.  A
// label has one style, by its place among the panel's labels (line_style.h).
// Returns kInvalidArgument without a panel, kInternal if the file cannot be
// written.
absl::Status DrawCurves(const std::vector<Panel>& panels,
                        const std::string& title, const std::string& path);

// Returns ticks for an axis from `low` to `high`: round numbers, at most
// `most`.
std::vector<double> LinearTicks(double low, double high, int most);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TELEMETRY_CURVES_H_
