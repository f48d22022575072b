// Scores against closed forms and hand-computed values.

#include "gan_models/evaluation/metrics.h"

#include <cmath>
#include <limits>
#include <vector>

#include "algorithms/base/rng.h"
#include "gtest/gtest.h"

namespace gossamer {
namespace metrics_test {

Features Normal(size_t n, size_t d, double mean, double deviation, RngKey key) {
  Features f;
  f.dimension = d;
  f.values.resize(n * d);
  key.FillGaussian(f.values);
  for (float& v : f.values) v = static_cast<float>(mean + deviation * v);
  return f;
}

TEST(FrechetDistanceTest, OfGaussiansIsItsClosedForm) {
  // The distance is |m1 - m2|^2 + d (s1 - s2)^2 for isotropic covariances.
  constexpr size_t kSamples = 20000, kDimension = 4;
  const auto a = Normal(kSamples, kDimension, 0, 1, RngKey(1));
  const auto b = Normal(kSamples, kDimension, 0.5, 3, RngKey(2));
  const double expected = kDimension * (0.25 + 4);
  EXPECT_NEAR(FrechetDistance(a, b).value(), expected, 0.02 * expected);
}

TEST(FrechetDistanceTest, OfASampleWithItselfIsZero) {
  const auto a = Normal(100, 8, 3, 2, RngKey(1));
  EXPECT_NEAR(FrechetDistance(a, a).value(), 0, 1e-6);
}

TEST(FrechetDistanceTest, TakesCorrelatedAndSingularCovariances) {
  // x = (u, u) and y = (v, -v) have covariances [1 1; 1 1] and [1 -1; -1 1],
  // whose product is 0, so the distance is the sum of the traces, 4.
  Features a{2, {}}, b{2, {}};
  for (int i = 0; i < 20000; ++i) {
    const auto u = static_cast<float>(RngKey(1).Gaussian(i));
    const auto v = static_cast<float>(RngKey(2).Gaussian(i));
    a.values.insert(a.values.end(), {u, u});
    b.values.insert(b.values.end(), {v, -v});
  }
  EXPECT_NEAR(FrechetDistance(a, b).value(), 4, 0.1);
}

TEST(KernelDistanceTest, IsZeroOnAverageForEqualDistributions) {
  const auto a = Normal(2000, 8, 0, 1, RngKey(1));
  const auto b = Normal(2000, 8, 0, 1, RngKey(2));
  const auto c = Normal(2000, 8, 0.5, 1, RngKey(3));
  const double same = KernelDistance(a, b, 20, 500, RngKey(4)).value();
  const double other = KernelDistance(a, c, 20, 500, RngKey(4)).value();
  EXPECT_NEAR(same, 0, 0.02);
  EXPECT_GT(other, 10 * std::abs(same));
}

TEST(KernelDistanceTest, HandComputed) {
  // For d = 1, k(x, y) = (xy + 1)^3, X = {0, 1} and Y = {1, 2} the distance is
  // k(0,1) + k(1,2) - 2 * mean{1, 1, 8, 27} = 1 + 27 - 18.5 = 9.5.
  EXPECT_NEAR(KernelDistance({1, {0, 1}}, {1, {1, 2}}, 1, 2, RngKey(1)).value(),
              9.5, 1e-9);
}

TEST(EnergyDistanceTest, HandComputed) {
  // For X = {0, 2}, Y = {1} and Y' = {1} the distance is 2 * 1 - 1 - 0 = 1.
  EXPECT_NEAR(EnergyDistance({1, {0, 2}}, {1, {1, 1}}).value(), 1, 1e-12);
  const auto a = Normal(500, 2, 0, 1, RngKey(1));
  EXPECT_NEAR(EnergyDistance(a, a).value(), 0, 1e-9);
}

TEST(PrecisionRecallTest, SeesLostModesAndStraySamples) {
  Features two = Normal(300, 2, 0, 0.1, RngKey(1));
  const Features far = Normal(300, 2, 10, 0.1, RngKey(2));
  two.values.insert(two.values.end(), far.values.begin(), far.values.end());
  const Features one = Normal(600, 2, 0, 0.1, RngKey(3));
  const auto lost = ComputePrecisionRecall(two, one).value();
  EXPECT_GT(lost.precision, 0.9);
  EXPECT_NEAR(lost.recall, 0.5, 0.1);
  const auto stray = ComputePrecisionRecall(one, two).value();
  EXPECT_NEAR(stray.precision, 0.5, 0.1);
  EXPECT_GT(stray.recall, 0.9);
}

TEST(InceptionScoreTest, HasItsLimits) {
  Features confident{10, {}}, clueless{10, {}};
  for (int i = 0; i < 1000; ++i) {
    for (int c = 0; c < 10; ++c) {
      confident.values.push_back(c == i % 10 ? 100.0f : 0.0f);
      clueless.values.push_back(1);
    }
  }
  EXPECT_NEAR(ComputeInceptionScore(confident).value().mean, 10, 1e-6);
  EXPECT_NEAR(ComputeInceptionScore(clueless).value().mean, 1, 1e-9);
}

TEST(MetricsTest, RefuseWhatHasNoScore) {
  const auto a = Normal(10, 2, 0, 1, RngKey(1));
  const auto b = Normal(10, 3, 0, 1, RngKey(1));
  EXPECT_EQ(FrechetDistance(a, b).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(FrechetDistance(a, {2, {1, 2}}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ComputePrecisionRecall({2, {1, 2, 3, 4}}, a).status().code(),
            absl::StatusCode::kInvalidArgument);
  auto nan = a;
  nan.values[3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(FrechetDistance(a, nan).status().code(),
            absl::StatusCode::kDataLoss);
  EXPECT_EQ(ComputeInceptionScore(nan, 2).status().code(),
            absl::StatusCode::kDataLoss);
}

}  // namespace metrics_test
}  // namespace gossamer
