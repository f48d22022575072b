#include "algorithms/optim/local_step.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/base/status_macros.h"

namespace gossamer {
namespace {

template <typename T>
DeviceSpan<T> Part(DeviceSpan<T> all, Extent e) {
  return all.subspan(e.offset, e.size);
}

}  // namespace

// The hooks of two rules, each of its player's extent, as those of all
// parameters.
class LocalStep::PlayersHooks final : public MixingHooks {
 public:
  explicit PlayersHooks(LocalStep* step)
      : step_(step),
        layout_(step->game_->layout()),
        rules_{{Player::kGenerator, step->generator_->hooks()},
               {Player::kDiscriminator, step->discriminator_->hooks()}} {}

  Extent extent() const override { return {0, layout_.size()}; }
  bool mixes_every_step() const override {
    return rules_[0].hooks->mixes_every_step() ||
           rules_[1].hooks->mixes_every_step();
  }
  void OnCorrection(float c, DeviceSpan<const float> difference) override {
    step_->ToChange();
    for (const Rule& r : rules_) {
      r.hooks->OnCorrection(c, Part(difference, layout_.extent(r.player)));
    }
  }
  void OnEdgeEnd(DeviceSpan<const float> sum) override {
    step_->ToChange();
    for (const Rule& r : rules_) {
      r.hooks->OnEdgeEnd(Part(sum, layout_.extent(r.player)));
    }
  }
  void OnNewIncarnation() override {
    step_->ToChange();
    for (const Rule& r : rules_) r.hooks->OnNewIncarnation();
  }
  std::vector<float> Added() const override {
    std::vector<float> all(layout_.size());
    for (const Rule& r : rules_) {
      std::ranges::copy(r.hooks->Added(),
                        all.begin() + static_cast<ptrdiff_t>(
                                          layout_.extent(r.player).offset));
    }
    return all;
  }

