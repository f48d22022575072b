// One step of both players at one point: the losses of a batch, and their
// gradients in the vectors to which the networks are bound.
//
// Knows nothing of where a batch comes from, of optimizers or of peers.
// Includes no torch.

#ifndef GOSSAMER_GAN_MODELS_GAN_STEP_H_
#define GOSSAMER_GAN_MODELS_GAN_STEP_H_

#include <cstdint>
#include <span>
#include <vector>

#include "algorithms/game/game.h"
#include "gan_models/losses.h"
#include "gan_models/networks/network.h"

namespace gossamer {

// All that a step draws.  Labels are empty if the networks are unconditional.
struct GanBatch {
  std::span<float> real;                        // [batch, example]
  std::span<float> latents;                     // [batch, latent]
  std::span<int64_t> real_labels, fake_labels;  // [batch]
  // Each pair's point between real and fake, [batch] in [0, 1], for the
  // penalty.
  std::span<float> mixtures;
};

// The rule of a step.  It owns neither networks nor vectors: the networks'
// tensors are bound, and the gradients' extents are given.
class GanStep {
 public:
  struct Options {
    Loss loss = Loss::kWassersteinGp;
    double gradient_penalty = 10;  // its weight; with kWassersteinGp only
    int batch = 16;
    bool one_backward = true;
  };
  // `example_shape` is of one example; the gradients are the vectors that the
  // networks are bound to.  All must outlive the step.
  GanStep(Network& generator, Network& discriminator,
          std::vector<int64_t> example_shape, int latent,
          std::span<float> generator_gradients,
          std::span<float> discriminator_gradients, const Options& options);

  // Throws as libtorch does (compute.h).
  Losses Run(Players players, const GanBatch& batch) const;
  bool needs_mixtures() const;

 private:
  Losses DiscriminatorStep(const at::Tensor& real, const at::Tensor& fake,
                           const GanBatch& batch) const;

  Network& generator_;
  Network& discriminator_;
  const std::vector<int64_t> example_shape_;
  const int latent_;
  const std::span<float> generator_gradients_, discriminator_gradients_;
  const Options options_;
  // One backward pass serves both players: the gradient that flows into the
  // fake examples is minus the generator's.  Needs a generator loss that is
  // minus the discriminator's on them, and scores that depend on one example
  // each.
  const bool one_backward_;
};

}  // namespace gossamer

#endif  // GOSSAMER_GAN_MODELS_GAN_STEP_H_
