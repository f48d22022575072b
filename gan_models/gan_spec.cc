#include "gan_models/gan_spec.h"

#include <algorithm>
#include <array>
#include <iterator>

namespace gossamer {
namespace {

struct DataSet {
  std::string_view name;
  DataSource source;
  int classes;  // 0: its file says
};
constexpr DataSet kData[] = {
    {"emoji-32", DataSource::kFolder, 10},
    {"emoji-64", DataSource::kFolder, 10},
    {"emoji-128", DataSource::kFolder, 10},
    {"cifar-10", DataSource::kFolder, 10},
    {"cifar-100", DataSource::kFolder, 100},
    {"image-folder", DataSource::kFile, 0},
    {"gaussian-mixture", DataSource::kNone, 8},
};
constexpr std::string_view kModels[] = {"up", "wgan-gp-resnet", "dcgan",
                                        "sagan", "mlp"};
constexpr std::string_view kLosses[] = {"wgan-gp", "hinge", "non-saturating"};
constexpr std::string_view kPrecisions[] = {"float32", "bf16"};

// A name that is not there has no source and no classes.
DataSet Find(std::string_view name) {
  const auto* const found = std::ranges::find(kData, name, &DataSet::name);
  return found == std::end(kData) ? DataSet{} : *found;
}

}  // namespace

std::span<const std::string_view> DataNames() {
  static constexpr auto kNames = [] {
    std::array<std::string_view, std::size(kData)> names;
    std::ranges::transform(kData, names.begin(), &DataSet::name);
    return names;
  }();
  return kNames;
}
std::span<const std::string_view> ModelNames() { return kModels; }
std::span<const std::string_view> LossNames() { return kLosses; }
std::span<const std::string_view> PrecisionNames() { return kPrecisions; }

bool IsConditional(std::string_view model) { return model == "sagan"; }

int ClassCount(const DataSpec& spec) {
  if (!spec.classes.empty()) return static_cast<int>(spec.classes.size());
  return Find(spec.name).classes;
}

DataSource SourceOf(std::string_view data) { return Find(data).source; }

Problems ProblemsOf(const DataSpec& spec) {
  Problems problems;
  problems.OneOf("name", spec.name, DataNames());
  problems.NotNegative("dirichlet_alpha", spec.dirichlet_alpha);
  return problems;
}

Problems ProblemsOfNetwork(std::string_view model, int width, int latent,
                           int resolution) {
  Problems problems;
  problems.OneOf("model", model, ModelNames());
  if (width < 2 || width > 4096 || width % 2 != 0) {
    problems.Refuse("width", "is ", width,
                    "; it must be even and lie between 2 and 4096");
  }
  problems.Range("latent", latent, 1, 4096);
  if (model != "sagan") {
    if (resolution != 32) {
      problems.Refuse("resolution", "is ", resolution, "; model ", model,
                      " has 32 alone, and sagan 32, 64 and 128");
    }
    return problems;
  }
  if (resolution != 32 && resolution != 64 && resolution != 128) {
    problems.Refuse("resolution", "is ", resolution,
                    "; model sagan has 32, 64 and 128");
  }
  if (width % 4 != 0) {
    problems.Refuse("width", "is ", width,
                    "; attention needs a multiple of 4 in model sagan");
  }
  return problems;
}

Problems ProblemsOf(const GanSpec& spec) {
  Problems problems =
      ProblemsOfNetwork(spec.model, spec.width, spec.latent, spec.resolution);
  problems.OneOf("loss", spec.loss, LossNames());
  problems.OneOf("precision", spec.precision, PrecisionNames());
  // Statistics of a batch, and the penalty's interpolation, need two.
  problems.Range("batch", spec.batch, 2, 4096);
  problems.NotNegative("gradient_penalty", spec.gradient_penalty);
  problems.Range("evaluation_samples", spec.evaluation_samples, 2, 100000);
  problems.Add("data.", ProblemsOf(spec.data));
  return problems;
}

}  // namespace gossamer
