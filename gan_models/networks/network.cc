#include "gan_models/networks/network.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/tanh.h>

#include <cmath>
#include <optional>

#include "absl/strings/str_cat.h"
#include "algorithms/base/status_macros.h"
#include "gan_models/gan_spec.h"
#include "gan_models/networks/layers.h"
#include "gan_models/networks/sagan.h"
#include "gan_models/networks/twice_differentiable.h"

namespace gossamer {
namespace {

// Kernels of 4 at stride 2 cover every pixel equally often; those of 3 would
// leave a checkerboard in the gradient.
constexpr ConvOptions kHalveBias = {.kernel = 4, .stride = 2};

// Nearest upsampling and then a convolution: transposed convolutions leave a
// checkerboard in small pictures.
class UpGenerator : public Network {
 public:
  UpGenerator(int64_t w, int64_t latent)
      : Network(Player::kGenerator),
        width_(w),
        linear_(tensors(), "linear", latent, 4 * w * 4 * 4),
        norm0_(tensors(), "norm0", 4 * w),
        conv1_(tensors(), "conv1", 4 * w, 2 * w, {}),
        norm1_(tensors(), "norm1", 2 * w),
        conv2_(tensors(), "conv2", 2 * w, w, {}),
        norm2_(tensors(), "norm2", w),
        conv3_(tensors(), "conv3", w, w / 2, {}),
        norm3_(tensors(), "norm3", w / 2),
        conv4_(tensors(), "conv4", w / 2, 3, {}) {}

  at::Tensor Forward(const at::Tensor& z, const at::Tensor&,
                     const Normalization& n) const override {
    at::Tensor h = AsImages(linear_(z), 4 * width_, 4);
    h = at::relu(norm0_(h, n));
    h = at::relu(norm1_(conv1_(Upsample(h)), n));
    h = at::relu(norm2_(conv2_(Upsample(h)), n));
    h = at::relu(norm3_(conv3_(Upsample(h)), n));
    return at::tanh(conv4_(h));
  }
  bool has_batch_norm() const override { return true; }

 private:
  const int64_t width_;
  const Linear linear_;
  const BatchNorm norm0_;
  const Conv conv1_;
  const BatchNorm norm1_;
  const Conv conv2_;
  const BatchNorm norm2_;
  const Conv conv3_;
  const BatchNorm norm3_;
  const Conv conv4_;
};

// This network has no BatchNorm, so that a gradient penalty is about each
// example alone and one backward pass serves both players.
class UpDiscriminator : public Network {
 public:
  explicit UpDiscriminator(int64_t w)
      : Network(Player::kDiscriminator),
        conv1_(tensors(), "conv1", 3, w, kHalveBias),
        conv2_(tensors(), "conv2", w, 2 * w, kHalveBias),
        conv3_(tensors(), "conv3", 2 * w, 4 * w, kHalveBias),
        linear_(tensors(), "linear", 4 * w * 4 * 4, 1) {}

  at::Tensor Forward(const at::Tensor& x, const at::Tensor&,
                     const Normalization&) const override {
    at::Tensor h = LeakyRelu(conv1_(ForConvolutions(x)));
    h = LeakyRelu(conv2_(h));
    h = LeakyRelu(conv3_(h));
    return linear_(h.flatten(1)).view({-1});
  }

 private:
  const Conv conv1_, conv2_, conv3_;
  const Linear linear_;
};

// Convolutions of the residual networks: Glorot, with gain sqrt(2) where a
// ReLU follows (tflib's he_init); biases 0.
Conv ResConv(TensorTable& t, const std::string& name, int64_t in, int64_t out,
             int64_t kernel, bool before_relu) {
  const int64_t area = kernel * kernel;
  return Conv(t, name, in, out, {.kernel = kernel, .padding = kernel / 2},
              Glorot(in * area, out * area, before_relu ? std::sqrt(2.0) : 1.0),
              Zero());
}

struct ResBlockUp {
  ResBlockUp(TensorTable& t, const std::string& name, int64_t w)
      : norm1(t, name + ".norm1", w),
        conv1(ResConv(t, name + ".conv1", w, w, 3, true)),
        norm2(t, name + ".norm2", w),
        conv2(ResConv(t, name + ".conv2", w, w, 3, true)),
        shortcut(ResConv(t, name + ".shortcut", w, w, 1, false)) {}

  // The 1x1 convolution of the shortcut commutes with nearest upsampling; done
  // first it costs a quarter.
  at::Tensor operator()(const at::Tensor& x, const Normalization& n) const {
    at::Tensor h = conv1(Upsample(at::relu(norm1(x, n))));
    h = conv2(at::relu(norm2(h, n)));
    return h + Upsample(shortcut(x));
  }

