// The accountant against integrals, and the votes against their definition.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "algorithms/privacy/rdp_accountant.h"
#include "algorithms/privacy/settings.h"
#include "algorithms/privacy/topagg.h"
#include "algorithms/privacy/vote_message.h"

namespace gossamer {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

double LogDensity(double x, double mean, double sigma) {
  const double z = (x - mean) / sigma;
  return -z * z / 2 - std::log(sigma * std::sqrt(2 * std::numbers::pi));
}

// Returns 1/(a-1) ln of the integral of P^a Q^(1-a), where P and Q are normals
// `apart` from each other: the definition (Renyi 1961), by the trapezoidal
// rule.
double RenyiDivergence(double a, double apart, double sigma) {
  const double low = -40 * sigma - a * apart, high = 40 * sigma + a * apart;
  constexpr int kSteps = 400000;
  const double step = (high - low) / kSteps;
  double sum = 0;
  for (int i = 0; i <= kSteps; ++i) {
    const double x = low + step * i;
    sum += std::exp(a * LogDensity(x, apart, sigma) +
                    (1 - a) * LogDensity(x, 0, sigma));
  }
  return std::log(sum * step) / (a - 1);
}

TEST(RdpAccountantTest, IsTheDivergenceOfTheMechanism) {
  for (const double sigma : {1.0, 3.0, 10.0}) {
    for (const double sensitivity : {0.5, 2.0}) {
      const auto accountant = RdpAccountant::Create(sensitivity, sigma);
      ASSERT_TRUE(accountant.ok());
      const double epsilon = accountant->Epsilon(1e-5, /*more=*/1);
      for (const double a : {1.1, 2.0, 5.0}) {
        const double per_order = RenyiDivergence(a, sensitivity, sigma) / a;
        EXPECT_NEAR(epsilon, EpsilonOfRdp(per_order, 1e-5), 1e-7 * epsilon);
      }
    }
  }
}

// T queries equal one query whose mean is T times as long, each in another
// direction: the divergence is that of a shift by sqrt(T), so it adds up.
TEST(RdpAccountantTest, QueriesAddUp) {
  auto accountant = RdpAccountant::Create(1, 8);
  ASSERT_TRUE(accountant.ok());
  accountant->Spend(9);
  const double divergence = RenyiDivergence(3, std::sqrt(9.0), 8);
  EXPECT_NEAR(accountant->Epsilon(1e-5), EpsilonOfRdp(divergence / 3, 1e-5),
              1e-7);
  EXPECT_NEAR(accountant->Epsilon(1e-5, 3),
              EpsilonOfRdp(divergence / 3 * 12 / 9, 1e-5), 1e-7);
}

// Returns the exact delta of a Gaussian mechanism at an epsilon (Balle and
// Wang, ICML 2018, theorem 8); T queries are one with sqrt(T) times the shift.
double ExactDelta(double epsilon, double shift) {
  const auto phi = [](double x) {
    return 0.5 * std::erfc(-x / std::numbers::sqrt2);
  };
  return phi(shift / 2 - epsilon / shift) -
         std::exp(epsilon) * phi(-shift / 2 - epsilon / shift);
}

TEST(RdpAccountantTest, EpsilonHoldsAndIsTight) {
  for (const double shift : {0.1, 0.3, 1.0, 1.9, 3.0}) {
    const double r = shift * shift / 2;
    const double epsilon = EpsilonOfRdp(r, 1e-5);
    // The accountant's epsilon may be larger than the exact one, never smaller.
    EXPECT_LE(ExactDelta(epsilon, shift), 1e-5);
    // It is not much larger: 0.85 of it would be false.
    EXPECT_GT(ExactDelta(0.85 * epsilon, shift), 1e-5) << shift;
    // It is never above the classic conversion, R + 2 sqrt(R ln 1/delta).
    EXPECT_LE(epsilon, r + 2 * std::sqrt(r * std::log(1e5)) + 1e-9);
  }
  EXPECT_EQ(EpsilonOfRdp(0, 1e-5), 0);
}

TEST(RdpAccountantTest, AllowsAsManyAsFit) {
  for (const double epsilon : {0.5, 1.0, 10.0}) {
    auto accountant = RdpAccountant::Create(8, 100);
    const uint64_t allowed = accountant->Allowed({.epsilon = epsilon});
    EXPECT_LE(accountant->Epsilon(1e-5, allowed), epsilon);
    EXPECT_GT(accountant->Epsilon(1e-5, allowed + 1), epsilon);
  }
}

TEST(RdpAccountantTest, RefusesWhatHidesNothing) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(RdpAccountant::Create(1, 0).ok());
  EXPECT_FALSE(RdpAccountant::Create(1, -3).ok());
  EXPECT_FALSE(RdpAccountant::Create(kNan, 1).ok());
  EXPECT_FALSE(RdpAccountant::Create(1, HUGE_VAL).ok());
}

