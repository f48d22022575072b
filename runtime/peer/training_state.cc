#include "runtime/peer/training_state.h"

#include <utility>

#include "algorithms/kernels/device_state.h"
#include "runtime/checkpoint/checkpoint.h"

namespace gossamer {
namespace {

// Between two polls of a state that a program writes out.
constexpr absl::Duration kStatePollInterval = absl::Milliseconds(2);

}  // namespace

TrainingState::TrainingState(const PeerSpec& spec, Game* game, LocalStep* step,
                             GradientCompressor* gradients)
    : spec_(spec), game_(game), step_(step), gradients_(gradients) {
  if (spec_.ema > 0) {
    // Only the generator is averaged: samples and scores come from it.
    const DeviceSpan<const float> x = generator();
    ema_ = DeviceVector<float>::Unset(queue(), x.size, "the moving average");
    queue().Copy(x, ema_.span());
  }
}

DeviceSpan<const float> TrainingState::generator() const {
  if (!ema_.empty()) return ema_;
  return parameters().first(game_->layout().extent(Player::kGenerator).size);
}

bool TrainingState::Sound() const {
  if (!validity_) BeginValidityCheck();
  if (!validity_->ready()) queue().Wait().IgnoreError();
  const bool within = (*validity_)[0] == 0;
  validity_.reset();
  return queue().status().ok() && within;
}

void TrainingState::BeginValidityCheck() const {
  DeviceVector<uint32_t> outside(queue(), 1);
  queue().Run(&DeviceKernels::all_within, spec_.limits.largest, parameters(),
              outside.span().data);
  validity_.emplace(queue(), outside.span());
}

void TrainingState::UpdateAverage() {
  if (ema_.empty()) return;
  queue().Run(&DeviceKernels::ema, static_cast<float>(1 - spec_.ema),
              parameters().first(ema_.size()), ema_);
}

Pending<bool> TrainingState::Prepared(
    Waiter& waiter, EventLoop& loop,
    const std::function<bool()>& enough) const {
  return waiter.Until([this, &enough] { return Prepare() || enough(); },
                      absl::InfiniteFuture(),
                      [&loop] { return loop.Now() + kStatePollInterval; });
}

void TrainingState::AddState(std::string prefix,
                             std::function<void(StateVisitor&)> visit) {
  added_.emplace(std::move(prefix), std::move(visit));
}

void TrainingState::BeforeChange(std::function<void()> call) {
  step_->BeforeChange(std::move(call));
}

void TrainingState::VisitState(StateVisitor& visitor) {
  // The round is no state: it is the checkpoint's id, and a joiner takes its
  // own from the view.
  visitor.Counter("steps", steps_);
  VisitFloats(visitor, kParametersName, queue(), parameters());
  if (!ema_.empty()) VisitFloats(visitor, kEmaName, queue(), ema_);
  PrefixedVisitor optimizer(visitor, kStableDuringGradient);
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
