#include "gan_models/gan_game.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "algorithms/base/status_macros.h"
#include "gan_models/compute.h"

namespace gossamer {
namespace {

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
      threads_(options.threads),
      layout_(Concatenate(*generator_, *discriminator_)),
      parameters_(layout_.size()),
      gradients_(layout_.size()),
      statistics_(generator_->tensors().statistic_count() +
                  discriminator_->tensors().statistic_count()),
      step_(*generator_, *discriminator_,
            {data_->example_shape().begin(), data_->example_shape().end()},
            latent, GradientsOf(Player::kGenerator),
            GradientsOf(Player::kDiscriminator), options.step),
      evaluator_(std::move(evaluator)) {
  const auto batch = static_cast<size_t>(options.step.batch);
  size_t example = 1;
  for (int64_t d : data_->example_shape()) example *= d;
  real_.resize(example * batch);
  latents_.resize(static_cast<size_t>(latent) * batch);
  if (step_.needs_mixtures()) mixtures_.resize(batch);
  if (generator_->conditional()) {
    real_labels_.resize(batch);
    fake_labels_.resize(batch);
  }

  // Values are drawn before the tensors become views of them.
  Network* const networks[] = {generator_.get(), discriminator_.get()};
  const Player players[] = {Player::kGenerator, Player::kDiscriminator};
  std::span<float> statistics = statistics_;
  for (size_t i = 0; i < 2; ++i) {
    TensorTable& table = networks[i]->tensors();
    const Extent extent = layout_.extent(players[i]);
    const auto parameters =
        std::span(parameters_).subspan(extent.offset, extent.size);
    const auto own = statistics.first(table.statistic_count());
    statistics = statistics.subspan(own.size());
    table.Initialize(seed, parameters);
    table.InitializeStatistics(own);
    table.Bind(parameters, GradientsOf(players[i]), own);
  }
}

std::span<float> GanGame::GradientsOf(Player player) {
  const Extent extent = layout_.extent(player);
  return std::span(gradients_).subspan(extent.offset, extent.size);
}

GanBatch GanGame::Draw(RngKey key) {
  data_->FillBatch(key.Fold("data"), real_, real_labels_);
  key.Fold("latent").FillGaussian(latents_);
  const RngKey penalty = key.Fold("penalty");
  for (size_t i = 0; i < mixtures_.size(); ++i) {
    // Gulrajani et al., NeurIPS 2017: one point on the line between each pair
    // of a real and a fake example.
    mixtures_[i] = static_cast<float>(penalty.Uniform(i));
  }
  const RngKey labels = key.Fold("labels");
  const auto classes = static_cast<uint64_t>(data_->class_names().size());
  for (size_t i = 0; i < fake_labels_.size(); ++i) {
    // All classes alike, as published, whatever share of them this peer has.
    fake_labels_[i] = static_cast<int64_t>(labels.Below(classes, i));
  }
  return {.real = real_,
          .latents = latents_,
          .real_labels = real_labels_,
          .fake_labels = fake_labels_,
          .mixtures = mixtures_};
}

absl::StatusOr<Losses> GanGame::Gradient(Players players, RngKey key) {
  // A game may be called from another thread each time.
  UseThreads(threads_);
  // Kept so that a failed step leaves them as they were: BatchNorm has changed
  // them by then.
  const std::vector<float> statistics = statistics_;
  absl::StatusOr<Losses> losses = GuardTorch([&]() -> absl::StatusOr<Losses> {
    return step_.Run(players, Draw(key));
  });
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
  for (const Network* network : {generator_.get(), discriminator_.get()}) {
    for (const Segment& s : network->tensors().statistics()) {
      const auto size = static_cast<size_t>(s.shape[0]);
      // By layer and under its name: a checkpoint that is read by another model
      // then names what does not fit.
      visitor.Floats(s.name, std::span(statistics_).subspan(offset, size));
      offset += size;
    }
  }
}

}  // namespace gossamer
