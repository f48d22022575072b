// min_u max_v (u − a)ᵀA(v − b), A orthogonal: the game on which simultaneous
// gradient descent spirals out and optimism converges.
//
// The game knows nothing of peers: it is the same at every rank.

#ifndef GOSSAMER_ALGORITHMS_GAME_BILINEAR_GAME_H_
#define GOSSAMER_ALGORITHMS_GAME_BILINEAR_GAME_H_

#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "algorithms/base/problems.h"
#include "algorithms/game/saddle_game.h"

namespace gossamer {

struct BilinearSpec {
  int dimension = 64;  // d of each player
  double noise = 0;    // standard deviation of gradient noise, per component
};

// Returns what of a spec is out of range; Create asks it, too.
Problems ProblemsOf(const BilinearSpec& spec);

class BilinearGame final : public SaddleGame {
 public:
  // kInvalidArgument for a dimension or noise out of range.
  static absl::StatusOr<std::unique_ptr<BilinearGame>> Create(
      const BilinearSpec& spec, uint64_t seed);

 private:
  BilinearGame(const Coefficients& coefficients,
               std::span<const double> no_shift, uint64_t seed)
      : SaddleGame(coefficients, no_shift, seed) {}
};

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_GAME_BILINEAR_GAME_H_
