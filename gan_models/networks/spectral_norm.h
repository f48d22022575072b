// Spectral normalisation: weights divided by an estimate of their largest
// singular value (Miyato et al., ICLR 2018), and the layers that use them.
//
// This header knows no network and no loss.  at::Tensor is only named here.

#ifndef GOSSAMER_GAN_MODELS_NETWORKS_SPECTRAL_NORM_H_
#define GOSSAMER_GAN_MODELS_NETWORKS_SPECTRAL_NORM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "gan_models/networks/layers.h"
#include "gan_models/networks/tensor_table.h"

namespace gossamer {

// weight / sigma, where sigma = u'·W v is the largest singular value of the
// weight as a matrix W [out, rest], estimated by one step of the power
// iteration from u [out]: v = Wᵀu / |Wᵀu|, u' = W v / |W v|.  Writes u' to u if
// `keep`. The gradient takes u' and v for constants, as PyTorch does: at the
// limit of the iteration their derivatives add nothing.
at::Tensor SpectrallyNormalized(const at::Tensor& weight, const at::Tensor& u,
                                bool keep);

// A weight in the table with the vector u of its power iteration, a statistic
// with the name `scope`.u.
class SpectralWeight {
 public:
  // `name` is of the weight within `scope`; shape [out, ...].
  SpectralWeight(TensorTable& table, const std::string& scope,
                 const std::string& name, std::vector<int64_t> shape,
                 const Initial& initial);
  at::Tensor operator()(const Normalization& n) const;

 private:
  const TensorTable& table_;
  int weight_, u_;
};

// y = x·Wᵀ + bias over rows, W spectrally normalised.  Its tensors are
// `scope`.Matrix [out, in] and `scope`.bias.
class SpectralLinear {
 public:
  SpectralLinear(TensorTable& table, const std::string& scope, int64_t in,
                 int64_t out);
  at::Tensor operator()(const at::Tensor& x, const Normalization& n) const;

 private:
  const TensorTable& table_;
  const SpectralWeight weight_;
  int bias_;
};

// A convolution over images that keeps their size, its weight spectrally
// normalised; its derivative can be derived once more.  Its tensors are
// `scope`.w [out, in, kernel, kernel] and, if it has one, `scope`.biases.
class SpectralConv {
 public:
  SpectralConv(TensorTable& table, const std::string& scope, int64_t in,
               int64_t out, int64_t kernel, bool bias = true);
  at::Tensor operator()(const at::Tensor& x, const Normalization& n) const;

 private:
  const TensorTable& table_;
  const int64_t padding_;
  const SpectralWeight weight_;
  int bias_ = -1;
};

}  // namespace gossamer

#endif  // GOSSAMER_GAN_MODELS_NETWORKS_SPECTRAL_NORM_H_
