#include "gan_models/gan_spec.h"

namespace gossamer {
namespace {

constexpr std::string_view kData[] = {"emoji-32", "cifar-10", "cifar-100",
                                      "gaussian-mixture"};
constexpr std::string_view kModels[] = {"up", "wgan-gp-resnet", "dcgan", "mlp"};
constexpr std::string_view kLosses[] = {"wgan-gp", "hinge", "non-saturating"};

}  // namespace

std::span<const std::string_view> DataNames() { return kData; }
std::span<const std::string_view> ModelNames() { return kModels; }
std::span<const std::string_view> LossNames() { return kLosses; }

Problems ProblemsOf(const DataSpec& spec) {
  Problems problems;
  problems.OneOf("name", spec.name, DataNames());
  problems.NotNegative("dirichlet_alpha", spec.dirichlet_alpha);
  return problems;
}

Problems ProblemsOfNetwork(std::string_view model, int width, int latent) {
  Problems problems;
  problems.OneOf("model", model, ModelNames());
  if (width < 2 || width > 4096 || width % 2 != 0) {
    problems.Refuse("width", "is ", width,
                    "; it must be even and lie between 2 and 4096");
  }
  problems.Range("latent", latent, 1, 4096);
  return problems;
}

Problems ProblemsOf(const GanSpec& spec) {
  Problems problems = ProblemsOfNetwork(spec.model, spec.width, spec.latent);
  problems.OneOf("loss", spec.loss, LossNames());
  // Statistics of a batch, and the penalty's interpolation, need two.
  problems.Range("batch", spec.batch, 2, 4096);
  problems.NotNegative("gradient_penalty", spec.gradient_penalty);
  problems.Range("evaluation_samples", spec.evaluation_samples, 2, 100000);
  problems.Add("data.", ProblemsOf(spec.data));
  return problems;
}

}  // namespace gossamer
