#include "runtime/telemetry/line_style.h"

#include <iterator>

namespace gossamer {
namespace {

// The palette of Okabe and Ito, which colour-blind readers can distinguish,
// without its yellow, which is hardly visible on white.
constexpr std::array<double, 3> kPalette[] = {
    {0.00, 0.45, 0.70}, {0.84, 0.37, 0.00}, {0.00, 0.62, 0.45},
    {0.80, 0.47, 0.65}, {0.90, 0.62, 0.00}, {0.34, 0.71, 0.91},
    {0.35, 0.35, 0.35}};
// The style of one turn through the colours.
struct Turn {
  std::vector<double> dashes;
  int corners;
};
const std::array<Turn, 6>& Turns() {
  static const auto& turns =
      *new std::array<Turn, 6>{Turn{{}, 0},      Turn{{8, 4}, 4},
                               Turn{{2, 4}, 3},  Turn{{10, 3, 2, 3}, 5},
                               Turn{{16, 4}, 6}, Turn{{8, 3, 2, 3, 2, 3}, 2}};
  return turns;
}
// Dashes change with each turn through the colours, so that no two styles are
// equal before all have been used.
static_assert(kStyles == 6 * std::size(kPalette));

}  // namespace

LineStyle StyleOf(size_t number) {
  const Turn& turn = Turns()[number / std::size(kPalette) % Turns().size()];
  return {kPalette[number % std::size(kPalette)], turn.dashes, turn.corners};
}

}  // namespace gossamer
