// A game whose gradients take a given time, as on another machine.
//
// For measuring what a network or a codec costs a step of that length.  Knows
// nothing of which game it paces.

#ifndef GOSSAMER_RUNTIME_PEER_PACED_GAME_H_
#define GOSSAMER_RUNTIME_PEER_PACED_GAME_H_

#include <memory>
#include <span>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "algorithms/game/game.h"

namespace gossamer {

enum class Pace {
  kBurn,   // computes until the time is over, as on a CPU
  kSleep,  // leaves the CPU to others, as with a GPU
};

class PacedGame final : public Game {
 public:
  // A gradient that takes longer by itself is not hurried.
  PacedGame(std::unique_ptr<Game> game, absl::Duration step_time, Pace pace)
      : game_(std::move(game)), step_time_(step_time), pace_(pace) {}

  const ParameterLayout& layout() const override { return game_->layout(); }
  std::span<float> parameters() override { return game_->parameters(); }
  std::span<const float> gradients() const override {
    return game_->gradients();
  }
  absl::StatusOr<Losses> Gradient(Players players, RngKey key) override;
  void VisitState(StateVisitor& visitor) override {
    game_->VisitState(visitor);
  }
  void OnNewMembers() override { game_->OnNewMembers(); }
  Evaluator* evaluator() override { return game_->evaluator(); }

 private:
  const std::unique_ptr<Game> game_;
  const absl::Duration step_time_;
  const Pace pace_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_PEER_PACED_GAME_H_
