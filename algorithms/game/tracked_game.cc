#include "algorithms/game/tracked_game.h"

#include <algorithm>
#include <utility>

#include "algorithms/base/status_macros.h"

namespace gossamer {
namespace {

ParameterLayout Doubled(const ParameterLayout& layout) {
  std::vector<Segment> segments = layout.segments();
  for (const Segment& s : layout.segments()) {
    segments.push_back(
        {"tracked." + s.name, Player::kDiscriminator, s.shape, {}});
  }
  return ParameterLayout(std::move(segments));
}

}  // namespace

TrackedGame::TrackedGame(std::unique_ptr<Game> inner)
    : inner_(std::move(inner)),
      layout_(Doubled(inner_->layout())),
      parameters_(layout_.size()),
      gradients_(layout_.size()),
      previous_(inner_->layout().size()) {
  std::ranges::copy(inner_->parameters(), parameters_.begin());
}

absl::StatusOr<Losses> TrackedGame::Gradient(Players players, RngKey key) {
  if (players != Players::kBoth) {
    return absl::FailedPreconditionError(
        "gradient tracking needs the gradients of both players in every step: "
        "set step.n_critic to 1");
  }
  std::copy_n(parameters_.begin(), size(), inner_->parameters().begin());
  GOSSAMER_ASSIGN_OR_RETURN(const Losses losses,
                            inner_->Gradient(players, key));
  const std::span<const float> g = inner_->gradients();
  const std::span<float> t = std::span(parameters_).last(size());
  for (size_t i = 0; i < size(); ++i) {
    t[i] += g[i] - previous_[i];
    gradients_[i] = t[i];
  }
  std::ranges::copy(g, previous_.begin());
  return losses;
}

void TrackedGame::OnNewIncarnation() {
  std::ranges::copy(std::span(parameters_).last(size()), previous_.begin());
}

void TrackedGame::OnEdgeEnd(std::span<const float> sum) {
  for (size_t i = 0; i < size(); ++i) previous_[i] += sum[i];
}

std::vector<float> TrackedGame::Added() const {
  std::vector<float> added(parameters_.begin() + size(), parameters_.end());
  for (size_t i = 0; i < size(); ++i) added[i] -= previous_[i];
  return added;
}

void TrackedGame::VisitState(StateVisitor& visitor) {
  PrefixedVisitor inner(visitor, "tracked.");
  inner_->VisitState(inner);
  visitor.Floats("previous_gradient", previous_);
}

}  // namespace gossamer
