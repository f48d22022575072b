// Gradient tracking: a game whose gradient, at each peer, follows the mean of
// all peers' gradients.
//
// The vector is [x; t]: the parameters of the game inside, then as many floats
// that mix like them.  A gradient g of the game inside moves t by what is new:
//
//   t ← t + g − g_prev        (at first g_prev is t)
//
// and t is what the optimizer sees.  Mixing keeps the sum of all t, so it stays
// the sum of all g; where peers agree, t is the gradient of the average game,
// and a constant learning rate leaves no error.  What an edge has added to t is
// taken out again where the edge ends: its other end's opposite is lost.
//
// What comes rounds late wants a smaller rate: quadratics of seven peers on a
// ring, two steps a round, converge at 0.05 with h of 1 and diverge with 3; at
// 0.01 they converge with 8, too.
//
// Source: Nedić, Olshevsky, Shi, SIAM J. Optim. 2017 (DIGing); with compressed
// innovations Zhao et al., BEER, NeurIPS 2022.  Knows nothing of mixing, codecs
// or rounds.

#ifndef GOSSAMER_ALGORITHMS_GAME_TRACKED_GAME_H_
#define GOSSAMER_ALGORITHMS_GAME_TRACKED_GAME_H_

#include <memory>
#include <span>
#include <vector>

#include "algorithms/game/game.h"

namespace gossamer {

class TrackedGame final : public Game, private MixingHooks {
 public:
  // t belongs to the discriminator's extent, so that the generator's is what
  // it was; its segments are named "tracked.*".
  explicit TrackedGame(std::unique_ptr<Game> inner);

  const ParameterLayout& layout() const override { return layout_; }
  std::span<float> parameters() override { return parameters_; }
  // t, then zeros.
  std::span<const float> gradients() const override { return gradients_; }
  // Both players at once; else kFailedPrecondition.
  absl::StatusOr<Losses> Gradient(Players players, RngKey key) override;
  MixingHooks* hooks() override { return this; }
  void VisitState(StateVisitor& visitor) override;
  Evaluator* evaluator() override { return inner_->evaluator(); }

 private:
  Extent extent() const override { return {size(), size()}; }
  void OnEdgeEnd(std::span<const float> sum) override;
  void OnNewIncarnation() override;
  std::vector<float> Added() const override;
  size_t size() const { return previous_.size(); }

  const std::unique_ptr<Game> inner_;
  const ParameterLayout layout_;
  std::vector<float> parameters_;
  std::vector<float> gradients_;
  std::vector<float> previous_;  // g_prev, and what the next step takes out
};

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_GAME_TRACKED_GAME_H_