 private:
  struct Rule {
    Player player;
    MixingHooks* hooks;
  };
  LocalStep* const step_;
  const ParameterLayout& layout_;
  const std::vector<Rule> rules_;
};

LocalStep::LocalStep(const LocalStepSpec& spec, Game* game)
    : spec_(spec), game_(game), queue_(game->queue()) {}

LocalStep::~LocalStep() = default;

Problems ProblemsOf(const LocalStepSpec& spec) {
  Problems problems;
  const auto add = [&](const OptimizerSpec& player, std::string_view name) {
    Problems renamed;
    for (Problem& p : ProblemsOf(player).Take()) {
      renamed.Refuse(p.key == "learning_rate"
                         ? absl::StrCat(std::string(name), p.key)
                         : p.key,
                     p.what);
    }
    problems.Add("", std::move(renamed));
  };
  add(spec.generator, "generator_");
  add(spec.discriminator, "discriminator_");
  problems.NotNegative("gradient_clip", spec.gradient_clip);
  problems.Range("n_critic", spec.n_critic, 1, 1000);
  if (spec.decay_from_round > spec.last_round) {
    problems.Refuse("decay_from_round", "is ", spec.decay_from_round,
                    ", after the last round (", spec.last_round,
                    "); 0 means no decay");
  }
  return problems;
}

absl::StatusOr<std::unique_ptr<LocalStep>> LocalStep::Create(
    const LocalStepSpec& spec, Game* game) {
  const DeviceQueue& queue = game->queue();
  GOSSAMER_RETURN_IF_ERROR(ProblemsOf(spec).ToStatus());
  std::unique_ptr<LocalStep> step(new LocalStep(spec, game));
  const ParameterLayout& layout = game->layout();
  GOSSAMER_ASSIGN_OR_RETURN(
      step->generator_,
      Optimizer::Create(spec.generator, layout.extent(Player::kGenerator).size,
                        queue));
  GOSSAMER_ASSIGN_OR_RETURN(
      step->discriminator_,
      Optimizer::Create(spec.discriminator,
                        layout.extent(Player::kDiscriminator).size, queue));
  // Either both rules have hooks or none is used: hooks speak of all
  // parameters, and those of one player alone would leave the other's
  // corrections uncounted.
  if (step->generator_->hooks() != nullptr &&
      step->discriminator_->hooks() != nullptr) {
    step->hooks_ = std::make_unique<PlayersHooks>(step.get());
  }
  if (spec.gradient_clip > 0) {
    step->clipped_ =
        DeviceVector<float>(queue, layout.size(), "the clipped gradients");
    step->squares_ = DeviceVector<double>(queue, NormSumsOf(layout.size()));
  }
  return step;
}

Players LocalStep::PlayersOf(uint64_t step) const {
  const uint64_t n = static_cast<uint64_t>(std::max(1, spec_.n_critic));
  // The last of n steps moves both players, so the generator answers a
  // discriminator that has had its steps.
  return step % n == n - 1 ? Players::kBoth : Players::kDiscriminator;
}

double LocalStep::RateScale(uint64_t round) const {
  // The decay follows the round and not the step: peers whose counts of steps
  // differ still decay together.
  if (spec_.decay_from_round == 0 || round <= spec_.decay_from_round) return 1;
  const double span =
      static_cast<double>(spec_.last_round + 1 - spec_.decay_from_round);
  return std::max(0.0,
                  static_cast<double>(spec_.last_round + 1 - round) / span);
}

absl::StatusOr<Losses> LocalStep::Run(uint64_t step, uint64_t round,
                                      RngKey key) {
  GOSSAMER_ASSIGN_OR_RETURN(const Losses losses, Gradient(step, key));
  Apply(step, round, game_->device_gradients());
  return losses;
}

absl::StatusOr<Losses> LocalStep::Gradient(uint64_t step, RngKey key) {
  const ParameterLayout& layout = game_->layout();
  const Players players = PlayersOf(step);
  // Both players move to their points before either gradient is taken: the
  // paper's algorithms take both at one point z.
  const DeviceSpan<float> x = game_->device_parameters();
  if (players == Players::kBoth) {
    generator_->Extrapolate(Part(x, layout.extent(Player::kGenerator)));
  }
  discriminator_->Extrapolate(Part(x, layout.extent(Player::kDiscriminator)));
  return game_->Gradient(players, key);
}

void LocalStep::Apply(uint64_t step, uint64_t round,
                      DeviceSpan<const float> gradient) {
  ToChange();
  const double scale = RateScale(round);
  if (PlayersOf(step) == Players::kBoth) {
    StepPlayer(Player::kGenerator, *generator_, gradient, scale);
  }
  StepPlayer(Player::kDiscriminator, *discriminator_, gradient, scale);
}

void LocalStep::StepPlayer(Player player, Optimizer& optimizer,
                           DeviceSpan<const float> gradient, double scale) {
  const Extent extent = game_->layout().extent(player);
  DeviceSpan<const float> g = Part(gradient, extent);
  // The norm is a player's own, since the scales of the two losses have nothing
  // to do with each other.  The gradient is copied: it belongs to the game, or
  // to the all-reduce.
  if (!clipped_.empty()) {
    const DeviceSpan<float> clipped = Part(clipped_.span(), extent);
    queue_.Copy(g, clipped);
    queue_.Run(&DeviceKernels::squared_norm, g,
               squares_.span().first(NormSumsOf(g.size)));
    // The norm stays where it is: the host does not wait for it.
    queue_.Run(&DeviceKernels::clip, spec_.gradient_clip, 1.0, 1.0,
               squares_.span().data, clipped);
    g = clipped;
  }
  const DeviceSpan<float> x = game_->device_parameters();
  optimizer.Step(Part(x, extent), g, scale);
}

MixingHooks* LocalStep::hooks() {
  return hooks_ != nullptr ? hooks_.get() : game_->hooks();
}

void LocalStep::ToChange() {
  if (before_change_) std::exchange(before_change_, nullptr)();
}

void LocalStep::BeforeChange(std::function<void()> call) {
  ToChange();
  before_change_ = std::move(call);
}

void LocalStep::VisitState(StateVisitor& visitor) {
  if (visitor.loads()) ToChange();
  PrefixedVisitor g(visitor, "generator."), d(visitor, "discriminator.");
  generator_->VisitState(g);
  discriminator_->VisitState(d);
}

}  // namespace gossamer
