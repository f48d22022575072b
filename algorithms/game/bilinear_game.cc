#include "algorithms/game/bilinear_game.h"

#include <vector>

#include "algorithms/base/status_macros.h"

namespace gossamer {

Problems ProblemsOf(const BilinearSpec& spec) {
  return ProblemsOfSaddle(spec.dimension, spec.noise);
}

absl::StatusOr<std::unique_ptr<BilinearGame>> BilinearGame::Create(
    const BilinearSpec& spec, uint64_t seed) {
  GOSSAMER_RETURN_IF_ERROR(ProblemsOf(spec).ToStatus());
  const Coefficients coefficients = {
      .dimension = spec.dimension, .curvature = 0, .noise = spec.noise};
  const std::vector<double> no_shift(2 * static_cast<size_t>(spec.dimension));
  return std::unique_ptr<BilinearGame>(
      new BilinearGame(coefficients, no_shift, seed));
}

}  // namespace gossamer
