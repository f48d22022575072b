// A closed-form game whose players are matrices, as those of networks are:
// codecs quantize no vectors.

#ifndef GOSSAMER_TESTS_RUNTIME_PEER_MATRIX_GAME_H_
#define GOSSAMER_TESTS_RUNTIME_PEER_MATRIX_GAME_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "algorithms/game/quadratic_game.h"
#include "algorithms/kernels/kernels.h"

namespace gossamer {

// Peer `rank`'s game of `peers` quadratic games that differ.  If peers start
// `apart`, by that standard deviation, gradients are 0.
class MatrixGame final : public Game {
 public:
  static constexpr int kDimension = 1100;  // dimension of a player
  static constexpr uint64_t kSeed = 7;

  MatrixGame(int rank, int peers, double noise, double apart = 0)
      : inner_(*QuadraticGame::Create(
            {.dimension = kDimension, .noise = noise, .heterogeneity = 1}, rank,
            peers, kSeed)),
        layout_({{"u", Player::kGenerator, {22, 50}, {}},
                 {"v", Player::kDiscriminator, {44, 25}, {}}}),
        still_(apart > 0 ? layout_.size() : 0) {
    if (apart == 0) return;
    RngKey(3).Fold(static_cast<uint64_t>(rank)).FillGaussian(parameters());
    HostKernels().scale(static_cast<float>(apart), parameters());
  }
  const ParameterLayout& layout() const override { return layout_; }
  DeviceSpan<float> device_parameters() override {
    return inner_->device_parameters();
  }
  DeviceSpan<const float> device_gradients() const override {
    return still_.empty() ? inner_->device_gradients() : still_;
  }
  absl::StatusOr<Losses> Gradient(Players players, RngKey key) override {
    return inner_->Gradient(players, key);
  }
  // Returns the solution of the average of the peers' games.
  std::span<const double> solution() const { return inner_->solution(); }

 private:
  std::unique_ptr<QuadraticGame> inner_;
  const ParameterLayout layout_;
  const std::vector<float> still_;
};

}  // namespace gossamer

#endif  // GOSSAMER_TESTS_RUNTIME_PEER_MATRIX_GAME_H_
