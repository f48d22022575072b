#include "gan_models/gan_step.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <c10/core/GradMode.h>

#include <utility>

namespace gossamer {
namespace {

// Weight of the newest batch in BatchNorm's running statistics.
constexpr double kMomentum = 0.1;

void Clear(const TorchQueue& queue, DeviceSpan<float> values) {
  queue.View(values, {static_cast<int64_t>(values.size)}).zero_();
}

// Gradients flow through a network, but into none of its parameters, while this
// lives: also if libtorch throws.
class Frozen {
 public:
  explicit Frozen(Network& network) : tensors_(network.tensors()) {
    tensors_.SetTrainable(false);
  }
  Frozen(const Frozen&) = delete;
  Frozen& operator=(const Frozen&) = delete;
  ~Frozen() { tensors_.SetTrainable(true); }

 private:
  TensorTable& tensors_;
};

}  // namespace

GanStep::GanStep(Network& generator, Network& discriminator,
                 std::vector<int64_t> example_shape, int latent,
                 const Vectors& vectors, const Options& options,
                 const TorchQueue& queue)
    : generator_(generator),
      discriminator_(discriminator),
      example_shape_(std::move(example_shape)),
      latent_(latent),
      vectors_(vectors),
      options_(options),
      queue_(queue),
      // README.md, "One backward pass for two players".
      one_backward_(options.one_backward &&
                    options.loss == Loss::kWassersteinGp &&
                    !discriminator.has_batch_norm()) {}

bool GanStep::needs_mixtures() const {
  return options_.loss == Loss::kWassersteinGp && options_.gradient_penalty > 0;
}

at::Tensor GanStep::Forward(const Network& network, const at::Tensor& input,
                            const at::Tensor& labels,
                            const Normalization& normalization) const {
  const PrecisionScope scope(options_.precision, queue_.cuda());
  return network.Forward(input, labels, normalization).to(at::kFloat);
}

// Undefined if there are none.
at::Tensor GanStep::Labels(DeviceSpan<int64_t> labels) const {
  if (labels.empty()) return {};
  return queue_.View(labels, {static_cast<int64_t>(labels.size)});
}

void GanStep::SetLoss(Player player, const at::Tensor& loss) const {
  const size_t place = player == Player::kGenerator ? 0 : 1;
  queue_.View(vectors_.losses.subspan(place, 1), {}).copy_(loss.detach());
}

void GanStep::Run(Players players, const GanBatch& batch) const {
  const bool both = players == Players::kBoth;
  generator_.tensors().Refresh();
  discriminator_.tensors().Refresh();
  std::vector<int64_t> shape = {options_.batch};
  shape.insert(shape.end(), example_shape_.begin(), example_shape_.end());
  at::Tensor real = queue_.View(batch.real, shape);
  if (real.dim() == 4) {
    const PrecisionScope scope(options_.precision, queue_.cuda());
    real = ForConvolutions(real);
  }
  const at::Tensor fake_labels = Labels(batch.fake_labels);
  at::Tensor fake;
  {
    // A discriminator step leaves the generator alone, its running statistics
    // too.
    const c10::AutoGradMode record(both);
    const Normalization by_batch = {.momentum = both ? kMomentum : 0,
                                    .keep_power_iteration = both};
    fake = Forward(generator_,
                   queue_.View(batch.latents, {options_.batch, latent_}),
                   fake_labels, by_batch);
  }
  // libtorch adds to a gradient that exists, so each one starts from zero.
  Clear(queue_, vectors_.discriminator_gradients);
  // The discriminator sees the fakes as constants.  With one backward pass they
  // ask for a gradient of their own, which the generator's backward pass starts
  // from.
  const at::Tensor constant = fake.detach();
  constant.requires_grad_(both && one_backward_);
  DiscriminatorStep(real, constant, batch);
  if (!both) return;

  Clear(queue_, vectors_.generator_gradients);
  if (one_backward_) {
    fake.backward(-constant.grad());
    return;
  }
  // The second pass would otherwise add the generator's loss to the
  // discriminator's gradients.
  const Frozen frozen(discriminator_);
  const at::Tensor loss = GeneratorLoss(
      options_.loss,
      Forward(discriminator_, fake, fake_labels, Normalization{}));
  loss.backward();
  SetLoss(Player::kGenerator, loss);
}

// Leaves the discriminator's gradients in the flat vector, and in `fake` its
// own if it asks for one.
void GanStep::DiscriminatorStep(const at::Tensor& real, const at::Tensor& fake,
                                const GanBatch& batch) const {
  const at::Tensor real_labels = Labels(batch.real_labels);
  const at::Tensor fake_labels = Labels(batch.fake_labels);
  at::Tensor of_real, of_fake;
  if (discriminator_.has_batch_norm()) {  // each half by its own statistics
    of_real = Forward(discriminator_, real, real_labels,
                      {.keep_power_iteration = true});
    of_fake = Forward(discriminator_, fake, fake_labels, Normalization{});
  } else {
    // Without BatchNorm a score depends on its own example alone, so both
    // halves take one pass, and the same spectral norms.
    const at::Tensor labels = real_labels.defined()
                                  ? at::cat({real_labels, fake_labels})
                                  : at::Tensor();
    const at::Tensor scores = Forward(discriminator_, at::cat({real, fake}),
                                      labels, {.keep_power_iteration = true});
    of_real = scores.narrow(0, 0, options_.batch);
    of_fake = scores.narrow(0, options_.batch, options_.batch);
  }
  at::Tensor loss = DiscriminatorLoss(options_.loss, of_real, of_fake);
  if (needs_mixtures()) {
    // A point between a real and a fake example has the real one's class.
    const auto score = [&](const at::Tensor& x) {
      return Forward(discriminator_, x, real_labels, Normalization{});
    };
    loss = loss +
           options_.gradient_penalty *
               GradientPenalty(score, real, fake,
                               queue_.View(batch.mixtures, {options_.batch}));
  }
  loss.backward();
  // For the report only: the generator's loss at the same scores, without a
  // gradient.
  SetLoss(Player::kGenerator, GeneratorLoss(options_.loss, of_fake.detach()));
  SetLoss(Player::kDiscriminator, loss);
}

}  // namespace gossamer
