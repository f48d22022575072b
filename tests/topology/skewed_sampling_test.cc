// Skewed sampling is unbiased, and its second moment is within the budget.

#include "topology/skewed_sampling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "algorithms/base/rng.h"

namespace gossamer {
namespace {

using ::testing::HasSubstr;

// Terms w_j h_j, of which the first `close` are near.
struct Terms {
  std::vector<double> base, weight, value;
  std::vector<bool> near;

  Terms(size_t size, size_t close, uint64_t seed) {
    const RngKey key(seed);
    for (size_t j = 0; j < size; ++j) {
      base.push_back(0.2 + key.Uniform(3 * j));
      weight.push_back(0.5 + key.Uniform(3 * j + 1));
      value.push_back(key.Gaussian(3 * j + 2));
      near.push_back(j < close);
    }
    const double sum = std::accumulate(base.begin(), base.end(), 0.0);
    for (double& p : base) p /= sum;
  }
  SkewMoments Moments() const {
    SkewMoments m = {.near_share = 0, .near_square = 0, .far_square = 0};
    for (size_t j = 0; j < base.size(); ++j) {
      const double square = std::pow(weight[j] * value[j], 2) / base[j];
      (near[j] ? m.near_square : m.far_square) += square;
      if (near[j]) m.near_share += base[j];
    }
    return m;
  }
  double Sum() const {
    double sum = 0;
    for (size_t j = 0; j < base.size(); ++j) sum += weight[j] * value[j];
    return sum;
  }
};

TEST(SkewedSamplingTest, IsUnbiasedAndAsLargeAsTheFormula) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Terms terms(12, 5, seed);
    for (const double skew : {1.0, 2.0, 6.0, 40.0}) {
      const auto sampling =
          SkewedSampling::Create(terms.base, terms.near, skew);
      ASSERT_TRUE(sampling.ok()) << sampling.status();
      // The expectation is exact, over all draws.
      double mean = 0, square = 0, total = 0;
      for (int j = 0; j < 12; ++j) {
        const double q = sampling->probability(j);
        const double drawn =
            sampling->Factor(j, terms.weight[j]) * terms.value[j];
        total += q;
        mean += q * drawn;
        square += q * drawn * drawn;
      }
      EXPECT_NEAR(total, 1, 1e-12);
      EXPECT_NEAR(mean, terms.Sum(), 1e-12);
      EXPECT_NEAR(square, MeanSquare(terms.Moments(), skew), 1e-9 * square);
    }
  }
}

TEST(SkewedSamplingTest, DrawsWhatTheProbabilitiesSay) {
  const Terms terms(6, 3, 4);
  const auto sampling = SkewedSampling::Create(terms.base, terms.near, 3);
  constexpr int kDraws = 200000;
  std::vector<int> counts(6);
  double sum = 0;
  for (int i = 0; i < kDraws; ++i) {
    const int j = sampling->Draw(RngKey(9).Uniform(i));
    ++counts[j];
    sum += sampling->Factor(j, terms.weight[j]) * terms.value[j];
  }
  for (int j = 0; j < 6; ++j) {
    const double q = sampling->probability(j);
    EXPECT_NEAR(counts[j], kDraws * q, 4 * std::sqrt(kDraws * q * (1 - q)));
  }
  EXPECT_NEAR(sum / kDraws, terms.Sum(),
              4 * std::sqrt(MeanSquare(terms.Moments(), 3) / kDraws));
  EXPECT_EQ(sampling->Draw(0), 0);
  EXPECT_EQ(sampling->Draw(std::nextafter(1.0, 0.0)), 5);
}

TEST(LargestSkewTest, UsesTheBudgetUpAndNotMore) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    const SkewMoments m = Terms(10, 4, seed).Moments();
    const double plain = m.near_square + m.far_square;
    for (const double budget : {0.0, 0.1, 1.0, 5.0}) {
      const auto skew = LargestSkew(m, budget);
      ASSERT_TRUE(skew.ok());
      EXPECT_GE(*skew, 1);
      EXPECT_NEAR(MeanSquare(m, *skew), (1 + budget) * plain, 1e-9 * plain);
      // A smaller skew is within the budget, a larger one is not.
      EXPECT_LE(MeanSquare(m, 1 + 0.9 * (*skew - 1)),
                (1 + budget) * plain * (1 + 1e-12));
      EXPECT_GT(MeanSquare(m, 1.01 * *skew), (1 + budget) * plain);
    }
  }
}

// A worked example: half of the terms near, equal squares, D = 1.
TEST(LargestSkewTest, GivesTheKnownFigure) {
  const auto skew = LargestSkew({}, 1);
  ASSERT_TRUE(skew.ok());
  EXPECT_NEAR(*skew, 3 + 2 * std::sqrt(2.0), 1e-12);  // 5.83
  EXPECT_NEAR(FarShare(0.5, *skew), 0.1464, 1e-4);
}

TEST(LargestSkewTest, RefusesWhatCannotBe) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  for (const double budget : {-0.01, kNan, HUGE_VAL}) {
    EXPECT_THAT(std::string(LargestSkew({}, budget).status().message()),
                HasSubstr("budget"));
  }
  for (const SkewMoments& m :
       {SkewMoments{.near_share = 0}, SkewMoments{.near_share = 1},
        SkewMoments{.near_share = kNan}, SkewMoments{.far_square = 0},
        SkewMoments{.near_square = -1}, SkewMoments{.far_square = HUGE_VAL}}) {
    EXPECT_FALSE(LargestSkew(m, 1).ok());
  }
}

TEST(SkewedSamplingTest, RefusesWhatCannotBe) {
  const std::vector<double> half = {0.5, 0.5};
  EXPECT_TRUE(SkewedSampling::Create(half, {true, false}, 1).ok());
  EXPECT_FALSE(SkewedSampling::Create(half, {true, false}, 0.5).ok());
  EXPECT_FALSE(SkewedSampling::Create(half, {true, true}, 2).ok());
  EXPECT_FALSE(SkewedSampling::Create(half, {true}, 2).ok());
  EXPECT_FALSE(SkewedSampling::Create({}, {}, 2).ok());
  const std::vector<double> never = {1.0, 0.0};
  EXPECT_THAT(
      std::string(
          SkewedSampling::Create(never, {true, false}, 2).status().message()),
      HasSubstr("never drawn"));
  const std::vector<double> more = {0.9, 0.9};
  EXPECT_FALSE(SkewedSampling::Create(more, {true, false}, 2).ok());
}

}  // namespace
}  // namespace gossamer
