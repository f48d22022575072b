// The loss of each player, as functions of the discriminator's scores.
//
// This header knows nothing of networks.  at::Tensor is only named here.

#ifndef GOSSAMER_GAN_MODELS_LOSSES_H_
#define GOSSAMER_GAN_MODELS_LOSSES_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"

namespace at {
class Tensor;
}

namespace gossamer {

enum class Loss {
  kWassersteinGp,  // Gulrajani et al., NeurIPS 2017
  kHinge,          // Lim and Ye 2017; Miyato et al., ICLR 2018
  kNonSaturating,  // Goodfellow et al., NeurIPS 2014
};
// kInvalidArgument, naming the known ones.
absl::StatusOr<Loss> ParseLoss(const std::string& name);

// Scalars, means over the scores [N] of real and generated examples; without
// the gradient penalty.
at::Tensor DiscriminatorLoss(Loss loss, const at::Tensor& real,
                             const at::Tensor& fake);
at::Tensor GeneratorLoss(Loss loss, const at::Tensor& fake);

// mean_n (|grad D(x_n)|_2 - 1)^2 at x = real + alpha (fake - real), the norm
// over all of an example's dimensions; alpha [N] in [0, 1].  Differentiable
// with respect to the parameters of `discriminator`; real and fake are
// constants.
at::Tensor GradientPenalty(
    const std::function<at::Tensor(const at::Tensor&)>& discriminator,
    const at::Tensor& real, const at::Tensor& fake, const at::Tensor& alpha);

}  // namespace gossamer

#endif  // GOSSAMER_GAN_MODELS_LOSSES_H_
