// A strongly convex-concave game that differs from peer to peer.
//
// f_r(u, v) = ½‖u − a_r‖² + (u − a_r)ᵀA(v − b_r) − ½‖v − b_r‖².  The shifts
// (a_r, b_r) − (a, b) are Gaussian and sum to zero over the peers, so that the
// average of all games has its solution at (a, b) while no peer's own need be
// near it.

#ifndef GOSSAMER_ALGORITHMS_GAME_QUADRATIC_GAME_H_
#define GOSSAMER_ALGORITHMS_GAME_QUADRATIC_GAME_H_

#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "algorithms/base/problems.h"
#include "algorithms/game/saddle_game.h"

namespace gossamer {

struct QuadraticSpec {
  int dimension = 64;        // d of each player
  double noise = 0;          // standard deviation of gradient noise
  double heterogeneity = 0;  // standard deviation of the shifts, per component
};

// Returns what of a spec is out of range; Create asks it, too.
Problems ProblemsOf(const QuadraticSpec& spec);

class QuadraticGame final : public SaddleGame {
 public:
  // The game of peer `rank` of `peers`.  kInvalidArgument for anything out of
  // range.
  static absl::StatusOr<std::unique_ptr<QuadraticGame>> Create(
      const QuadraticSpec& spec, int rank, int peers, uint64_t seed);

 private:
  QuadraticGame(const Coefficients& coefficients, std::span<const double> shift,
                uint64_t seed)
      : SaddleGame(coefficients, shift, seed) {}
};

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_GAME_QUADRATIC_GAME_H_
