#include "gan_models/losses.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/softplus.h>
#include <torch/csrc/autograd/autograd.h>

#include <numeric>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace gossamer {

absl::StatusOr<Loss> ParseLoss(const std::string& name) {
  if (name == "wgan-gp") return Loss::kWassersteinGp;
  if (name == "hinge") return Loss::kHinge;
  if (name == "non-saturating") return Loss::kNonSaturating;
  return absl::InvalidArgumentError(
      absl::StrCat("game.gan.loss \"", name,
                   "\" is not known; known: wgan-gp, hinge, non-saturating"));
}

at::Tensor DiscriminatorLoss(Loss loss, const at::Tensor& real,
                             const at::Tensor& fake) {
  switch (loss) {
    case Loss::kWassersteinGp:
      return fake.mean() - real.mean();
    case Loss::kHinge:
      return at::relu(1 - real).mean() + at::relu(1 + fake).mean();
    case Loss::kNonSaturating:
      return at::softplus(-real).mean() + at::softplus(fake).mean();
  }
  return {};
}

at::Tensor GeneratorLoss(Loss loss, const at::Tensor& fake) {
  // Minus the mean score for both of the others: the hinge has no generator
  // loss of its own (Miyato et al., ICLR 2018).
  return loss == Loss::kNonSaturating ? at::softplus(-fake).mean()
                                      : -fake.mean();
}

at::Tensor GradientPenalty(
    const std::function<at::Tensor(const at::Tensor&)>& discriminator,
    const at::Tensor& real, const at::Tensor& fake, const at::Tensor& alpha) {
  // One weight for all values of an example, whatever its shape.
  std::vector<int64_t> one_per_example(real.dim(), 1);
  one_per_example[0] = real.size(0);
  const at::Tensor constant = fake.detach();
  const at::Tensor x = real + alpha.view(one_per_example) * (constant - real);
  x.requires_grad_(true);
  // The sum over examples has each example's own gradient, as a score depends
  // on one example.  The graph is created because the penalty is derived once
  // more, by the parameters.
  const at::Tensor gradient =
      torch::autograd::grad({discriminator(x).sum()}, {x}, {},
                            /*retain_graph=*/true, /*create_graph=*/true)[0];
  // The root has no derivative at 0, where a dead discriminator starts.
  constexpr double kTiny = 1e-12;
  // Summed in place: a flattened copy would lose the images' memory order, and
  // with it the fast convolutions of the second derivative.
  std::vector<int64_t> within(gradient.dim() - 1);
  std::iota(within.begin(), within.end(), 1);
  const at::Tensor norm = (gradient.square().sum(within) + kTiny).sqrt();
  return (norm - 1).square().mean();
}

}  // namespace gossamer
