// A game around another one, which does all that its subclass does not.
//
// Knows nothing of what subclasses are for.

#ifndef GOSSAMER_ALGORITHMS_GAME_WRAPPED_GAME_H_
#define GOSSAMER_ALGORITHMS_GAME_WRAPPED_GAME_H_

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "algorithms/game/game.h"

namespace gossamer {

class WrappedGame : public Game {
 public:
  const ParameterLayout& layout() const override { return game_->layout(); }
  std::span<float> parameters() override { return game_->parameters(); }
  std::span<const float> gradients() const override {
    return game_->gradients();
  }
  absl::StatusOr<Losses> Gradient(Players players, RngKey key) override {
    return game_->Gradient(players, key);
  }
  void VisitState(StateVisitor& visitor) override {
    game_->VisitState(visitor);
  }
  Extent tracked() const override { return game_->tracked(); }
  void OnNewLife() override { game_->OnNewLife(); }
  void OnLost(std::span<const float> sum) override { game_->OnLost(sum); }
  std::vector<float> Brought() const override { return game_->Brought(); }
  Evaluator* evaluator() override { return game_->evaluator(); }

 protected:
  explicit WrappedGame(std::unique_ptr<Game> game) : game_(std::move(game)) {}

 private:
  const std::unique_ptr<Game> game_;
};

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_GAME_WRAPPED_GAME_H_