  BatchNorm norm1;
  Conv conv1;
  BatchNorm norm2;
  Conv conv2, shortcut;
};

class ResNetGenerator : public Network {
 public:
  ResNetGenerator(int64_t w, int64_t latent)
      : Network(Player::kGenerator),
        width_(w),
        linear_(tensors(), "linear", latent, w * 4 * 4,
                Glorot(latent, w * 4 * 4, 1), Zero()),
        block1_(tensors(), "block1", w),
        block2_(tensors(), "block2", w),
        block3_(tensors(), "block3", w),
        norm_(tensors(), "norm", w),
        conv_(ResConv(tensors(), "conv", w, 3, 3, false)) {}

  at::Tensor Forward(const at::Tensor& z, const at::Tensor&,
                     const Normalization& n) const override {
    at::Tensor h = AsImages(linear_(z), width_, 4);
    h = block3_(block2_(block1_(h, n), n), n);
    return at::tanh(conv_(at::relu(norm_(h, n))));
  }
  bool has_batch_norm() const override { return true; }

 private:
  const int64_t width_;
  const Linear linear_;
  const ResBlockUp block1_, block2_, block3_;
  const BatchNorm norm_;
  const Conv conv_;
};

// The activation comes before each convolution (Gulrajani et al., NeurIPS
// 2017), so that a block adds to its input and nothing cuts the way of the
// gradient.
struct ResBlock {
  ResBlock(TensorTable& t, const std::string& name, int64_t w)
      : conv1(ResConv(t, name + ".conv1", w, w, 3, true)),
        conv2(ResConv(t, name + ".conv2", w, w, 3, true)) {}
  at::Tensor operator()(const at::Tensor& x) const {
    return conv2(Relu(conv1(Relu(x))));
  }
  Conv conv1, conv2;
};

class ResNetDiscriminator : public Network {
 public:
  explicit ResNetDiscriminator(int64_t w)
      : Network(Player::kDiscriminator),
        conv1_(ResConv(tensors(), "block1.conv1", 3, w, 3, true)),
        conv2_(ResConv(tensors(), "block1.conv2", w, w, 3, true)),
        shortcut1_(ResConv(tensors(), "block1.shortcut", 3, w, 1, false)),
        block2_(tensors(), "block2", w),
        shortcut2_(ResConv(tensors(), "block2.shortcut", w, w, 1, false)),
        block3_(tensors(), "block3", w),
        block4_(tensors(), "block4", w),
        linear_(tensors(), "linear", w, 1, Glorot(w, 1, 1), Zero()) {}

  at::Tensor Forward(const at::Tensor& in, const at::Tensor&,
                     const Normalization&) const override {
    const at::Tensor x = ForConvolutions(in);
    at::Tensor h = MeanPool(conv2_(Relu(conv1_(x)))) + shortcut1_(MeanPool(x));
    // Pooling the shortcut before its 1x1 convolution gives the same as after.
    h = MeanPool(block2_(h)) + shortcut2_(MeanPool(h));
    h = h + block3_(h);
    h = h + block4_(h);
    // The mean over the picture, as published; it also keeps the last layer
    // small.
    return linear_(Relu(h).mean({2, 3})).view({-1});
  }

 private:
  const Conv conv1_, conv2_, shortcut1_;
  const ResBlock block2_;
  const Conv shortcut2_;
  const ResBlock block3_, block4_;
  const Linear linear_;
};

// Radford et al. 2016: every weight N(0, 0.02), no biases beside BatchNorm.
constexpr ConvOptions kDouble = {
    .kernel = 4, .stride = 2, .padding = 1, .transposed = true, .bias = false};
constexpr ConvOptions kHalve = {.kernel = 4, .stride = 2, .bias = false};

class DcganGenerator : public Network {
 public:
  DcganGenerator(int64_t w, int64_t latent)
      : Network(Player::kGenerator),
        latent_(latent),
        conv1_(tensors(), "conv1", latent, 4 * w,
               {.kernel = 4, .padding = 0, .transposed = true, .bias = false},
               Normal(0.02), Zero()),
        norm1_(tensors(), "norm1", 4 * w, Normal(0.02, 1)),
        conv2_(tensors(), "conv2", 4 * w, 2 * w, kDouble, Normal(0.02), Zero()),
        norm2_(tensors(), "norm2", 2 * w, Normal(0.02, 1)),
        conv3_(tensors(), "conv3", 2 * w, w, kDouble, Normal(0.02), Zero()),
        norm3_(tensors(), "norm3", w, Normal(0.02, 1)),
        conv4_(tensors(), "conv4", w, 3, kDouble, Normal(0.02), Zero()) {}

  at::Tensor Forward(const at::Tensor& z, const at::Tensor&,
                     const Normalization& n) const override {
    // Latents are pictures of one pixel, which the first convolution makes four
    // pixels wide.
    at::Tensor h = AsImages(z, latent_, 1);
    h = at::relu(norm1_(conv1_(h), n));
    h = at::relu(norm2_(conv2_(h), n));
    h = at::relu(norm3_(conv3_(h), n));
    return at::tanh(conv4_(h));
  }
  bool has_batch_norm() const override { return true; }

