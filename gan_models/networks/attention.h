// Self-attention over the pixels of feature maps (Zhang et al., SAGAN, ICML
// 2019), with keys and values at a quarter of the pixels as in the code
// published with it.
//
// This header knows no network and no loss.  at::Tensor is only named here.

#ifndef GOSSAMER_GAN_MODELS_NETWORKS_ATTENTION_H_
#define GOSSAMER_GAN_MODELS_NETWORKS_ATTENTION_H_

#include <cstdint>
#include <string>

#include "gan_models/networks/layers.h"
#include "gan_models/networks/spectral_norm.h"
#include "gan_models/networks/tensor_table.h"

namespace gossamer {

// Each query's mean of the values, weighted by the softmax over the keys of
// query·key, not scaled: queries [N, P, d], keys [N, Q, d] and values [N, Q, e]
// to [N, P, e].
at::Tensor Attend(const at::Tensor& queries, const at::Tensor& keys,
                  const at::Tensor& values);

// x + ratio·conv(attention over x), the ratio learnt from 0.  Queries and keys
// have an eighth of the channels, values a half; the largest of 2x2 pixels
// stands for each four keys and values.  Channels are a multiple of 8, pictures
// of even size.
class SelfAttention {
 public:
  SelfAttention(TensorTable& table, const std::string& scope, int64_t channels);
  at::Tensor operator()(const at::Tensor& x, const Normalization& n) const;

 private:
  const TensorTable& table_;
  const SpectralConv theta_, phi_, g_;
  const int ratio_;
  const SpectralConv out_;
};

}  // namespace gossamer

#endif  // GOSSAMER_GAN_MODELS_NETWORKS_ATTENTION_H_