std::vector<int16_t> VoteOf(std::vector<float> gradient, int top, double clip,
                            uint64_t seed = 1) {
  std::vector<int16_t> sum(gradient.size());
  const auto finite = AddVote(gradient, top, clip, RngKey(seed), sum);
  EXPECT_TRUE(finite.ok() && *finite);
  return sum;
}

TEST(TopAggTest, VotesOnTheLargest) {
  EXPECT_EQ(VoteOf({1, -5, 0.5, 3, -0.1f}, 2, 1e-5),
            (std::vector<int16_t>{0, -1, 0, 1, 0}));
  // Of equal votes the first wins.
  EXPECT_EQ(VoteOf({2, 2, 2, -2}, 2, 1e-5), (std::vector<int16_t>{1, 1, 0, 0}));
  EXPECT_EQ(VoteOf({0, 0, 0}, 2, 1e-5), (std::vector<int16_t>{0, 0, 0}));
}

TEST(TopAggTest, SmallGradientsVoteByChance) {
  // P(+1) = 1/2 + g / (2 max) for values that are not clipped.
  constexpr int kDraws = 20000;
  double sum = 0;
  for (uint64_t seed = 0; seed < kDraws; ++seed) {
    const auto vote = VoteOf({4, -1}, 2, 100, seed);
    EXPECT_EQ(vote[0], 1);
    sum += vote[1];
  }
  EXPECT_NEAR(sum / kDraws, -0.25, 4 / std::sqrt(kDraws));
}

// The promise on which the accountant is built: one teacher moves the sum by at
// most 2 sqrt(k), whatever it votes.
TEST(TopAggTest, OneTeacherMovesTheSumByItsSensitivityAtMost) {
  const DataLensSettings s{.top = 6};
  double most = 0;
  for (uint64_t draw = 0; draw < 2000; ++draw) {
    std::vector<float> one(20), other(20);
    RngKey(draw).Fold("one").FillGaussian(one);
    RngKey(draw).Fold("other").FillGaussian(other);
    if (draw % 2 == 0) {
      for (size_t j = 0; j < 20; ++j) other[j] = -one[j];
    }
    const auto a = VoteOf(one, s.top, s.clip), b = VoteOf(other, s.top, s.clip);
    double square = 0;
    for (size_t j = 0; j < 20; ++j) square += std::pow(a[j] - b[j], 2);
    most = std::max(most, std::sqrt(square));
  }
  EXPECT_LE(most, VoteSensitivity(s) + 1e-12);
  EXPECT_NEAR(most, VoteSensitivity(s), 1e-12);  // the bound is reached
}

TEST(TopAggTest, AbstainsOrRefusesWhatIsNoGradient) {
  std::vector<int16_t> sum(2);
  const auto vote = [&](std::vector<float> g, int top) {
    return AddVote(g, top, 1, RngKey(1), sum);
  };
  EXPECT_FALSE(*vote({1, NAN}, 1));
  EXPECT_FALSE(*vote({-INFINITY, 1}, 1));
  EXPECT_TRUE(*vote({0, 0}, 1));
  EXPECT_EQ(sum, (std::vector<int16_t>{0, 0}));
  EXPECT_FALSE(vote({1, 2}, 3).ok());
  EXPECT_FALSE(vote({1, 2}, 0).ok());
  EXPECT_FALSE(vote({1, 2, 3}, 1).ok());
  EXPECT_EQ(sum, (std::vector<int16_t>{0, 0}));
}

TEST(TopAggTest, NoiseHasItsDeviationAndTheThresholdCuts) {
  constexpr int kValues = 100000;
  const std::vector<int32_t> sum(kValues, 30);
  std::vector<int8_t> out(kValues);
  Release(sum, 20, 10, RngKey(3), out);
  double up = 0, down = 0;
  for (const int8_t v : out) {
    up += v == 1;
    down += v == -1;
  }
  const auto above = [](double z) {
    return 0.5 * std::erfc(z / std::numbers::sqrt2);
  };
  EXPECT_NEAR(up / kValues, above((10.0 - 30) / 20), 0.006);
  EXPECT_NEAR(down / kValues, above((10.0 + 30) / 20), 0.006);
}

