// One step of both players at one point: the losses of a batch, and their
// gradients in the vectors to which the networks are bound.
//
// This header knows nothing of where a batch comes from, of optimizers or of
// peers.  Includes no torch.

#ifndef GOSSAMER_GAN_MODELS_GAN_STEP_H_
#define GOSSAMER_GAN_MODELS_GAN_STEP_H_

#include <cstdint>
#include <vector>

#include "algorithms/base/parameter_layout.h"
#include "algorithms/game/game.h"
#include "algorithms/kernels/device_span.h"
#include "gan_models/losses.h"
#include "gan_models/networks/network.h"
#include "gan_models/precision.h"
#include "gan_models/torch_queue.h"

namespace gossamer {

// All that a step draws, in the memory of the step's queue.  Labels are empty
// if the networks are unconditional.
struct GanBatch {
  DeviceSpan<float> real;                        // [batch, example]
  DeviceSpan<float> latents;                     // [batch, latent]
  DeviceSpan<int64_t> real_labels, fake_labels;  // [batch]
  // Each pair's point between real and fake, [batch] in [0, 1], for the
  // penalty.
  DeviceSpan<float> mixtures;
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
    Precision precision = Precision::kFloat32;
  };
  // The vectors that the networks are bound to, and where Run leaves losses.
  struct Vectors {
    DeviceSpan<float> generator_gradients, discriminator_gradients;
    DeviceSpan<float> losses;  // the generator's and the discriminator's
  };
  // `example_shape` is of one example.  All must outlive the step.
  GanStep(Network& generator, Network& discriminator,
          std::vector<int64_t> example_shape, int latent,
          const Vectors& vectors, const Options& options,
          const TorchQueue& queue = TorchQueue::Host());

  // Calls torch, and is done in the order of the queue (TorchQueue::Enqueue).
  // Nothing in it depends on values, so it can be captured.  Throws as libtorch
  // does.
  void Run(Players players, const GanBatch& batch) const;
  bool needs_mixtures() const;

 private:
  void DiscriminatorStep(const at::Tensor& real, const at::Tensor& fake,
                         const GanBatch& batch) const;
  // A network's float32 output, computed in the step's precision.
  at::Tensor Forward(const Network& network, const at::Tensor& input,
                     const at::Tensor& labels,
                     const Normalization& normalization) const;
  at::Tensor Labels(DeviceSpan<int64_t> labels) const;
  void SetLoss(Player player, const at::Tensor& loss) const;

  Network& generator_;
  Network& discriminator_;
  const std::vector<int64_t> example_shape_;
  const int latent_;
  const Vectors vectors_;
  const Options options_;
  const TorchQueue queue_;
  // One backward pass serves both players: the gradient that flows into the
  // fake examples is minus the generator's.  Needs a generator loss that is
  // minus the discriminator's on them, and scores that depend on one example
  // each.
  const bool one_backward_;
};

}  // namespace gossamer

#endif  // GOSSAMER_GAN_MODELS_GAN_STEP_H_
