#include "gan_models/evaluation/features.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/upsample_bilinear2d.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/serialization/import.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "algorithms/base/rng.h"
#include "algorithms/base/status_macros.h"
#include "gan_models/compute.h"
#include "gan_models/data/cifar_files.h"

namespace gossamer {
namespace {

at::Tensor AsTensor(std::span<const float> images, int side) {
  // from_blob takes a pointer to non-const; nothing writes to the images.
  return at::from_blob(
      const_cast<float*>(images.data()),
      {static_cast<int64_t>(images.size() / ImageBytes(side)), 3, side, side});
}

// Appends the rows of [N, F].
absl::Status Append(const at::Tensor& rows, int64_t count, const char* what,
                    Features& to) {
  if (rows.dim() != 2 || rows.size(0) != count || rows.size(1) == 0 ||
      (to.dimension != 0 &&
       to.dimension != static_cast<size_t>(rows.size(1)))) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the TorchScript gives ", what, " that are not one row per image"));
  }
  const at::Tensor flat = rows.to(at::kFloat).contiguous();
  to.dimension = static_cast<size_t>(flat.size(1));
  const float* const values = flat.const_data_ptr<float>();
  to.values.insert(to.values.end(), values, values + flat.numel());
  return absl::OkStatus();
}

class RandomConvolution : public FeatureExtractor {
 public:
  RandomConvolution() {
    Draw("first", first_);
    Draw("second", second_);
  }

  absl::Status Extract(std::span<const float> images, int side,
                       Extracted& to) const override {
    return GuardTorch([&] {
      const c10::AutoGradMode record(false);
      const at::Tensor x = AsTensor(images, side);
      const at::Tensor h = Layer(Layer(x, first_, 3, 32), second_, 32, 64);
      return Append(h.mean({2, 3}), x.size(0), "features", to.features);
    });
  }

 private:
  // Deviation sqrt(2 / fan_in) keeps the scale through a ReLU (He et al. 2015).
  template <size_t N>
  static void Draw(const char* name, std::array<float, N>& weights) {
    const double fan_in = N == 3 * 32 * 16 ? 3 * 16 : 32 * 16;
    // The weights depend on no run's seed, so that scores of all runs and
    // machines are on the same features.
    RngKey(0).Fold("proxy features").Fold(name).FillGaussian(weights);
    for (float& w : weights) {
      w = static_cast<float>(w * std::sqrt(2 / fan_in));
    }
  }
  template <size_t N>
  static at::Tensor Layer(const at::Tensor& x,
                          const std::array<float, N>& weights, int64_t in,
                          int64_t out) {
    const at::Tensor w =
        at::from_blob(const_cast<float*>(weights.data()), {out, in, 4, 4});
    return at::relu(at::conv2d(x, w, {}, /*stride=*/2, /*padding=*/1));
  }

  std::array<float, 3 * 32 * 16> first_;
  std::array<float, 32 * 64 * 16> second_;
};

class TorchScript : public FeatureExtractor {
 public:
  TorchScript(torch::jit::Module module, int size)
      : module_(std::move(module)), size_(size) {}

  absl::Status Extract(std::span<const float> images, int side,
                       Extracted& to) const override {
    return GuardTorch([&] {
      const c10::AutoGradMode record(false);
      return Piece(AsTensor(images, side), to);
    });
  }

 private:
  absl::Status Piece(const at::Tensor& x, Extracted& to) const {
    // The user's network takes bytes as floats, and samples lie in [-1, 1].
    // They are rounded, as samples that are kept as pictures are: published
    // scores are of such.
    at::Tensor images = ((x + 1) * 127.5).clamp(0, 255).round();
    if (size_ > 0 && size_ != x.size(2)) {
      const std::array<int64_t, 2> size = {size_, size_};
      images = at::upsample_bilinear2d(images, size, /*align_corners=*/false);
    }
    torch::jit::Module module =
        module_;  // shares weights; forward is not const
    const c10::IValue result = module.forward({images});
    if (result.isTensor()) {
      return Append(result.toTensor(), x.size(0), "features", to.features);
    }
    if (!result.isTuple() || result.toTupleRef().elements().size() != 2 ||
        !result.toTupleRef().elements()[0].isTensor() ||
        !result.toTupleRef().elements()[1].isTensor()) {
      return absl::InvalidArgumentError(
          "the TorchScript returns neither features nor a pair (features, "
          "logits)");
    }
    const auto& pair = result.toTupleRef().elements();
    GOSSAMER_RETURN_IF_ERROR(
        Append(pair[0].toTensor(), x.size(0), "features", to.features));
    return Append(pair[1].toTensor(), x.size(0), "logits", to.logits);
  }

  const torch::jit::Module module_;
  const int size_;
};

}  // namespace

std::unique_ptr<FeatureExtractor> RandomConvolutionFeatures() {
  return std::make_unique<RandomConvolution>();
}

absl::StatusOr<std::unique_ptr<FeatureExtractor>> LoadTorchScriptFeatures(
    const std::string& path, int size) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    return absl::NotFoundError(
        absl::StrCat(path, " is missing; give a TorchScript file"));
  }
  auto loaded =
      GuardTorch([&]() -> absl::StatusOr<std::unique_ptr<FeatureExtractor>> {
        torch::jit::Module module = torch::jit::load(path);
        // Dropout and BatchNorm of the user's network must not depend on the
        // batch.
        module.eval();
        return std::make_unique<TorchScript>(std::move(module), size);
      });
  if (!loaded.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, " cannot be loaded as TorchScript: ", loaded.status().message()));
  }
  return loaded;
}

}  // namespace gossamer
