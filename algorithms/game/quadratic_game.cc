#include "algorithms/game/quadratic_game.h"

#include <vector>

#include "algorithms/base/status_macros.h"

namespace gossamer {
namespace {

// Peer `rank`'s draw less the mean of all peers' draws.  Shifts thus sum to
// zero, and the solution of the average game is known however far apart the
// peers' own solutions are.
std::vector<double> Shift(const QuadraticSpec& spec, int rank, int peers,
                          RngKey key) {
  std::vector<double> shift(2 * static_cast<size_t>(spec.dimension));
  if (spec.heterogeneity == 0) return shift;
  // Every peer draws for all: nothing has to be exchanged to know the mean.
  for (int peer = 0; peer < peers; ++peer) {
    const RngKey draw = key.Fold(static_cast<uint64_t>(peer));
    const double weight = (peer == rank ? 1.0 : 0.0) - 1.0 / peers;
    for (size_t i = 0; i < shift.size(); ++i) {
      shift[i] += spec.heterogeneity * weight * draw.Gaussian(i);
    }
  }
  return shift;
}

}  // namespace

Problems ProblemsOf(const QuadraticSpec& spec) {
  Problems problems = ProblemsOfSaddle(spec.dimension, spec.noise);
  problems.NotNegative("heterogeneity", spec.heterogeneity);
  return problems;
}

absl::StatusOr<std::unique_ptr<QuadraticGame>> QuadraticGame::Create(
    const QuadraticSpec& spec, int rank, int peers, uint64_t seed) {
  GOSSAMER_RETURN_IF_ERROR(ProblemsOf(spec).ToStatus());
  GOSSAMER_RETURN_IF_ERROR(CheckRank(rank, peers));
  const Coefficients coefficients = {
      .dimension = spec.dimension, .curvature = 1, .noise = spec.noise};
  const std::vector<double> shift =
      Shift(spec, rank, peers, RngKey(seed).Fold("shift"));
  return std::unique_ptr<QuadraticGame>(
      new QuadraticGame(coefficients, shift, seed));
}

}  // namespace gossamer
