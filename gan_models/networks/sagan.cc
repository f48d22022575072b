#include "gan_models/networks/sagan.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/tanh.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gan_models/networks/attention.h"
#include "gan_models/networks/layers.h"
#include "gan_models/networks/spectral_norm.h"
#include "gan_models/networks/twice_differentiable.h"

namespace gossamer {
namespace {

constexpr int64_t kFirst = 4;  // pixels of the smallest features

// The side of the features that attend.
int64_t AttentionSide(int64_t resolution) {
  return std::min<int64_t>(32, resolution / 2);
}

// Channels at the output of the generator's block with pictures of `side`
// pixels: 16 w at 8x8, halved with each doubling.
int64_t GeneratorChannels(int64_t width, int64_t side) {
  return 128 * width / side;
}

// 16 w at 4x4.
int64_t DiscriminatorChannels(int64_t width, int64_t side) {
  return 64 * width / side;
}

struct BlockUp {
  BlockUp(TensorTable& t, const std::string& scope, int64_t in, int64_t out,
          int64_t classes)
      : norm0(t, scope + ".cbn_0", in, classes),
        conv1(t, scope + ".snconv1", in, out, 3),
        norm1(t, scope + ".cbn_1", out, classes),
        conv2(t, scope + ".snconv2", out, out, 3),
        conv3(t, scope + ".snconv3", in, out, 1) {}

  // The 1x1 convolution of the shortcut commutes with nearest upsampling; done
  // first it costs a quarter.
  at::Tensor operator()(const at::Tensor& x, const at::Tensor& labels,
                        const Normalization& n) const {
    at::Tensor h = conv1(Upsample(at::relu(norm0(x, labels, n))), n);
    h = conv2(at::relu(norm1(h, labels, n)), n);
    return h + Upsample(conv3(x, n));
  }

  ConditionalBatchNorm norm0;
  SpectralConv conv1;
  ConditionalBatchNorm norm1;
  SpectralConv conv2, conv3;
};

class SaganGenerator : public Network {
 public:
  explicit SaganGenerator(const SaganShape& s)
      : Network(Player::kGenerator),
        first_(16 * s.width),
        linear_(tensors(), "g_snh0", s.latent, kFirst * kFirst * first_) {
    int64_t in = first_, out = 0;
    for (int64_t side = 2 * kFirst; side <= s.resolution; side *= 2, in = out) {
      out = GeneratorChannels(s.width, side);
      blocks_.emplace_back(tensors(),
                           absl::StrCat("g_block", blocks_.size() + 1), in, out,
                           s.classes);
      if (side == AttentionSide(s.resolution)) {
        attention_.emplace(tensors(), "g_non_local", out);
        attends_after_ = blocks_.size();
      }
    }
    norm_.emplace(tensors(), "g_bn", out, One(), /*running=*/true,
                  BatchNorm::Names{"gamma", "beta"});
    conv_.emplace(tensors(), "g_snconv_last", out, 3, 3);
  }

  at::Tensor Forward(const at::Tensor& z, const at::Tensor& labels,
                     const Normalization& n) const override {
    at::Tensor h = AsImages(linear_(z, n), first_, kFirst);
    for (size_t i = 0; i < blocks_.size(); ++i) {
      h = blocks_[i](h, labels, n);
      if (i + 1 == attends_after_) h = (*attention_)(h, n);
    }
    return at::tanh((*conv_)(at::relu((*norm_)(h, n)), n));
  }
  bool has_batch_norm() const override { return true; }
  bool has_spectral_norm() const override { return true; }
  bool conditional() const override { return true; }

 private:
  const int64_t first_;
  const SpectralLinear linear_;
  std::vector<BlockUp> blocks_;
  std::optional<SelfAttention> attention_;
  size_t attends_after_ = 0;
  std::optional<BatchNorm> norm_;
  std::optional<SpectralConv> conv_;
};

struct BlockDown {
  // Without `halves` the pictures keep their size and the shortcut is the
  // identity.  The first block has pictures as its input, so no activation
  // comes before its convolutions.
  BlockDown(TensorTable& t, const std::string& scope, int64_t in, int64_t out,
            bool halves, bool first)
      : first(first),
        conv1(t, scope + ".sn_conv1", in, out, 3),
        conv2(t, scope + ".sn_conv2", out, out, 3) {
    if (halves) conv3.emplace(t, scope + ".sn_conv3", in, out, 1);
  }

  // Pooling the shortcut before its 1x1 convolution gives the same as after.
  at::Tensor operator()(const at::Tensor& x, const Normalization& n) const {
    const at::Tensor h = conv2(Relu(conv1(first ? x : Relu(x), n)), n);
    return conv3 ? MeanPool(h) + (*conv3)(MeanPool(x), n) : h + x;
  }

  bool first;
  SpectralConv conv1, conv2;
  std::optional<SpectralConv> conv3;
};

class SaganDiscriminator : public Network {
 public:
  explicit SaganDiscriminator(const SaganShape& s)
      : Network(Player::kDiscriminator) {
    int64_t in = 3, out = 0;
    for (int64_t side = s.resolution / 2; side >= kFirst; side /= 2, in = out) {
      out = DiscriminatorChannels(s.width, side);
      const bool first = blocks_.empty();
      blocks_.emplace_back(tensors(),
                           absl::StrCat(first ? "d_optimized_block" : "d_block",
                                        blocks_.size() + 1),
                           in, out, /*halves=*/true, first);
      if (side == AttentionSide(s.resolution)) {
        attention_.emplace(tensors(), "d_non_local", out);
        attends_after_ = blocks_.size();
      }
    }
    blocks_.emplace_back(tensors(), absl::StrCat("d_block", blocks_.size() + 1),
                         out, out,
                         /*halves=*/false, /*first=*/false);
    linear_.emplace(tensors(), "d_sn_linear", out, 1);
    embedding_.emplace(tensors(), "d_embedding", "embedding_map",
                       std::vector<int64_t>{s.classes, out},
                       Glorot(s.classes, out));
  }

  at::Tensor Forward(const at::Tensor& x, const at::Tensor& labels,
                     const Normalization& n) const override {
    at::Tensor h = ForConvolutions(x);
    for (size_t i = 0; i < blocks_.size(); ++i) {
      h = blocks_[i](h, n);
      if (i + 1 == attends_after_) h = (*attention_)(h, n);
    }
    // The sum over the picture, as published.
    h = Relu(h).sum({2, 3});
    const at::Tensor of_label = (*embedding_)(n).index_select(0, labels);
    return (*linear_)(h, n).view({-1}) + (h * of_label).sum(1);
  }
  bool has_spectral_norm() const override { return true; }
  bool conditional() const override { return true; }

 private:
  std::vector<BlockDown> blocks_;
  std::optional<SelfAttention> attention_;
  size_t attends_after_ = 0;
  std::optional<SpectralLinear> linear_;
  std::optional<SpectralWeight> embedding_;
};

}  // namespace

std::unique_ptr<Network> MakeSaganGenerator(const SaganShape& shape) {
  return std::make_unique<SaganGenerator>(shape);
}

std::unique_ptr<Network> MakeSaganDiscriminator(const SaganShape& shape) {
  return std::make_unique<SaganDiscriminator>(shape);
}

}  // namespace gossamer
