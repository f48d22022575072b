#include "algorithms/compress/sparse_gradients.h"

#include <algorithm>

namespace gossamer {

std::vector<Option> FieldsOf(SparseOptions& o) {
  return {WholeOption("rate", &o.rate, 2,
                      static_cast<int64_t>(ChunkChoice::kMaxRate)),
          RealOption("beta", &o.beta, 1e-6, 1), FlagOption("flat", &o.flat)};
}

absl::Status CheckFits(std::string_view name, const SparseOptions& options,
                       const ParameterLayout& layout) {
  return CheckPartFits(name, "rate", options.rate,
                       LargestChosenFrom(layout, options.flat));
}

void SparseGradients::Gather(const ChunkChoice::Block& block,
                             std::span<float> out) {
  for (size_t i = block.first; i < block.first + block.count; ++i) {
    const float m = residual_[indices_[i]];
    kept_[i] = (1 - beta_) * m;
    out[i] =
        std::clamp(m + gradient_[indices_[i]], -kMaxMagnitude, kMaxMagnitude);
  }
}

void SparseGradients::GatherSmall(std::span<float> out) const {
  size_t at = indices_.size();
  for (const Extent& e : choice_->small()) {
    for (size_t i = 0; i < e.size; ++i) {
      out[at++] =
          std::clamp(gradient_[e.offset + i], -kMaxMagnitude, kMaxMagnitude);
    }
  }
}

void SparseGradients::UpdateResidual(const ChunkChoice::Block& block) {
  const auto& [offset, size] = block.extent;
  kernels_.axpy(beta_, gradient_.subspan(offset, size),
                std::span(residual_).subspan(offset, size));
  for (size_t i = block.first; i < block.first + block.count; ++i) {
    residual_[indices_[i]] = kept_[i];
  }
}

}  // namespace gossamer
