#include "gan_models/gan_step.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <utility>

namespace gossamer {
namespace {

// Weight of the newest batch in BatchNorm's running statistics.
constexpr double kMomentum = 0.1;

at::Tensor Examples(std::span<float> values, int64_t batch,
                    const std::vector<int64_t>& example_shape) {
  std::vector<int64_t> shape = {batch};
  shape.insert(shape.end(), example_shape.begin(), example_shape.end());
  const at::Tensor examples = at::from_blob(values.data(), shape);
  return examples.dim() == 4 ? ChannelsLast(examples) : examples;
}

// Undefined if there are none.
at::Tensor Labels(std::span<int64_t> labels) {
  if (labels.empty()) return {};
  return at::from_blob(labels.data(), {static_cast<int64_t>(labels.size())},
                       at::kLong);
}

}  // namespace

GanStep::GanStep(Network& generator, Network& discriminator,
                 std::vector<int64_t> example_shape, int latent,
                 std::span<float> generator_gradients,
                 std::span<float> discriminator_gradients,
                 const Options& options)
    : generator_(generator),
      discriminator_(discriminator),
      example_shape_(std::move(example_shape)),
      latent_(latent),
      generator_gradients_(generator_gradients),
      discriminator_gradients_(discriminator_gradients),
      options_(options),
      // README.md, "One backward pass for two players".
      one_backward_(options.one_backward &&
                    options.loss == Loss::kWassersteinGp &&
                    !discriminator.has_batch_norm()) {}

bool GanStep::needs_mixtures() const {
  return options_.loss == Loss::kWassersteinGp && options_.gradient_penalty > 0;
}

Losses GanStep::Run(Players players, const GanBatch& batch) const {
  const bool both = players == Players::kBoth;
  const at::Tensor real = Examples(batch.real, options_.batch, example_shape_);
  const at::Tensor fake_labels = Labels(batch.fake_labels);
  at::Tensor fake;
  {
    // A discriminator step leaves the generator alone, its running statistics
    // too.
    const c10::AutoGradMode record(both);
    const Normalization by_batch = {.momentum = both ? kMomentum : 0,
                                    .keep_power_iteration = both};
    fake = generator_.Forward(
        at::from_blob(batch.latents.data(), {options_.batch, latent_}),
        fake_labels, by_batch);
  }
  // libtorch adds to a gradient that exists, so each one starts from zero.
  std::ranges::fill(discriminator_gradients_, 0.0f);
  // The discriminator sees the fakes as constants.  With one backward pass they
  // ask for a gradient of their own, which the generator's backward pass starts
  // from.
  const at::Tensor constant = fake.detach();
  constant.requires_grad_(both && one_backward_);
  Losses losses = DiscriminatorStep(real, constant, batch);
  if (!both) return losses;

  std::ranges::fill(generator_gradients_, 0.0f);
  if (one_backward_) {
    fake.backward(-constant.grad());
    return losses;
  }
  // The second pass would otherwise add the generator's loss to the
  // discriminator's gradients.
  discriminator_.tensors().SetTrainable(false);
  const at::Tensor loss =
      GeneratorLoss(options_.loss,
                    discriminator_.Forward(fake, fake_labels, Normalization{}));
  loss.backward();
  discriminator_.tensors().SetTrainable(true);
  losses.generator = loss.item<double>();
  return losses;
}

// Leaves the discriminator's gradients in the flat vector, and in `fake` its
// own if it asks for one.
Losses GanStep::DiscriminatorStep(const at::Tensor& real,
                                  const at::Tensor& fake,
                                  const GanBatch& batch) const {
  const at::Tensor real_labels = Labels(batch.real_labels);
  const at::Tensor fake_labels = Labels(batch.fake_labels);
  at::Tensor of_real, of_fake;
  if (discriminator_.has_batch_norm()) {  // each half by its own statistics
    of_real = discriminator_.Forward(real, real_labels,
                                     {.keep_power_iteration = true});
    of_fake = discriminator_.Forward(fake, fake_labels, Normalization{});
  } else {
    // Without BatchNorm a score depends on its own example alone, so both
    // halves take one pass, and the same spectral norms.
    const at::Tensor labels = real_labels.defined()
                                  ? at::cat({real_labels, fake_labels})
                                  : at::Tensor();
    const at::Tensor scores = discriminator_.Forward(
        at::cat({real, fake}), labels, {.keep_power_iteration = true});
    of_real = scores.narrow(0, 0, options_.batch);
    of_fake = scores.narrow(0, options_.batch, options_.batch);
  }
  at::Tensor loss = DiscriminatorLoss(options_.loss, of_real, of_fake);
  if (needs_mixtures()) {
    // A point between a real and a fake example has the real one's class.
    const auto score = [&](const at::Tensor& x) {
      return discriminator_.Forward(x, real_labels, Normalization{});
    };
    loss = loss + options_.gradient_penalty *
                      GradientPenalty(score, real, fake,
                                      at::from_blob(batch.mixtures.data(),
                                                    {options_.batch}));
  }
  loss.backward();
  // For the report only: the generator's loss at the same scores, without a
  // gradient.
  return {.generator =
              GeneratorLoss(options_.loss, of_fake.detach()).item<double>(),
          .discriminator = loss.item<double>()};
}

}  // namespace gossamer
