#include "gan_models/networks/spectral_norm.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/dot.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mv.h>
#include <c10/core/GradMode.h>

#include <optional>
#include <utility>

#include "gan_models/networks/twice_differentiable.h"
#include "gan_models/precision.h"

namespace gossamer {
namespace {

at::Tensor Unit(const at::Tensor& x) {
  constexpr double kTiny = 1e-12;  // a weight of zeros has no direction
  return x / (x.norm() + kTiny);
}

// Every weight's first values, as published: Glorot and Bengio, AISTATS 2010.
Initial GlorotConv(int64_t in, int64_t out, int64_t kernel) {
  return Glorot(in * kernel * kernel, out * kernel * kernel);
}

}  // namespace

at::Tensor SpectrallyNormalized(const at::Tensor& weight, const at::Tensor& u,
                                bool keep) {
  // Eight bits of a singular value would be a noise on all weights.
  const Float32Scope float32(weight.is_cuda());
  const at::Tensor matrix = weight.view({weight.size(0), -1});
  at::Tensor v, next;
  {
    const c10::AutoGradMode record(false);
    v = Unit(at::mv(matrix.t(), u));
    next = Unit(at::mv(matrix, v));
    if (keep) u.copy_(next);
  }
  return weight / at::dot(next, at::mv(matrix, v));
}

SpectralWeight::SpectralWeight(TensorTable& table, const std::string& scope,
                               const std::string& name,
                               std::vector<int64_t> shape,
                               const Initial& initial)
    : table_(table),
      // Drawn at random: the iteration would never leave a vector that is
      // orthogonal to the one it looks for.
      u_(table.AddStatistic(scope + ".u", shape[0], Normal(1))) {
  weight_ = table.AddParameter(scope + "." + name, std::move(shape), initial);
}

at::Tensor SpectralWeight::operator()(const Normalization& n) const {
  return SpectrallyNormalized(table_.parameter(weight_), table_.statistic(u_),
                              n.keep_power_iteration);
}

SpectralLinear::SpectralLinear(TensorTable& table, const std::string& scope,
                               int64_t in, int64_t out)
    : table_(table),
      weight_(table, scope, "Matrix", {out, in}, Glorot(in, out)),
      bias_(table.AddParameter(scope + ".bias", {out}, Zero())) {}

at::Tensor SpectralLinear::operator()(const at::Tensor& x,
                                      const Normalization& n) const {
  return at::linear(x, weight_(n), table_.parameter(bias_));
}

SpectralConv::SpectralConv(TensorTable& table, const std::string& scope,
                           int64_t in, int64_t out, int64_t kernel, bool bias)
    : table_(table),
      padding_(kernel / 2),
      weight_(table, scope, "w", {out, in, kernel, kernel},
              GlorotConv(in, out, kernel)) {
  if (bias) bias_ = table.AddParameter(scope + ".biases", {out}, Zero());
}

at::Tensor SpectralConv::operator()(const at::Tensor& x,
                                    const Normalization& n) const {
  std::optional<at::Tensor> bias;
  if (bias_ >= 0) bias = table_.parameter(bias_);
  return Convolve(x, weight_(n), bias, /*stride=*/1, padding_);
}

}  // namespace gossamer
