// Games whose solution is known in closed form: a bilinear coupling, with or
// without curvature.
//
// f(u, v) = μ/2 ‖u − a‖² + (u − a)ᵀA(v − b) − μ/2 ‖v − b‖², A orthogonal; the
// generator descends f in u, the discriminator −f in v, both in R^d.  The
// gradients are linear, so that rates and noise floors can be computed by hand.
// This header knows nothing of pictures or of how the game is solved.

#ifndef GOSSAMER_ALGORITHMS_GAME_SADDLE_GAME_H_
#define GOSSAMER_ALGORITHMS_GAME_SADDLE_GAME_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "algorithms/base/problems.h"
#include "algorithms/game/game.h"

namespace gossamer {

// kInvalidArgument unless `rank` is one of `peers`.
absl::Status CheckRank(int rank, int peers);

// Returns what of the settings that both games have is out of range.
Problems ProblemsOfSaddle(int dimension, double noise);

// An orthogonal d × d matrix as a product of Householder reflections; applying
// it takes O(d), and all its singular values are 1.
class OrthogonalMatrix {
 public:
  OrthogonalMatrix(int dimension, RngKey key);
  // x ← Ax, x ← Aᵀx.
  void Apply(std::span<double> x) const;
  void ApplyTransposed(std::span<double> x) const;

 private:
  std::vector<std::vector<double>> normals_;  // of length √2
};

// The part that both closed-form games share.  All peers of a run start from
// the same parameters and have the same A; both are functions of `seed`.
class SaddleGame : public Game, private Evaluator {
 public:
  const ParameterLayout& layout() const override { return layout_; }
  DeviceSpan<float> device_parameters() override { return parameters_; }
  DeviceSpan<const float> device_gradients() const override {
    return gradients_;
  }
  absl::StatusOr<Losses> Gradient(Players players, RngKey key) override;
  // Its score, "distance", is ‖u − a‖ to the solution of the whole fleet.
  Evaluator* evaluator() override { return this; }

  // (a, b) of the average of all peers' games: where a fleet should end.
  std::span<const double> solution() const { return solution_; }
  // ‖x − (a, b)‖ of a parameter vector, and of this game's own.
  double DistanceToSolution(std::span<const float> x) const;
  double DistanceToSolution() const { return DistanceToSolution(parameters_); }

 protected:
  struct Coefficients {
    int dimension = 64;
    double curvature = 0;  // μ
    double noise = 0;      // standard deviation, per gradient component
  };
  // `shift`, of size 2d, moves this peer's (a, b) away from the solution.
  SaddleGame(const Coefficients& coefficients, std::span<const double> shift,
             uint64_t seed);

 private:
  std::string_view score_name() const override { return "distance"; }
  absl::StatusOr<double> Score(std::span<const float> generator,
                               RngKey key) override;
  absl::Status WriteSamples(std::span<const float> generator, RngKey key,
                            const std::string& path) override;

  const Coefficients coefficients_;
  const ParameterLayout layout_;
  const OrthogonalMatrix coupling_;   // A
  std::vector<double> solution_;      // of the fleet
  std::vector<double> own_solution_;  // of this peer's game alone
  std::vector<float> parameters_;
  std::vector<float> gradients_;
};

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_GAME_SADDLE_GAME_H_