TEST(SettingsTest, NamesWhatCannotBe) {
  const auto refusal = [](auto change) {
    DataLensSettings s;
    change(s);
    std::string all;
    for (const Problem& p : ProblemsOf(s, 64).Take()) {
      absl::StrAppend(&all, p.key, " ", p.what, "\n");
    }
    return all;
  };
  EXPECT_EQ(refusal([](auto&) {}), "");
  EXPECT_EQ(refusal([](auto& s) { s.top = 65; }),
            "top is 65; it must lie between 1 and 64\n");
  EXPECT_THAT(refusal([](auto& s) { s.top = 0; }), HasSubstr("top is 0"));
  EXPECT_THAT(refusal([](auto& s) { s.teachers = 0; }),
              HasSubstr("teachers is 0"));
  EXPECT_THAT(refusal([](auto& s) { s.teachers = kMaxVotes + 1; }),
              HasSubstr("teachers is 30001"));
  EXPECT_TRUE(CheckExamples({}, 479).ok());
  EXPECT_THAT(std::string(CheckExamples({}, 478).message()),
              HasSubstr("teachers is 479, and there are 478 images"));
  EXPECT_THAT(refusal([](auto& s) { s.sigma = 0; }), HasSubstr("sigma is 0"));
  EXPECT_THAT(refusal([](auto& s) { s.clip = NAN; }), HasSubstr("clip is nan"));
  EXPECT_THAT(refusal([](auto& s) { s.threshold = -1; }),
              HasSubstr("threshold is -1"));
  EXPECT_THAT(refusal([](auto& s) { s.budget.epsilon = -1; }),
              HasSubstr("epsilon is -1"));
  EXPECT_THAT(refusal([](auto& s) { s.budget.epsilon = 0; }),
              HasSubstr("epsilon is 0"));
  EXPECT_THAT(refusal([](auto& s) { s.budget.epsilon = NAN; }),
              HasSubstr("epsilon is nan"));
  EXPECT_THAT(refusal([](auto& s) { s.budget.delta = 0; }),
              HasSubstr("delta is 0"));
  EXPECT_THAT(refusal([](auto& s) { s.budget.delta = 1; }),
              HasSubstr("delta is 1; it must lie between 0 and 1"));
  EXPECT_THAT(refusal([](auto& s) { s.budget.epsilon = 0.01; }),
              HasSubstr("before the first batch"));
  // Every one is said.
  EXPECT_THAT(refusal([](auto& s) { s.top = s.batch = 0; }),
              AllOf(HasSubstr("top is 0"), HasSubstr("batch is 0")));
}

TEST(SettingsTest, TheWholeBudgetPaysForWholeSteps) {
  const DataLensSettings s;
  const auto accountant = RdpAccountant::Create(VoteSensitivity(s), s.sigma);
  const uint64_t steps = AllowedSteps(s);
  EXPECT_EQ(steps, 111u);
  EXPECT_LE(accountant->Epsilon(s.budget.delta, steps * 10), 10);
  EXPECT_GT(accountant->Epsilon(s.budget.delta, (steps + 1) * 10), 10);
}

TEST(SettingsTest, GroupsShareTheTeachersOut) {
  for (const int groups : {1, 2, 3, 17}) {
    EXPECT_EQ(FirstTeacher(17, 0, groups), 0);
    EXPECT_EQ(FirstTeacher(17, groups, groups), 17);
    for (int g = 0; g < groups; ++g) {
      EXPECT_LT(FirstTeacher(17, g, groups), FirstTeacher(17, g + 1, groups));
    }
  }
}

TEST(VoteMessageTest, SaysTheSameAtTheOtherEnd) {
  const ImageBatch batch{.labels = {1, 9}, .images = {0, 1, -1, 0.5f}};
  const auto images = DecodeImages(EncodeImages(batch), 2, 2, 10);
  ASSERT_TRUE(images.ok()) << images.status();
  EXPECT_EQ(images->labels, batch.labels);
  EXPECT_EQ(images->images, batch.images);
  std::vector<int32_t> sums = {10, 20};
  EXPECT_TRUE(AddVotes(EncodeVotes(std::vector<int16_t>{-5, 4}), 5, sums).ok());
  EXPECT_EQ(sums, (std::vector<int32_t>{5, 24}));
}

TEST(VoteMessageTest, RefusesHostileBytes) {
  const auto images = [](ImageBatch batch) {
    return DecodeImages(EncodeImages(batch), 1, 2, 10).status();
  };
  EXPECT_TRUE(images({.labels = {9}, .images = {0, 1}}).ok());
  EXPECT_TRUE(absl::IsDataLoss(images({.labels = {10}, .images = {0, 1}})));
  EXPECT_TRUE(absl::IsDataLoss(images({.labels = {1}, .images = {0, 1.1f}})));
  EXPECT_TRUE(absl::IsDataLoss(images({.labels = {1}, .images = {0, NAN}})));
  EXPECT_TRUE(absl::IsDataLoss(images({.labels = {1}, .images = {0}})));
  std::vector<int32_t> sums = {1, 2};
  for (const std::vector<int16_t>& votes :
       {std::vector<int16_t>{0}, std::vector<int16_t>{0, 6},
        std::vector<int16_t>{-6, 0}, std::vector<int16_t>{-32768, 0}}) {
    EXPECT_TRUE(absl::IsDataLoss(AddVotes(EncodeVotes(votes), 5, sums)));
  }
  EXPECT_EQ(sums, (std::vector<int32_t>{1, 2}));
}

}  // namespace
}  // namespace gossamer
