#include "gan_models/networks/dense_tensors.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"

namespace gossamer {

std::span<float> ValuesOf(const at::Tensor& t) {
  return {t.data_ptr<float>(), static_cast<size_t>(t.numel())};
}

at::Tensor Normal(RngKey key, std::vector<int64_t> shape, double deviation) {
  at::Tensor t = at::zeros(shape);
  key.FillGaussian(ValuesOf(t));
  return t.mul_(deviation);
}

at::Tensor Copied(std::span<const float> values, std::vector<int64_t> shape) {
  // from_blob takes a pointer to non-const, and only the copy is written to.
  return at::from_blob(const_cast<float*>(values.data()), shape).clone();
}

at::Tensor OneHot(std::span<const uint8_t> labels, int classes) {
  at::Tensor t = at::zeros({static_cast<int64_t>(labels.size()), classes});
  for (size_t i = 0; i < labels.size(); ++i) {
    t.data_ptr<float>()[i * static_cast<size_t>(classes) + labels[i]] = 1;
  }
  return t;
}

AdamOf::AdamOf(std::vector<at::Tensor> parameters, double rate)
    : parameters_(std::move(parameters)), rate_(rate) {
  for (const at::Tensor& p : parameters_) {
    first_.push_back(at::zeros_like(p));
    second_.push_back(at::zeros_like(p));
  }
}

AdamOf::~AdamOf() = default;

void AdamOf::Step(const std::vector<at::Tensor>& gradients) {
  constexpr double kBeta1 = 0.5, kBeta2 = 0.9, kEpsilon = 1e-8;
  // The corrections are in double, as in algorithms/optim/adam.cc.
  const auto steps = static_cast<double>(++steps_);
  const double one = 1 - std::pow(kBeta1, steps);
  const double two = 1 - std::pow(kBeta2, steps);
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const at::Tensor& g = gradients[i];
    first_[i].mul_(kBeta1).add_(g, 1 - kBeta1);
    second_[i].mul_(kBeta2).addcmul_(g, g, 1 - kBeta2);
    const at::Tensor scale = (second_[i] / two).sqrt_().add_(kEpsilon);
    parameters_[i].addcdiv_(first_[i], scale, -rate_ / one);
  }
}

std::vector<at::Tensor> AdamOf::All() const {
  std::vector<at::Tensor> all = parameters_;
  all.insert(all.end(), first_.begin(), first_.end());
  all.insert(all.end(), second_.begin(), second_.end());
  return all;
}

void AdamOf::VisitState(StateVisitor& visitor) {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    visitor.Floats(absl::StrCat("first-moment-", i), ValuesOf(first_[i]));
    visitor.Floats(absl::StrCat("second-moment-", i), ValuesOf(second_[i]));
  }
  visitor.Counter("steps", steps_);
}

}  // namespace gossamer
