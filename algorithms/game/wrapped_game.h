// A game around another one, which does all that its subclass does not.
//
// This header knows nothing of what subclasses are for.

#ifndef GOSSAMER_ALGORITHMS_GAME_WRAPPED_GAME_H_
#define GOSSAMER_ALGORITHMS_GAME_WRAPPED_GAME_H_

#include <memory>
#include <utility>

#include "algorithms/game/game.h"

namespace gossamer {

// Passes every call on to the game inside, which it owns.
class WrappedGame : public Game {
 public:
  const ParameterLayout& layout() const override { return game_->layout(); }
  const DeviceQueue& queue() const override { return game_->queue(); }
  DeviceSpan<float> device_parameters() override {
    return game_->device_parameters();
  }
  DeviceSpan<const float> device_gradients() const override {
    return game_->device_gradients();
  }
  absl::StatusOr<Losses> Gradient(Players players, RngKey key) override {
    return game_->Gradient(players, key);
  }
  void PrefetchBatch(RngKey key) override { game_->PrefetchBatch(key); }
  bool PrepareState() override { return game_->PrepareState(); }
  void VisitState(StateVisitor& visitor) override {
    game_->VisitState(visitor);
  }
  MixingHooks* hooks() override { return game_->hooks(); }
  Evaluator* evaluator() override { return game_->evaluator(); }

 protected:
  explicit WrappedGame(std::unique_ptr<Game> game) : game_(std::move(game)) {}
  Game& game() const { return *game_; }

 private:
  const std::unique_ptr<Game> game_;
};

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_GAME_WRAPPED_GAME_H_
