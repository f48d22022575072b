// Layers of the conditional networks, against formulas and central differences
// in double precision.

#include "gan_models/networks/layers.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/tensor.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <functional>
#include <numeric>
#include <vector>

#include "algorithms/base/rng.h"
#include "gan_models/losses.h"
#include "gan_models/networks/attention.h"
#include "gan_models/networks/spectral_norm.h"
#include "gtest/gtest.h"

namespace gossamer {
namespace layers_test {

at::Tensor Gaussian(RngKey key, const std::vector<int64_t>& shape) {
  const int64_t n = std::reduce(shape.begin(), shape.end(), int64_t{1},
                                std::multiplies<int64_t>());
  std::vector<double> values(n);
  for (int64_t i = 0; i < n; ++i) values[i] = key.Gaussian(i);
  return at::tensor(values, at::kDouble).view(shape);
}

using Function = std::function<at::Tensor(const std::vector<at::Tensor>&)>;

// Compares the gradients of the scalar f with its central differences, along
// random directions of each input.
void ExpectGradients(const Function& f, std::vector<at::Tensor> inputs) {
  for (at::Tensor& x : inputs) x.requires_grad_(true);
  const std::vector<at::Tensor> gradients =
      torch::autograd::grad({f(inputs)}, inputs);
  for (size_t i = 0; i < inputs.size(); ++i) {
    for (int d = 0; d < 3; ++d) {
      const at::Tensor direction =
          Gaussian(RngKey(77).Fold(i).Fold(d), inputs[i].sizes().vec());
      const auto at = [&](double step) {
        std::vector<at::Tensor> moved;
        for (const at::Tensor& x : inputs) moved.push_back(x.detach());
        moved[i] = moved[i] + step * direction;
        return f(moved).item<double>();
      };
      constexpr double kStep = 1e-5;
      const double difference = (at(kStep) - at(-kStep)) / (2 * kStep);
      const double expected = (gradients[i] * direction).sum().item<double>();
      EXPECT_NEAR(difference, expected, 1e-7 * (1 + std::abs(expected)))
          << "input " << i;
    }
  }
}

// As many steps of the iteration as its limit needs.
at::Tensor Converged(const at::Tensor& weight, RngKey key) {
  const at::Tensor u = Gaussian(key, {weight.size(0)});
  for (int i = 0; i < 2000; ++i) SpectrallyNormalized(weight, u, true);
  return u;
}

TEST(SpectralNormTest, OneStepIsTheFormula) {
  const at::Tensor weight =
      at::tensor(std::vector<double>{3, 0, 0, 0, 4, 0}).view({2, 3});
  const at::Tensor u = at::tensor(std::vector<double>{1, 1});
  const at::Tensor before = u.clone();
  // v = (3, 4, 0)/5, W v = (9, 16)/5, u' = (9, 16)/sqrt(337).
  const double sigma = std::sqrt(337.0) / 5;
  const at::Tensor normalized = SpectrallyNormalized(weight, u, false);
  EXPECT_NEAR(normalized[0][0].item<double>(), 3 / sigma, 1e-12);
  EXPECT_NEAR(normalized[1][1].item<double>(), 4 / sigma, 1e-12);
  EXPECT_TRUE(u.equal(before));
  SpectrallyNormalized(weight, u, true);
  EXPECT_NEAR(u[0].item<double>(), 9 / std::sqrt(337.0), 1e-12);
  EXPECT_NEAR(u[1].item<double>(), 16 / std::sqrt(337.0), 1e-12);
}

TEST(SpectralNormTest, LargestSingularValueOfTheLimitIsOne) {
  const at::Tensor weight = Gaussian(RngKey(1), {6, 2, 3, 3});
  const at::Tensor u = Converged(weight, RngKey(2));
  const at::Tensor matrix =
      SpectrallyNormalized(weight, u, false).view({6, 18});
  // The power iteration of WᵀW from another start finds the same.
  at::Tensor x = Gaussian(RngKey(3), {18});
  for (int i = 0; i < 2000; ++i) {
    x = matrix.t().mv(matrix.mv(x));
    x = x / x.norm();
  }
  EXPECT_NEAR(matrix.mv(x).norm().item<double>(), 1, 1e-9);
}

TEST(SpectralNormTest, GradientAtTheLimitIsTheDifference) {
  const at::Tensor weight = Gaussian(RngKey(1), {4, 3, 3, 3});
  const at::Tensor u = Converged(weight, RngKey(2));
  const at::Tensor factor = Gaussian(RngKey(3), {4, 3, 3, 3});
  ExpectGradients(
      [&](const std::vector<at::Tensor>& in) {
        return (SpectrallyNormalized(in[0], u, false).pow(3) * factor).sum();
      },
      {weight});
}

TEST(SpectralNormTest, SixtyFourStepsFindTheValueOfALargeRandomMatrix) {
  const at::Tensor weight = Gaussian(RngKey(5), {128, 1152});
  const at::Tensor u = Gaussian(RngKey(6), {128});
  for (int i = 0; i < 64; ++i) SpectrallyNormalized(weight, u, true);
  const double after_64 =
      SpectrallyNormalized(weight, u, false).norm().item<double>();
  for (int i = 0; i < 1000; ++i) SpectrallyNormalized(weight, u, true);
  const double limit =
      SpectrallyNormalized(weight, u, false).norm().item<double>();
  EXPECT_NEAR(after_64 / limit, 1, 0.005);
}

TEST(AttentionTest, IsTheMeanOfTheValuesByTheSoftmaxOfTheScores) {
  const RngKey key(4);
  const at::Tensor q = Gaussian(key.Fold(0), {2, 5, 3});
  const at::Tensor k = Gaussian(key.Fold(1), {2, 4, 3});
  const at::Tensor v = Gaussian(key.Fold(2), {2, 4, 6});
  const at::Tensor out = Attend(q, k, v);
  ASSERT_EQ(out.sizes(), (std::vector<int64_t>{2, 5, 6}));
  for (int n = 0; n < 2; ++n) {
    for (int p = 0; p < 5; ++p) {
      double total = 0;
      std::vector<double> mean(6);
      for (int j = 0; j < 4; ++j) {
        const double weight =
            std::exp((q[n][p] * k[n][j]).sum().item<double>());
        total += weight;
        for (int e = 0; e < 6; ++e) {
          mean[e] += weight * v[n][j][e].item<double>();
        }
      }
      for (int e = 0; e < 6; ++e) {
        EXPECT_NEAR(out[n][p][e].item<double>(), mean[e] / total, 1e-12);
      }
    }
  }
}

TEST(AttentionTest, GradientIsTheDifference) {
  const RngKey key(5);
  ExpectGradients(
      [](const std::vector<at::Tensor>& in) {
        return Attend(in[0], in[1], in[2]).pow(3).sum();
      },
      {Gaussian(key.Fold(0), {2, 5, 3}), Gaussian(key.Fold(1), {2, 4, 3}),
       Gaussian(key.Fold(2), {2, 4, 6})});
}

// As a gradient penalty derives a discriminator: once by its input, and the
// gradient's norm by all.
TEST(AttentionTest, SecondDerivativesAreDifferences) {
  const RngKey key(6);
  const at::Tensor weight = Gaussian(key.Fold("weight"), {6, 6});
  const at::Tensor u = Converged(weight, key.Fold("u"));
  ExpectGradients(
      [&](const std::vector<at::Tensor>& in) {
        const at::Tensor x =
            in[0].requires_grad() ? in[0] : in[0].detach().requires_grad_(true);
        const at::Tensor queries =
            x.matmul(SpectrallyNormalized(in[1], u, false).t());
        const at::Tensor keys = at::max_pool2d(x.view({2, 1, 4, 6}), {2, 1});
        const at::Tensor seen =
            Attend(queries, keys.view({2, 2, 6}), keys.view({2, 2, 6}));
        const at::Tensor gradient = torch::autograd::grad(
            {seen.pow(3).sum()}, {x}, {}, /*retain_graph=*/true,
            /*create_graph=*/true)[0];
        return gradient.square().sum();
      },
      {0.3 * Gaussian(key.Fold("x"), {2, 4, 6}), weight});
}

// Vectors that a table is bound to, with an input of double precision's values
// in float: the layers' own tensors are floats.
class ConditionalBatchNormTest : public testing::Test {
 protected:
  ConditionalBatchNormTest()
      : table_(Player::kGenerator),
        norm_(table_, "cbn", kChannels, kClasses),
        parameters_(table_.parameter_count()),
        gradients_(table_.parameter_count()),
        statistics_(table_.statistic_count()) {
    RngKey(1).FillGaussian(parameters_);
    table_.InitializeStatistics(statistics_);
    table_.Bind(parameters_, gradients_, statistics_);
  }
  // Scale and shift of a class's channel.
  double gamma(int64_t label, int64_t c) const {
    return parameters_[label * kChannels + c];
  }
  double beta(int64_t label, int64_t c) const {
    return parameters_[(kClasses + label) * kChannels + c];
  }