 private:
  const int64_t latent_;
  const Conv conv1_;
  const BatchNorm norm1_;
  const Conv conv2_;
  const BatchNorm norm2_;
  const Conv conv3_;
  const BatchNorm norm3_;
  const Conv conv4_;
};

class DcganDiscriminator : public Network {
 public:
  DcganDiscriminator(int64_t w, bool batch_norm)
      : Network(Player::kDiscriminator),
        conv1_(tensors(), "conv1", 3, w, kHalve, Normal(0.02), Zero()),
        conv2_(tensors(), "conv2", w, 2 * w, kHalve, Normal(0.02), Zero()),
        conv3_(tensors(), "conv3", 2 * w, 4 * w, kHalve, Normal(0.02), Zero()),
        conv4_(tensors(), "conv4", 4 * w, 1,
               {.kernel = 4, .padding = 0, .bias = false}, Normal(0.02),
               Zero()) {
    if (!batch_norm) return;
    norm2_.emplace(tensors(), "norm2", 2 * w, Normal(0.02, 1), false);
    norm3_.emplace(tensors(), "norm3", 4 * w, Normal(0.02, 1), false);
  }

  at::Tensor Forward(const at::Tensor& x, const at::Tensor&,
                     const Normalization& n) const override {
    at::Tensor h = conv2_(LeakyRelu(conv1_(ForConvolutions(x))));
    if (norm2_) h = (*norm2_)(h, n);
    h = conv3_(LeakyRelu(h));
    if (norm3_) h = (*norm3_)(h, n);
    return conv4_(LeakyRelu(h)).flatten();
  }
  bool has_batch_norm() const override { return norm2_.has_value(); }

 private:
  const Conv conv1_, conv2_, conv3_, conv4_;
  std::optional<BatchNorm> norm2_, norm3_;
};

class Mlp : public Network {
 public:
  Mlp(Player player, int64_t in, int64_t width, int64_t out)
      : Network(player),
        scores_(player == Player::kDiscriminator),
        linear1_(tensors(), "linear1", in, width),
        linear2_(tensors(), "linear2", width, width),
        linear3_(tensors(), "linear3", width, width),
        linear4_(tensors(), "linear4", width, out) {}

  at::Tensor Forward(const at::Tensor& x, const at::Tensor&,
                     const Normalization&) const override {
    // Leaky, so that a unit that is negative for all inputs still has a
    // gradient.
    at::Tensor h = LeakyRelu(linear1_(x));
    h = LeakyRelu(linear2_(h));
    h = linear4_(LeakyRelu(linear3_(h)));
    return scores_ ? h.flatten() : h;
  }

 private:
  const bool scores_;
  const Linear linear1_, linear2_, linear3_, linear4_;
};

}  // namespace

std::vector<int64_t> ExampleShape(const NetworkSpec& spec) {
  if (spec.model == "mlp") return {2};
  return {3, spec.resolution, spec.resolution};
}

absl::StatusOr<std::unique_ptr<Network>> Network::Create(
    Player player, const NetworkSpec& spec) {
  GOSSAMER_RETURN_IF_ERROR(
      ProblemsOfNetwork(spec.model, spec.width, spec.latent, spec.resolution)
          .ToStatus());
  const int64_t w = spec.width, latent = spec.latent;
  const bool generator = player == Player::kGenerator;
  if (spec.model == "up") {
    if (generator) return std::make_unique<UpGenerator>(w, latent);
    return std::make_unique<UpDiscriminator>(w);
  }
  if (spec.model == "wgan-gp-resnet") {
    if (generator) return std::make_unique<ResNetGenerator>(w, latent);
    return std::make_unique<ResNetDiscriminator>(w);
  }
  if (spec.model == "dcgan") {
    if (generator) return std::make_unique<DcganGenerator>(w, latent);
    return std::make_unique<DcganDiscriminator>(w,
                                                spec.discriminator_batch_norm);
  }
  if (spec.model == "sagan") {
    if (spec.classes < 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "model sagan for ", spec.classes, " classes; it needs one or more"));
    }
    const SaganShape shape = {.width = w,
                              .latent = latent,
                              .resolution = spec.resolution,
                              .classes = spec.classes};
    return generator ? MakeSaganGenerator(shape)
                     : MakeSaganDiscriminator(shape);
  }
  constexpr int64_t kPlane = 2;  // mlp, the last of ModelNames
  if (generator) return std::make_unique<Mlp>(player, latent, w, kPlane);
  return std::make_unique<Mlp>(player, kPlane, w, 1);
}

}  // namespace gossamer
