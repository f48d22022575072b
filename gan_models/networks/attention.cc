#include "gan_models/networks/attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/softmax.h>

namespace gossamer {
namespace {

// [N, C, H, W] to [N, H W, C]; a view in the memory order of convolutions.
at::Tensor Pixels(const at::Tensor& x) {
  return x.permute({0, 2, 3, 1}).reshape({x.size(0), -1, x.size(1)});
}

at::Tensor LargestOfFour(const at::Tensor& x) {
  return at::max_pool2d(x, {2, 2});
}

}  // namespace

at::Tensor Attend(const at::Tensor& queries, const at::Tensor& keys,
                  const at::Tensor& values) {
  const at::Tensor weights =
      at::softmax(at::bmm(queries, keys.transpose(1, 2)), /*dim=*/-1);
  return at::bmm(weights, values);
}

SelfAttention::SelfAttention(TensorTable& table, const std::string& scope,
                             int64_t channels)
    : table_(table),
      theta_(table, scope + ".sn_conv_theta", channels, channels / 8, 1, false),
      phi_(table, scope + ".sn_conv_phi", channels, channels / 8, 1, false),
      g_(table, scope + ".sn_conv_g", channels, channels / 2, 1, false),
      ratio_(table.AddParameter(scope + ".sigma_ratio", {}, Zero())),
      out_(table, scope + ".sn_conv_attn", channels / 2, channels, 1, false) {}

at::Tensor SelfAttention::operator()(const at::Tensor& x,
                                     const Normalization& n) const {
  const at::Tensor seen =
      Attend(Pixels(theta_(x, n)), Pixels(LargestOfFour(phi_(x, n))),
             Pixels(LargestOfFour(g_(x, n))));
  const at::Tensor images =
      seen.view({x.size(0), x.size(2), x.size(3), x.size(1) / 2})
          .permute({0, 3, 1, 2});
  return x + table_.parameter(ratio_) * out_(images, n);
}

}  // namespace gossamer
