// The parts of networks: layers that keep their weights in a TensorTable.
//
// This header knows no network and no loss.  at::Tensor is only named here.

#ifndef GOSSAMER_GAN_MODELS_NETWORKS_LAYERS_H_
#define GOSSAMER_GAN_MODELS_NETWORKS_LAYERS_H_

#include <cstdint>
#include <string>

#include "gan_models/networks/tensor_table.h"

namespace gossamer {

// First values.
Initial Zero();
Initial One();
Initial Normal(double deviation, double center = 0);
// U(-1/sqrt(fan_in), 1/sqrt(fan_in)): LeCun et al., Efficient BackProp, 1998.
Initial LeCun(int64_t fan_in);
// Uniform of deviation gain * sqrt(2 / (fan_in + fan_out)): Glorot and Bengio,
// AISTATS 2010.
Initial Glorot(int64_t fan_in, int64_t fan_out, double gain = 1);

// The statistics with which a pass normalises, and whether it keeps them.
struct Normalization {
  enum class Source { kBatch, kRunning };
  Source source = Source::kBatch;  // of BatchNorm
  // Weight of a batch's statistics in the running ones; 0 leaves those alone.
  double momentum = 0;
  // Whether spectral normalisation keeps its step of the power iteration.
  bool keep_power_iteration = false;
};

// y = x·weightᵀ + bias, over rows.
class Linear {
 public:
  Linear(TensorTable& table, const std::string& name, int64_t in, int64_t out);
  Linear(TensorTable& table, const std::string& name, int64_t in, int64_t out,
         const Initial& weight, const Initial& bias);
  at::Tensor operator()(const at::Tensor& x) const;

 private:
  const TensorTable& table_;
  int weight_, bias_;
};

// The geometry of a convolution, the same in both directions of a picture.
struct ConvOptions {
  int64_t kernel = 3, stride = 1, padding = 1;
  bool transposed = false;  // the transpose of a convolution, for upsampling
  bool bias = true;
};

// A convolution or its transpose over images [N, C, H, W].  Its derivative can
// be derived once more cheaply unless it is transposed.
class Conv {
 public:
  Conv(TensorTable& table, const std::string& name, int64_t in, int64_t out,
       const ConvOptions& options);
  Conv(TensorTable& table, const std::string& name, int64_t in, int64_t out,
       const ConvOptions& options, const Initial& weight, const Initial& bias);
  at::Tensor operator()(const at::Tensor& x) const;

 private:
  const TensorTable& table_;
  const ConvOptions options_;
  int weight_, bias_ = -1;
};

// Ioffe and Szegedy, ICML 2015, epsilon 1e-5.
class BatchNorm {
 public:
  // The last parts of its tensors' names.
  struct Names {
    const char *scale = "weight", *shift = "bias";
  };
  // Without `running` there are no statistics to remember, and every batch is
  // normalised with its own: a discriminator is never used otherwise.
  BatchNorm(TensorTable& table, const std::string& name, int64_t channels,
            const Initial& scale = One(), bool running = true);
  BatchNorm(TensorTable& table, const std::string& name, int64_t channels,
            const Initial& scale, bool running, const Names& names);
  at::Tensor operator()(const at::Tensor& x, const Normalization& n) const;

 private:
  const TensorTable& table_;
  int scale_, shift_, mean_ = -1, variance_ = -1;
};

// BatchNorm whose scale and shift are those of each example's class (Dumoulin
// et al., ICLR 2017): `name`.gamma and `name`.beta [classes, channels].
class ConditionalBatchNorm {
 public:
  ConditionalBatchNorm(TensorTable& table, const std::string& name,
                       int64_t channels, int64_t classes);
  // Labels [N] are 64-bit integers below `classes`.
  at::Tensor operator()(const at::Tensor& x, const at::Tensor& labels,
                        const Normalization& n) const;

 private:
  const TensorTable& table_;
  int scale_, shift_, mean_, variance_;
};

// Images [N, C, H, W] to [N, C, 2H, 2W], every pixel four times.
at::Tensor Upsample(const at::Tensor& x);
at::Tensor LeakyRelu(const at::Tensor& x);  // slope 0.2
// [N, channels * size * size] to [N, channels, size, size].
at::Tensor AsImages(const at::Tensor& x, int64_t channels, int64_t size);
// The same images in the memory order in which the device's convolutions are
// fastest at the precision in use.
at::Tensor ForConvolutions(const at::Tensor& x);

}  // namespace gossamer

#endif  // GOSSAMER_GAN_MODELS_NETWORKS_LAYERS_H_