  static constexpr int64_t kChannels = 3, kClasses = 4, kBatch = 5, kSide = 2;
  TensorTable table_;
  const ConditionalBatchNorm norm_;
  std::vector<float> parameters_, gradients_, statistics_;
};

TEST_F(ConditionalBatchNormTest, NormalizesByTheBatchAndScalesByTheClass) {
  const at::Tensor x =
      Gaussian(RngKey(2), {kBatch, kChannels, kSide, kSide}).to(at::kFloat);
  const std::vector<int64_t> classes = {3, 0, 3, 1, 1};
  const at::Tensor labels = at::tensor(classes);
  const at::Tensor y = norm_(x, labels, {.momentum = 1});
  for (int64_t c = 0; c < kChannels; ++c) {
    const at::Tensor of_channel = x.select(1, c).to(at::kDouble);
    const double mean = of_channel.mean().item<double>();
    const double variance = (of_channel - mean).square().mean().item<double>();
    for (int64_t n = 0; n < kBatch; ++n) {
      const double expected = (of_channel[n][0][1].item<double>() - mean) /
                                  std::sqrt(variance + 1e-5) *
                                  gamma(classes[n], c) +
                              beta(classes[n], c);
      EXPECT_NEAR(y[n][c][0][1].item<double>(), expected, 1e-5);
    }
    // A momentum of 1 takes the batch's own, the variance unbiased.
    constexpr double kValues = kBatch * kSide * kSide;
    EXPECT_NEAR(statistics_[c], mean, 1e-6);
    const size_t variances = table_.statistics()[1].extent.offset;
    EXPECT_NEAR(statistics_[variances + c], variance * kValues / (kValues - 1),
                1e-5);
  }
}

TEST_F(ConditionalBatchNormTest, OnlyTheBatchsClassesHaveGradients) {
  const at::Tensor x =
      Gaussian(RngKey(2), {kBatch, kChannels, kSide, kSide}).to(at::kFloat);
  const at::Tensor labels = at::tensor(std::vector<int64_t>{3, 0, 3, 1, 1});
  const at::Tensor y = norm_(x, labels, {});
  (y * y).sum().backward();
  for (int64_t label = 0; label < kClasses; ++label) {
    for (int64_t c = 0; c < kChannels; ++c) {
      // The derivative by a shift is twice the sum of its class's outputs.
      double sum = 0;
      for (int64_t n = 0; n < kBatch; ++n) {
        if (labels[n].item<int64_t>() == label) {
          sum += 2 * y[n][c].sum().item<double>();
        }
      }
      EXPECT_NEAR(gradients_[(kClasses + label) * kChannels + c], sum, 1e-4);
    }
  }
}

TEST(HingeTest, IsMadeOfItsOwnFormulas) {
  const at::Tensor real = at::tensor(std::vector<double>{2, 0.5, -1});
  const at::Tensor fake = at::tensor(std::vector<double>{-3, 0, 0.25});
  // Beyond the margins of 1 a score costs nothing.
  EXPECT_NEAR(DiscriminatorLoss(Loss::kHinge, real, fake).item<double>(),
              (0 + 0.5 + 2) / 3 + (0 + 1 + 1.25) / 3, 1e-12);
  EXPECT_NEAR(GeneratorLoss(Loss::kHinge, fake).item<double>(), 2.75 / 3,
              1e-12);
  ExpectGradients(
      [](const std::vector<at::Tensor>& in) {
        return DiscriminatorLoss(Loss::kHinge, in[0], in[1]);
      },
      {real, fake});
}

}  // namespace layers_test
}  // namespace gossamer
