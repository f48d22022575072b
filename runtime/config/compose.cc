#include "runtime/config/compose.h"

#include <utility>

#include "algorithms/base/status_macros.h"
#include "algorithms/game/bilinear_game.h"
#include "algorithms/game/quadratic_game.h"
#include "algorithms/game/synthetic_game.h"
#include "runtime/config/composition_check.h"
#include "runtime/config/datalens_config.h"
#include "runtime/config/run_config.h"

namespace gossamer {
namespace {

OptimizerSpec OptimizerSpecOf(const RunConfig& config, double learning_rate) {
  const StepConfig& step = config.step();
  const Method* const method = MethodOf(config);
  return {.name = step.optimizer(),
          .make = method == nullptr ? nullptr : method->rule,
          .learning_rate = learning_rate,
          .beta1 = step.beta1(),
          .beta2 = step.beta2()};
}

}  // namespace

std::unique_ptr<Game> GameFor(const RunConfig& config,
                              std::unique_ptr<Game> game) {
  const Method* const method = MethodOf(config);
  if (method == nullptr || method->game == nullptr) return game;
  return method->game(std::move(game));
}

absl::StatusOr<std::unique_ptr<Game>> MakeClosedFormGame(
    const RunConfig& config, int shard) {
  const int peers = static_cast<int>(config.peers());
  const GameConfig& game = config.game();
  if (game.has_bilinear()) {
    return BilinearGame::Create(BilinearSpecOf(config), config.seed());
  }
  if (game.has_quadratic()) {
    return QuadraticGame::Create(QuadraticSpecOf(config), shard, peers,
                                 config.seed());
  }
  if (game.has_synthetic()) {
    return SyntheticGame::Create(SyntheticSpecOf(config), shard, peers,
                                 config.seed());
  }
  GOSSAMER_RETURN_IF_ERROR(CheckGameIsHere(config));
  return absl::InvalidArgumentError(
      game.has_datalens() ? "game datalens learns from votes, which virtual "
                            "time does not have: "
                            "train it, with gossamer train or in gossamer lab"
                          : "the game has no closed form");
}

GanSpec GanSpecOf(const RunConfig& config) {
  const GanConfig& gan = config.game().gan();
  GanSpec spec;
  spec.model = gan.model();
  spec.width = static_cast<int>(gan.width());
  spec.resolution = static_cast<int>(gan.resolution());
  spec.latent = static_cast<int>(gan.latent());
  spec.loss = gan.loss();
  spec.gradient_penalty = gan.gradient_penalty();
  spec.batch = static_cast<int>(gan.batch());
  spec.precision = config.step().precision();
  spec.evaluation_samples = static_cast<int>(config.evaluation().samples());
  spec.data.name = gan.data().name();
  spec.data.path = gan.data().path();
  spec.data.classes.assign(gan.data().classes().begin(),
                           gan.data().classes().end());
  spec.data.dirichlet_alpha = gan.data().dirichlet_alpha();
  spec.data.flip = gan.data().flip();
  return spec;
}

BilinearSpec BilinearSpecOf(const RunConfig& config) {
  const SaddleConfig& game = config.game().bilinear();
  return {.dimension = static_cast<int>(game.dimension()),
          .noise = game.noise()};
}

QuadraticSpec QuadraticSpecOf(const RunConfig& config) {
  const SaddleConfig& game = config.game().quadratic();
  return {.dimension = static_cast<int>(game.dimension()),
          .noise = game.noise(),
          .heterogeneity = game.heterogeneity()};
}

SyntheticSpec SyntheticSpecOf(const RunConfig& config) {
  return {.parameters =
              static_cast<int64_t>(config.game().synthetic().parameters())};
}

LocalStepSpec LocalStepSpecOf(const RunConfig& config) {
  const StepConfig& step = config.step();
  LocalStepSpec spec;
  spec.generator = OptimizerSpecOf(config, step.generator_learning_rate());
  spec.discriminator =
      OptimizerSpecOf(config, step.discriminator_learning_rate());
  spec.n_critic = static_cast<int>(step.n_critic());
  spec.gradient_clip = step.gradient_clip();
  spec.decay_from_round = step.decay_from_round();
  spec.last_round = config.rounds();
  return spec;
}

absl::StatusOr<std::unique_ptr<GradientCompressor>> GradientCompressorOf(
    const RunConfig& config, const ParameterLayout& layout,
    const ValueCoderMaker& coders) {
  const std::string& method = config.mixing().gradient_codec();
  if (method == GradientCompressor::kDense) return nullptr;
  return GradientCompressor::Create(method, layout, HostKernels(), coders);
}

absl::StatusOr<DeadlinePolicy> DeadlinePolicyOf(const std::string& text) {
  using Kind = DeadlinePolicy::Kind;
  if (text == "none") return DeadlinePolicy{Kind::kNone, {}};
  if (text == "auto") return DeadlinePolicy{Kind::kAdaptive, {}};
  GOSSAMER_ASSIGN_OR_RETURN(const absl::Duration fixed,
                            ParsePositiveDuration(text));
  return DeadlinePolicy{Kind::kFixed, fixed};
}

absl::StatusOr<PeerSpec> PeerSpecOf(const RunConfig& config) {
  const MixingConfig& mixing = config.mixing();
  PeerSpec spec;
  spec.run_id = config.name();
  spec.seed = config.seed();
  spec.rounds = config.rounds();
  spec.peers = static_cast<int>(config.peers());
  const Method* const method = MethodOf(config);
  if (method != nullptr) spec.averaging = method->averaging;
  spec.all_reduce = mixing.all_reduce();
  spec.overlap_steps = static_cast<int>(mixing.overlap_steps());
  spec.mixing_rounds = static_cast<int>(mixing.mixing_rounds());
  spec.chebyshev = mixing.chebyshev();
  spec.step_then_mix = method != nullptr && method->step_then_mix;
  spec.gamma = mixing.gamma();
  spec.limits = {.clip_radius = mixing.clip_radius(),
                 .largest = kLargestParameter};
  if (mixing.clip_radius() > 0) spec.min_degree = kMinClippedDegree;
  spec.replica_memory = mixing.replica_memory_mb() * 1'000'000;
  GOSSAMER_ASSIGN_OR_RETURN(spec.deadline, DeadlinePolicyOf(mixing.deadline()));
  GOSSAMER_ASSIGN_OR_RETURN(spec.liveness_limit,
                            ParsePositiveDuration(mixing.liveness_limit()));
  spec.steps_per_round = static_cast<int>(config.step().steps_per_round());
  if (config.game().has_gan()) spec.ema = config.game().gan().ema();
  if (config.game().has_datalens()) {
    spec.votes = DataLensSettingsOf(config);
    spec.ema = config.game().datalens().ema();
  }
  spec.evaluate_every = config.evaluation().every();
  spec.checkpoint_every = config.checkpoint().every();
  spec.configuration_hash = ConfigurationHash(config);
  return spec;
}

}  // namespace gossamer
