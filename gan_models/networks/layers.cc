#include "gan_models/networks/layers.h"

#include <ATen/TensorOperators.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/addcmul.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/conv_transpose2d.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/upsample_nearest2d.h>
#include <ATen/ops/where.h>

#include <array>
#include <cmath>
#include <optional>

#include "gan_models/networks/twice_differentiable.h"

namespace gossamer {

Initial Zero() { return {}; }
Initial One() { return {Initial::Kind::kConstant, 1, 0}; }
Initial Normal(double deviation, double center) {
  return {Initial::Kind::kNormal, center, deviation};
}
Initial LeCun(int64_t fan_in) {
  return {Initial::Kind::kUniform, 0,
          1 / std::sqrt(static_cast<double>(fan_in))};
}
Initial Glorot(int64_t fan_in, int64_t fan_out, double gain) {
  return {Initial::Kind::kUniform, 0,
          gain * std::sqrt(6.0 / static_cast<double>(fan_in + fan_out))};
}

namespace {

// `mean` and `variance` are statistics of the table, or -1 without running
// ones.
at::Tensor Normalized(const at::Tensor& x,
                      const std::optional<at::Tensor>& scale,
                      const std::optional<at::Tensor>& shift,
                      const TensorTable& table, int mean, int variance,
                      const Normalization& n) {
  const bool from_batch = mean < 0 || n.source == Normalization::Source::kBatch;
  std::optional<at::Tensor> running_mean, running_variance;
  // Without running statistics, or with a momentum of 0, libtorch is given
  // none, so it writes to none.
  if (mean >= 0 && (!from_batch || n.momentum > 0)) {
    running_mean = table.statistic(mean);
    running_variance = table.statistic(variance);
  }
  return at::batch_norm(x, scale, shift, running_mean, running_variance,
                        from_batch, n.momentum,
                        /*eps=*/1e-5, /*cudnn_enabled=*/false);
}

}  // namespace

Linear::Linear(TensorTable& table, const std::string& name, int64_t in,
               int64_t out)
    : Linear(table, name, in, out, LeCun(in), LeCun(in)) {}

Linear::Linear(TensorTable& table, const std::string& name, int64_t in,
               int64_t out, const Initial& weight, const Initial& bias)
    : table_(table),
      weight_(table.AddParameter(name + ".weight", {out, in}, weight)),
      bias_(table.AddParameter(name + ".bias", {out}, bias)) {}

at::Tensor Linear::operator()(const at::Tensor& x) const {
  return at::linear(x, table_.parameter(weight_), table_.parameter(bias_));
}

Conv::Conv(TensorTable& table, const std::string& name, int64_t in, int64_t out,
           const ConvOptions& options)
    : Conv(table, name, in, out, options,
           LeCun(in * options.kernel * options.kernel),
           LeCun(in * options.kernel * options.kernel)) {}

Conv::Conv(TensorTable& table, const std::string& name, int64_t in, int64_t out,
           const ConvOptions& options, const Initial& weight,
           const Initial& bias)
    : table_(table), options_(options) {
  // A transposed convolution has its weight the other way round, as libtorch
  // takes it.
  const int64_t k = options.kernel;
  weight_ = table.AddParameter(name + ".weight",
                               options.transposed
                                   ? std::vector<int64_t>{in, out, k, k}
                                   : std::vector<int64_t>{out, in, k, k},
                               weight);
  if (options.bias) bias_ = table.AddParameter(name + ".bias", {out}, bias);
}

at::Tensor Conv::operator()(const at::Tensor& x) const {
  const at::Tensor& weight = table_.parameter(weight_);
  std::optional<at::Tensor> bias;
  if (bias_ >= 0) bias = table_.parameter(bias_);
  // Only discriminators are derived twice, and they have no transposed
  // convolutions.
  if (!options_.transposed) {
    return Convolve(x, weight, bias, options_.stride, options_.padding);
  }
  const std::array stride = {options_.stride, options_.stride};
  const std::array padding = {options_.padding, options_.padding};
  return at::conv_transpose2d(x, weight, bias, stride, padding);
}

BatchNorm::BatchNorm(TensorTable& table, const std::string& name,
                     int64_t channels, const Initial& scale, bool running)
    : BatchNorm(table, name, channels, scale, running, Names()) {}

BatchNorm::BatchNorm(TensorTable& table, const std::string& name,
                     int64_t channels, const Initial& scale, bool running,
                     const Names& names)
    : table_(table),
      scale_(table.AddParameter(name + "." + names.scale, {channels}, scale)),
      shift_(table.AddParameter(name + "." + names.shift, {channels}, Zero())) {
  if (!running) return;
  mean_ = table.AddStatistic(name + ".running_mean", channels, Zero());
  variance_ = table.AddStatistic(name + ".running_var", channels, One());
}

at::Tensor BatchNorm::operator()(const at::Tensor& x,
                                 const Normalization& n) const {
  return Normalized(x, table_.parameter(scale_), table_.parameter(shift_),
                    table_, mean_, variance_, n);
}

ConditionalBatchNorm::ConditionalBatchNorm(TensorTable& table,
                                           const std::string& name,
                                           int64_t channels, int64_t classes)
    : table_(table),
      scale_(table.AddParameter(name + ".gamma", {classes, channels}, One())),
      shift_(table.AddParameter(name + ".beta", {classes, channels}, Zero())),
      mean_(table.AddStatistic(name + ".running_mean", channels, Zero())),
      variance_(table.AddStatistic(name + ".running_var", channels, One())) {}

at::Tensor ConditionalBatchNorm::operator()(const at::Tensor& x,
                                            const at::Tensor& labels,
                                            const Normalization& n) const {
  const auto of_label = [&](int index) {
    return table_.parameter(index).index_select(0, labels).view(
        {x.size(0), x.size(1), 1, 1});
  };
  return at::addcmul(of_label(shift_),
                     Normalized(x, {}, {}, table_, mean_, variance_, n),
                     of_label(scale_));
}

at::Tensor Upsample(const at::Tensor& x) {
  const std::array size = {2 * x.size(2), 2 * x.size(3)};
  return at::upsample_nearest2d(x, at::IntArrayRef(size));
}

at::Tensor LeakyRelu(const at::Tensor& x) {
  // A product with a constant mask: its second derivative is nothing, where
  // at::leaky_relu's is zeros that travel back through the whole network.
  return x * at::where(x.detach() > 0, 1.0f, 0.2f).to(x.scalar_type());
}

at::Tensor AsImages(const at::Tensor& x, int64_t channels, int64_t size) {
  return ForConvolutions(x.view({-1, channels, size, size}));
}

at::Tensor ForConvolutions(const at::Tensor& x) {
  // A step of WGAN-GP in float32 takes 21.9 ms by channels and 23.7 by pixels
  // on an H200, and in bf16, which autocast rounds to, 6.3 and 5.6.
  const bool by_channels =
      x.is_cuda() && !at::autocast::is_autocast_enabled(at::kCUDA);
  return x.contiguous(by_channels ? at::MemoryFormat::Contiguous
                                  : at::MemoryFormat::ChannelsLast);
}

}  // namespace gossamer
