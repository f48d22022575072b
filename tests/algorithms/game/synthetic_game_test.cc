// The synthetic game of any size: its gradients, its shifts between peers, and
// its solution.

#include "algorithms/game/synthetic_game.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gossamer {
namespace synthetic_game_test {

using ::testing::HasSubstr;

const RngKey kNoKey(0);

std::unique_ptr<SyntheticGame> Make(int64_t parameters, int rank = 0,
                                    int peers = 1, double heterogeneity = 1) {
  return *SyntheticGame::Create(
      {.parameters = parameters, .heterogeneity = heterogeneity}, rank, peers,
      /*seed=*/3);
}

TEST(SyntheticGameTest, GradientIsThatOfItsFormula) {
  for (const int64_t n : {2, 7, 100}) {
    const auto game = Make(n);
    const std::span<float> x = game->parameters();
    const std::span<const float> s = game->solution();
    const size_t v0 = static_cast<size_t>(n - n / 2);
    const auto losses = game->Gradient(Players::kBoth, kNoKey);
    ASSERT_TRUE(losses.ok());
    double value = 0;
    for (size_t i = 0; i < v0; ++i) {
      const float u = x[i] - s[i];
      const bool pair = v0 + i < x.size();
      const float v = pair ? x[v0 + i] - s[v0 + i] : 0;
      EXPECT_FLOAT_EQ(game->gradients()[i], u + v);
      if (pair) {
        EXPECT_FLOAT_EQ(game->gradients()[v0 + i], v - u);
      }
      value += 0.5 * u * u + u * v - 0.5 * v * v;
    }
    EXPECT_NEAR((*losses)[0], value, 1e-3);
    EXPECT_EQ((*losses)[1], -(*losses)[0]);
  }
}

TEST(SyntheticGameTest, DiscriminatorAloneLeavesTheGeneratorsGradient) {
  const auto game = Make(10);
  ASSERT_TRUE(game->Gradient(Players::kBoth, kNoKey).ok());
  const float of_generator = game->gradients()[0];
  const float of_discriminator = game->gradients()[5];
  game->parameters()[0] += 1;
  ASSERT_TRUE(game->Gradient(Players::kDiscriminator, kNoKey).ok());
  EXPECT_EQ(game->gradients()[0], of_generator);
  EXPECT_NE(game->gradients()[5], of_discriminator);
}

// At the fleet's solution the peers' gradients cancel, and none is zero.
TEST(SyntheticGameTest, ShiftsSumToZeroOverThePeers) {
  for (const int peers : {2, 3, 8}) {
    std::vector<double> sum(64);
    double squares = 0;
    for (int rank = 0; rank < peers; ++rank) {
      const auto game = Make(64, rank, peers, 2);
      std::ranges::copy(game->solution(), game->parameters().begin());
      ASSERT_TRUE(game->Gradient(Players::kBoth, kNoKey).ok());
      for (size_t i = 0; i < sum.size(); ++i) {
        sum[i] += game->gradients()[i];
        squares += std::pow(game->gradients()[i], 2);
      }
    }
    for (const double s : sum) EXPECT_NEAR(s, 0, 1e-4);
    // A gradient is a sum of two shifts of deviation 2, of variance 4 each.
    EXPECT_NEAR(squares / (64.0 * peers), 8, 4);
  }
}

TEST(SyntheticGameTest, DescentReachesTheSolution) {
  const auto game = Make(1001);
  for (int step = 0; step < 200; ++step) {
    ASSERT_TRUE(game->Gradient(Players::kBoth, kNoKey).ok());
    for (size_t i = 0; i < game->parameters().size(); ++i) {
      game->parameters()[i] -= 0.1f * game->gradients()[i];
    }
  }
  const auto score =
      game->evaluator()->Score(game->parameters().first(501), kNoKey);
  ASSERT_TRUE(score.ok());
  EXPECT_LT(*score, 1e-5);
}

TEST(SyntheticGameTest, DivergenceLeavesTheLastGradient) {
  const auto game = Make(4);
  ASSERT_TRUE(game->Gradient(Players::kBoth, kNoKey).ok());
  const std::vector<float> last(game->gradients().begin(),
                                game->gradients().end());
  game->parameters()[1] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(game->Gradient(Players::kBoth, kNoKey).status().code(),
            absl::StatusCode::kDataLoss);
  EXPECT_TRUE(std::ranges::equal(game->gradients(), last));
}

TEST(SyntheticGameTest, RefusesWhatCannotBe) {
  const auto refusal = [](SyntheticSpec spec, int rank, int peers) {
    return std::string(
        SyntheticGame::Create(spec, rank, peers, 1).status().message());
  };
  EXPECT_THAT(refusal({.parameters = 1}, 0, 1), HasSubstr("parameters is 1"));
  EXPECT_THAT(refusal({.heterogeneity = -1}, 0, 1), HasSubstr("heterogeneity"));
  EXPECT_THAT(refusal({.parameters = 4}, 2, 2), HasSubstr("rank is 2"));
}

}  // namespace synthetic_game_test
}  // namespace gossamer
