// Curves as a picture.
//
// Draws series in panels with axes, ticks and a legend; knows nothing of what
// they measure.

#ifndef GOSSAMER_RUNTIME_TELEMETRY_CURVES_H_
#define GOSSAMER_RUNTIME_TELEMETRY_CURVES_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace gossamer {

struct Series {
  std::string label;                              // in the legend
  std::vector<std::pair<double, double>> points;  // x ascending
};

struct Panel {
  std::string title;
  std::string x_label = "round";
  bool log_y = false;    // values not above 0 are left out, unless all are
  bool log_x = false;    // the same; the axis begins at the first point
  bool markers = false;  // a dot on every point
  double x_end = 0;      // the axis goes at least this far
  std::vector<Series> series = {};
};

// A PNG of 800 by 500 pixels per panel, two panels to a row.  Long series are
// averaged down to what the width shows; non-finite points are left out.  A
// label has one style (line_style.h, by its place among the panel's labels).
// kInvalidArgument: no panel.  kInternal: what the system said.
absl::Status DrawCurves(const std::vector<Panel>& panels,
                        const std::string& title, const std::string& path);

// Ticks for an axis from `low` to `high`: round numbers, at most `most`.
std::vector<double> LinearTicks(double low, double high, int most);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TELEMETRY_CURVES_H_
