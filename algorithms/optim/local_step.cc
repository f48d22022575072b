#include "algorithms/optim/local_step.h"

#include <algorithm>
#include <cmath>

#include "algorithms/base/status_macros.h"

namespace gossamer {
namespace {

template <typename T>
std::span<T> Part(std::span<T> all, Extent e) {
  return all.subspan(e.offset, e.size);
}

}  // namespace

absl::StatusOr<std::unique_ptr<LocalStep>> LocalStep::Create(
    const LocalStepSpec& spec, Game* game, const Kernels& kernels) {
  std::unique_ptr<LocalStep> step(new LocalStep(spec, game, kernels));
  const ParameterLayout& layout = game->layout();
  GOSSAMER_ASSIGN_OR_RETURN(
      step->generator_,
      Optimizer::Create(spec.generator, layout.extent(Player::kGenerator).size,
                        kernels));
  GOSSAMER_ASSIGN_OR_RETURN(
      step->discriminator_,
      Optimizer::Create(spec.discriminator,
                        layout.extent(Player::kDiscriminator).size, kernels));
  if (spec.gradient_clip > 0) step->clipped_.resize(layout.size());
  return step;
}

Players LocalStep::PlayersOf(uint64_t step) const {
  const uint64_t n = static_cast<uint64_t>(std::max(1, spec_.n_critic));
  return step % n == n - 1 ? Players::kBoth : Players::kDiscriminator;
}

double LocalStep::RateScale(uint64_t round) const {
  if (spec_.decay_from_round == 0 || round <= spec_.decay_from_round) return 1;
  const double span =
      static_cast<double>(spec_.last_round + 1 - spec_.decay_from_round);
  return std::max(0.0,
                  static_cast<double>(spec_.last_round + 1 - round) / span);
}

absl::StatusOr<Losses> LocalStep::Run(uint64_t step, uint64_t round,
                                      RngKey key) {
  GOSSAMER_ASSIGN_OR_RETURN(const Losses losses, Gradient(step, key));
  Apply(step, round, game_->gradients());
  return losses;
}

absl::StatusOr<Losses> LocalStep::Gradient(uint64_t step, RngKey key) {
  const ParameterLayout& layout = game_->layout();
  const Players players = PlayersOf(step);
  if (players == Players::kBoth) {
    generator_->Extrapolate(
        Part(game_->parameters(), layout.extent(Player::kGenerator)));
  }
  discriminator_->Extrapolate(
      Part(game_->parameters(), layout.extent(Player::kDiscriminator)));
  return game_->Gradient(players, key);
}

void LocalStep::Apply(uint64_t step, uint64_t round,
                      std::span<const float> gradient) {
  const double scale = RateScale(round);
  if (PlayersOf(step) == Players::kBoth) {
    StepPlayer(Player::kGenerator, *generator_, gradient, scale);
  }
  StepPlayer(Player::kDiscriminator, *discriminator_, gradient, scale);
}

void LocalStep::StepPlayer(Player player, Optimizer& optimizer,
                           std::span<const float> gradient, double scale) {
  const Extent extent = game_->layout().extent(player);
  std::span<const float> g = Part(gradient, extent);
  if (!clipped_.empty()) {
    const double norm = std::sqrt(kernels_.squared_norm(g));
    if (norm > spec_.gradient_clip) {
      const std::span<float> clipped = Part(std::span<float>(clipped_), extent);
      std::copy(g.begin(), g.end(), clipped.begin());
      kernels_.scale(static_cast<float>(spec_.gradient_clip / norm), clipped);
      g = clipped;
    }
  }
  optimizer.Step(Part(game_->parameters(), extent), g, scale);
}

Extent LocalStep::common() const {
  return has_dual() ? Extent{0, game_->layout().size()} : game_->tracked();
}

void LocalStep::OnCorrection(float c, std::span<const float> difference) {
  if (!has_dual()) return;
  const ParameterLayout& layout = game_->layout();
  generator_->OnCorrection(c,
                           Part(difference, layout.extent(Player::kGenerator)));
  discriminator_->OnCorrection(
      c, Part(difference, layout.extent(Player::kDiscriminator)));
}

void LocalStep::OnLost(std::span<const float> sum) {
  if (has_dual()) {
    OnCorrection(-1, sum);
  } else {
    game_->OnLost(sum);
  }
}

std::vector<float> LocalStep::Brought() const {
  if (!has_dual()) return game_->Brought();
  const ParameterLayout& layout = game_->layout();
  std::vector<float> all(layout.size());
  const std::span<float> brought(all);
  generator_->Brought(Part(brought, layout.extent(Player::kGenerator)));
  discriminator_->Brought(Part(brought, layout.extent(Player::kDiscriminator)));
  return all;
}

void LocalStep::OnNewLife() {
  game_->OnNewLife();
  generator_->ResetDual();
  discriminator_->ResetDual();
}

void LocalStep::VisitState(StateVisitor& visitor) {
  PrefixedVisitor g(visitor, "generator."), d(visitor, "discriminator.");
  generator_->VisitState(g);
  discriminator_->VisitState(d);
}

}  // namespace gossamer
