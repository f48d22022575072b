#include "gan_models/gan_game.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "algorithms/base/status_macros.h"
#include "gan_models/compute.h"

namespace gossamer {
namespace {

// Weight of the newest batch in BatchNorm's running statistics.
constexpr double kMomentum = 0.1;

std::vector<Segment> Concatenate(const Network& a, const Network& b) {
  std::vector<Segment> all = a.tensors().parameters();
  const std::vector<Segment>& more = b.tensors().parameters();
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace

GanGame::GanGame(std::unique_ptr<Network> generator,
                 std::unique_ptr<Network> discriminator,
                 std::shared_ptr<const Dataset> data, const Options& options,
                 int latent, uint64_t seed,
                 std::unique_ptr<Evaluator> evaluator)
    : generator_(std::move(generator)),
      discriminator_(std::move(discriminator)),
      data_(std::move(data)),
      options_(options),
      latent_(latent),
      // README.md, "One backward pass for two players".
      one_backward_(options.one_backward &&
                    options.loss == Loss::kWassersteinGp &&
                    !discriminator_->has_batch_norm()),
      layout_(Concatenate(*generator_, *discriminator_)),
      parameters_(layout_.size()),
      gradients_(layout_.size()),
      statistics_(generator_->tensors().statistic_count()),
      evaluator_(std::move(evaluator)) {
  size_t example = 1;
  for (int64_t d : data_->example_shape()) example *= d;
  real_.resize(example * options_.batch);
  latents_.resize(static_cast<size_t>(latent_) * options_.batch);

  // Values are drawn before the tensors become views of them, and the
  // statistics belong to the generator alone: a discriminator normalises every
  // batch by itself.
  TensorTable* const tables[] = {&generator_->tensors(),
                                 &discriminator_->tensors()};
  const Player players[] = {Player::kGenerator, Player::kDiscriminator};
  for (size_t i = 0; i < 2; ++i) {
    const Extent extent = layout_.extent(players[i]);
    const auto parameters =
        std::span(parameters_).subspan(extent.offset, extent.size);
    tables[i]->Initialize(seed, parameters);
    tables[i]->Bind(parameters, GradientsOf(players[i]),
                    i == 0 ? std::span(statistics_) : std::span<float>());
  }
  generator_->tensors().InitializeStatistics(statistics_);
}

std::span<float> GanGame::GradientsOf(Player player) {
  const Extent extent = layout_.extent(player);
  return std::span(gradients_).subspan(extent.offset, extent.size);
}

at::Tensor GanGame::RealBatch(RngKey key) {
  data_->FillBatch(key, real_);
  std::vector<int64_t> shape = {options_.batch};
  for (int64_t d : data_->example_shape()) shape.push_back(d);
  const at::Tensor batch = at::from_blob(real_.data(), shape);
  return batch.dim() == 4 ? ChannelsLast(batch) : batch;
}

at::Tensor GanGame::Latents(RngKey key) {
  key.FillGaussian(latents_);
  return at::from_blob(latents_.data(), {options_.batch, latent_});
}

absl::StatusOr<Losses> GanGame::Gradient(Players players, RngKey key) {
  // A game may be called from another thread each time.
  UseThreads(options_.threads);
  // Kept so that a failed step leaves them as they were: BatchNorm has changed
  // them by then.
  const std::vector<float> statistics = statistics_;
  absl::StatusOr<Losses> losses =
      GuardTorch([&] { return Step(players, key); });
  absl::Status status = losses.status();
  if (status.ok()) status = CheckFinite(players, *losses);
  if (!status.ok()) {
    std::copy(statistics.begin(), statistics.end(), statistics_.begin());
    // A step of one player leaves the other's extent, and all-reduces take all.
    std::ranges::fill(gradients_, 0.0f);
    return status;
  }
  return losses;
}

absl::StatusOr<Losses> GanGame::Step(Players players, RngKey key) {
  const bool both = players == Players::kBoth;
  const at::Tensor real = RealBatch(key.Fold("data"));
  at::Tensor fake;
  {
    // A discriminator step leaves the generator alone, its running statistics
    // too.
    const c10::AutoGradMode record(both);
    const Normalization by_batch = {.momentum = both ? kMomentum : 0};
    fake = generator_->Forward(Latents(key.Fold("latent")), by_batch);
  }
  // libtorch adds to a gradient that exists, so each one starts from zero.
  std::ranges::fill(GradientsOf(Player::kDiscriminator), 0.0f);
  // The discriminator sees the fakes as constants.  With one backward pass they
  // ask for a gradient of their own, which the generator's backward pass starts
  // from.
  const at::Tensor constant = fake.detach();
  constant.requires_grad_(both && one_backward_);
  Losses losses = DiscriminatorStep(real, constant, key.Fold("penalty"));
  if (!both) return losses;

  std::ranges::fill(GradientsOf(Player::kGenerator), 0.0f);
  if (one_backward_) {
    fake.backward(-constant.grad());
    return losses;
  }
  // The second pass would otherwise add the generator's loss to the
  // discriminator's gradients.
  discriminator_->tensors().SetTrainable(false);
  const at::Tensor loss = GeneratorLoss(
      options_.loss, discriminator_->Forward(fake, Normalization{}));
  loss.backward();
  discriminator_->tensors().SetTrainable(true);
  losses.generator = loss.item<double>();
  return losses;
}

// Leaves the discriminator's gradients in the flat vector, and in `fake` its
// own if it asks for one.
Losses GanGame::DiscriminatorStep(const at::Tensor& real,
                                  const at::Tensor& fake, RngKey key) {
  const auto score = [this](const at::Tensor& x) {
    return discriminator_->Forward(x, Normalization{});
  };
  at::Tensor of_real, of_fake;
  if (discriminator_->has_batch_norm()) {  // each half by its own statistics
    of_real = score(real);
    of_fake = score(fake);
  } else {
    // Without BatchNorm a score depends on its own example alone, so both
    // halves take one pass.
    const at::Tensor scores = score(at::cat({real, fake}));
    of_real = scores.narrow(0, 0, options_.batch);
    of_fake = scores.narrow(0, options_.batch, options_.batch);
  }
  at::Tensor loss = DiscriminatorLoss(options_.loss, of_real, of_fake);
  std::vector<float> alpha(options_.batch);
  if (options_.loss == Loss::kWassersteinGp && options_.gradient_penalty > 0) {
    for (size_t i = 0; i < alpha.size(); ++i) {
      // Gulrajani et al., NeurIPS 2017: one point on the line between each pair
      // of a real and a fake example.
      alpha[i] = static_cast<float>(key.Uniform(i));
    }
    const at::Tensor weights = at::from_blob(alpha.data(), {options_.batch});
    loss = loss + options_.gradient_penalty *
                      GradientPenalty(score, real, fake, weights);
  }
  loss.backward();
  // For the report only: the generator's loss at the same scores, without a
  // gradient.
  return {.generator =
              GeneratorLoss(options_.loss, of_fake.detach()).item<double>(),
          .discriminator = loss.item<double>()};
}

absl::Status GanGame::CheckFinite(Players players, const Losses& losses) const {
  const bool both = players == Players::kBoth;
  const size_t begin = both ? 0 : layout_.extent(Player::kDiscriminator).offset;
  // Gradients first: the first tensor that is not finite says more than a loss
  // does.
  for (size_t i = begin; i < gradients_.size(); ++i) {
    if (!std::isfinite(gradients_[i])) {
      return absl::DataLossError(absl::StrCat(
          "the gradient of ", layout_.At(i).name,
          " is not finite (losses: ", losses.generator, " generator, ",
          losses.discriminator, " discriminator)"));
    }
  }
  if (!std::isfinite(losses.discriminator)) {
    return absl::DataLossError(
        absl::StrCat("the discriminator's loss is ", losses.discriminator));
  }
  if (both && !std::isfinite(losses.generator)) {
    return absl::DataLossError(
        absl::StrCat("the generator's loss is ", losses.generator));
  }
  return absl::OkStatus();
}

void GanGame::VisitState(StateVisitor& visitor) {
  size_t offset = 0;
  for (const Segment& s : generator_->tensors().statistics()) {
    const auto size = static_cast<size_t>(s.shape[0]);
    // By layer and under its name: a checkpoint that is read by another model
    // then names what does not fit.
    visitor.Floats(s.name, std::span(statistics_).subspan(offset, size));
    offset += size;
  }
}

}  // namespace gossamer
