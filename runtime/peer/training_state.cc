#include "runtime/peer/training_state.h"

#include <utility>

#include "algorithms/kernels/kernels.h"
#include "runtime/checkpoint/checkpoint.h"

namespace gossamer {

TrainingState::TrainingState(const PeerSpec& spec, Game* game, LocalStep* step,
                             GradientCompressor* gradients)
    : spec_(spec), game_(game), step_(step), gradients_(gradients) {
  if (spec_.ema > 0) {
    // Only the generator is averaged: samples and scores come from it.
    const std::span<const float> x = generator();
    ema_.assign(x.begin(), x.end());
  }
}

std::span<const float> TrainingState::generator() const {
  if (!ema_.empty()) return ema_;
  return game_->parameters().first(
      game_->layout().extent(Player::kGenerator).size);
}

bool TrainingState::Sound() const {
  return HostKernels().all_within(spec_.limits.largest, game_->parameters());
}

void TrainingState::UpdateAverage() {
  if (ema_.empty()) return;
  HostKernels().ema(static_cast<float>(1 - spec_.ema),
                    game_->parameters().first(ema_.size()), ema_);
}

void TrainingState::AddState(std::string prefix,
                             std::function<void(StateVisitor&)> visit) {
  added_.emplace(std::move(prefix), std::move(visit));
}

void TrainingState::VisitState(StateVisitor& visitor) {
  // The round is no state: it is the checkpoint's id, and a joiner takes its
  // own from the view.
  visitor.Counter("steps", steps_);
  visitor.Floats(kParametersName, game_->parameters());
  if (!ema_.empty()) visitor.Floats(kEmaName, ema_);
  PrefixedVisitor optimizer(visitor, "optimizer.");
  step_->VisitState(optimizer);
  if (gradients_ != nullptr) {
    PrefixedVisitor gradients(visitor, "gradients.");
    gradients_->VisitState(gradients);
  }
  PrefixedVisitor game(visitor, "game.");
  game_->VisitState(game);
  for (const auto& [prefix, visit] : added_) {
    PrefixedVisitor added(visitor, prefix);
    visit(added);
  }
}

}  // namespace gossamer
