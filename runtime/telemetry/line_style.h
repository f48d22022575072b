// Styles that distinguish the lines of a picture.
//
// Numbers only; knows nothing of how lines are drawn.

#ifndef GOSSAMER_RUNTIME_TELEMETRY_LINE_STYLE_H_
#define GOSSAMER_RUNTIME_TELEMETRY_LINE_STYLE_H_

#include <array>
#include <compare>
#include <cstddef>
#include <vector>

namespace gossamer {

struct LineStyle {
  std::array<double, 3> color = {};  // red, green, blue
  std::vector<double> dashes;        // pixels on and off; empty: all on
  int corners = 0;                   // of a point's shape; 0: it is round
  friend auto operator<=>(const LineStyle&, const LineStyle&) = default;
};
// The number of styles that differ: by colour first, and with each turn through
// the colours by dashes and by the shape of points.
inline constexpr size_t kStyles = 42;
LineStyle StyleOf(size_t number);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TELEMETRY_LINE_STYLE_H_
