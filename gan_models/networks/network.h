// The players' networks: from latents to examples, from examples to scores.
//
// This header knows nothing of losses, optimizers or data.

#ifndef GOSSAMER_GAN_MODELS_NETWORKS_NETWORK_H_
#define GOSSAMER_GAN_MODELS_NETWORKS_NETWORK_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "algorithms/base/parameter_layout.h"
#include "gan_models/networks/layers.h"
#include "gan_models/networks/tensor_table.h"

namespace gossamer {

// Both players' networks by the name of their model and two sizes.
struct NetworkSpec {
  // up              nearest upsampling and 3x3 convolutions with BatchNorm
  //                 against 4x4 stride-2 convolutions; 32x32 images
  // wgan-gp-resnet  Gulrajani et al., NeurIPS 2017, CIFAR-10 residual network
  // dcgan           Radford et al., ICLR 2016, for 32x32 images
  // sagan           Zhang et al., ICML 2019, for images of any resolution here,
  //                 conditional on their class
  // mlp             three hidden layers; points of the plane
  std::string model = "up";
  int width = 16;
  int latent = 64;
  int resolution = 32;  // pixels of an image's side: 32; 64 and 128 in sagan
  int classes = 1;      // of a conditional model
  // BatchNorm in the discriminator of a model that has it (dcgan).  Gradient
  // penalties want none: they are about each example alone (Gulrajani, 4).
  bool discriminator_batch_norm = true;
};

// The shape of one example of the model: {3, resolution, resolution}, or {2}
// (mlp).
std::vector<int64_t> ExampleShape(const NetworkSpec& spec);

// One player's network.  Its tensors live in the table that it owns, and become
// views of the game's flat vectors when that is bound.
class Network {
 public:
  // kInvalidArgument: an unknown model (naming the known ones), a width, a
  // latent size, a resolution or a number of classes out of range.
  static absl::StatusOr<std::unique_ptr<Network>> Create(
      Player player, const NetworkSpec& spec);

  virtual ~Network() = default;
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  TensorTable& tensors() { return tensors_; }
  const TensorTable& tensors() const { return tensors_; }

  // Generator: latents [N, latent] to examples [N, 3, side, side] in [-1, 1] or
  // [N, 2].  Discriminator: examples to scores [N].  A conditional network
  // takes the examples' classes as well, `labels` [N] of 64-bit integers;
  // others ignore them, and they may be undefined.  tensors() must be bound.
  virtual at::Tensor Forward(const at::Tensor& input, const at::Tensor& labels,
                             const Normalization& normalization) const = 0;
  // Whether a score depends on the other examples of its batch.
  virtual bool has_batch_norm() const { return false; }
  // Whether statistics are of power iterations, which take passes to converge.
  virtual bool has_spectral_norm() const { return false; }
  virtual bool conditional() const { return false; }

 protected:
  explicit Network(Player player) : tensors_(player) {}

 private:
  TensorTable tensors_;
};

}  // namespace gossamer

#endif  // GOSSAMER_GAN_MODELS_NETWORKS_NETWORK_H_
