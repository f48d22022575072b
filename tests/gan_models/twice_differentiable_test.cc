// Operations that can be differentiated twice, against libtorch's own in double
// precision: values, first derivatives, and those of a gradient penalty.

#include "gan_models/networks/twice_differentiable.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/tensor.h>
#include <torch/csrc/autograd/autograd.h>

#include <array>
#include <functional>
#include <numeric>
#include <optional>
#include <vector>

#include "algorithms/base/rng.h"
#include "gtest/gtest.h"

namespace gossamer {
namespace twice_differentiable_test {

at::Tensor Gaussian(RngKey key, const std::vector<int64_t>& shape) {
  const int64_t n = std::reduce(shape.begin(), shape.end(), int64_t{1},
                                std::multiplies<int64_t>());
  std::vector<double> values(n);
  for (int64_t i = 0; i < n; ++i) values[i] = key.Gaussian(i);
  return at::tensor(values, at::kDouble).view(shape);
}

double Largest(const at::Tensor& x) { return x.abs().max().item<double>(); }

void ExpectEqual(const at::Tensor& a, const at::Tensor& b) {
  ASSERT_TRUE(a.defined() && b.defined());
  ASSERT_EQ(a.sizes(), b.sizes());
  EXPECT_LT(Largest(a - b), 1e-12 * Largest(b));
}

using Operation = std::function<at::Tensor(const at::Tensor& x)>;

// The derivatives of an operation f that training needs: f(x), the gradients of
// a function of it, and those of a function of that function's gradient to x.
struct Derivatives {
  at::Tensor value;
  std::vector<at::Tensor> first, second;
};

Derivatives Derive(const Operation& f, const at::Tensor& x,
                   std::vector<at::Tensor> weights) {
  Derivatives d;
  d.value = f(x);
  std::vector<at::Tensor> inputs = weights;
  inputs.push_back(x);
  d.first =
      torch::autograd::grad({d.value.square().sum()}, inputs, {},
                            /*retain_graph=*/true, /*create_graph=*/false);
  const at::Tensor gradient =
      torch::autograd::grad({f(x).pow(3).sum()}, {x}, {},
                            /*retain_graph=*/true, /*create_graph=*/true)[0];
  d.second = torch::autograd::grad({gradient.square().sum()}, inputs);
  return d;
}

void ExpectSame(const Derivatives& a, const Derivatives& b) {
  ExpectEqual(a.value, b.value);
  for (size_t i = 0; i < b.first.size(); ++i) {
    SCOPED_TRACE(i);
    ExpectEqual(a.first[i], b.first[i]);
    ExpectEqual(a.second[i], b.second[i]);
  }
}

TEST(TwiceDifferentiableTest, ConvolutionIsLibtorchs) {
  struct Case {
    int64_t kernel, stride, padding;
    bool bias;
  };
  for (const Case& c : {Case{3, 1, 1, true}, Case{4, 2, 1, true},
                        Case{4, 2, 1, false}, Case{1, 1, 0, true}}) {
    SCOPED_TRACE(testing::Message()
                 << c.kernel << " " << c.stride << " " << c.bias);
    const RngKey key(c.kernel);
    const at::Tensor x = Gaussian(key.Fold("x"), {3, 2, 8, 6});
    x.requires_grad_(true);
    std::vector<at::Tensor> weights = {
        Gaussian(key.Fold("w"), {5, 2, c.kernel, c.kernel})};
    std::optional<at::Tensor> bias;
    if (c.bias) {
      bias = Gaussian(key.Fold("b"), {5});
      weights.push_back(*bias);
    }
    for (at::Tensor& w : weights) w.requires_grad_(true);
    const std::array stride = {c.stride, c.stride};
    const std::array padding = {c.padding, c.padding};
    ExpectSame(Derive(
                   [&](const at::Tensor& in) {
                     return Convolve(in, weights[0], bias, c.stride, c.padding);
                   },
                   x, weights),
               Derive(
                   [&](const at::Tensor& in) {
                     return at::conv2d(in, weights[0], bias, stride, padding);
                   },
                   x, weights));
  }
}

TEST(TwiceDifferentiableTest, ReluIsLibtorchs) {
  const at::Tensor x = Gaussian(RngKey(4), {2, 3, 4, 5}).requires_grad_(true);
  ExpectSame(Derive(Relu, x, {}),
             Derive([](const at::Tensor& in) { return at::relu(in); }, x, {}));
}

TEST(TwiceDifferentiableTest, MeanPoolIsLibtorchs) {
  const at::Tensor x = Gaussian(RngKey(1), {2, 3, 6, 4});
  x.requires_grad_(true);
  ExpectSame(Derive(MeanPool, x, {}), Derive(
                                          [](const at::Tensor& in) {
                                            return at::avg_pool2d(in, {2, 2});
                                          },
                                          x, {}));
}

}  // namespace twice_differentiable_test
}  // namespace gossamer
