// The closed-form games: their gradients, their solutions, and the known
// dynamics of optimizers on them.

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "algorithms/game/bilinear_game.h"
#include "algorithms/game/quadratic_game.h"
#include "algorithms/optim/optimizer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gossamer {
namespace game_test {

const RngKey kNoKey(0);

std::unique_ptr<BilinearGame> Bilinear(const BilinearSpec& spec = {},
                                       uint64_t seed = 1) {
  auto game = BilinearGame::Create(spec, seed);
  EXPECT_TRUE(game.ok()) << game.status();
  return std::move(game).value();
}

std::unique_ptr<QuadraticGame> Quadratic(const QuadraticSpec& spec = {},
                                         int rank = 0, int peers = 1,
                                         uint64_t seed = 1) {
  auto game = QuadraticGame::Create(spec, rank, peers, seed);
  EXPECT_TRUE(game.ok()) << game.status();
  return std::move(game).value();
}

// Plays `steps` simultaneous steps of one rule for both players; scale(t)
// multiplies the rate of step t.
template <typename Scale>
void Play(SaddleGame& game, const OptimizerSpec& spec, int steps, Scale scale) {
  const size_t half = game.layout().extent(Player::kGenerator).size;
  auto g = Optimizer::Create(spec, half);
  auto d = Optimizer::Create(spec, half);
  ASSERT_TRUE(g.ok() && d.ok());
  const std::span<float> x = game.parameters();
  for (int t = 0; t < steps; ++t) {
    (*g)->Extrapolate(x.first(half));
    (*d)->Extrapolate(x.last(half));
    ASSERT_TRUE(
        game.Gradient(Players::kBoth, RngKey(9).Fold(static_cast<uint64_t>(t)))
            .ok());
    (*g)->Step(x.first(half), game.gradients().first(half), scale(t));
    (*d)->Step(x.last(half), game.gradients().last(half), scale(t));
  }
}
constexpr auto kConstant = [](int) { return 1.0; };

void ExpectGradientsOfLosses(SaddleGame& game) {
  const auto x = game.parameters();
  ASSERT_TRUE(game.Gradient(Players::kBoth, kNoKey).ok());
  const std::vector<float> gradient(game.gradients().begin(),
                                    game.gradients().end());
  const size_t half = x.size() / 2;
  // Losses are quadratic in each coordinate, so central differences are exact
  // but for rounding.
  for (size_t i = 0; i < x.size(); ++i) {
    const float at = x[i];
    const auto loss = [&](float value) {
      x[i] = value;
      const Losses losses = game.Gradient(Players::kBoth, kNoKey).value();
      return i < half ? losses[0] : losses[1];
    };
    const float above = at + 0.25f, below = at - 0.25f;
    const double slope = (loss(above) - loss(below)) / (above - below);
    x[i] = at;
    EXPECT_NEAR(gradient[i], slope, 1e-5 * (1 + std::abs(slope))) << i;
  }
}

TEST(BilinearGameTest, GradientsAreThoseOfTheLosses) {
  ExpectGradientsOfLosses(*Bilinear({.dimension = 9}));
}

TEST(QuadraticGameTest, GradientsAreThoseOfTheLosses) {
  ExpectGradientsOfLosses(
      *Quadratic({.dimension = 9, .noise = 0, .heterogeneity = 0.7}, 1, 3));
}

TEST(SaddleGameTest, GradientVanishesAtTheSolution) {
  auto game = Bilinear();
  EXPECT_GT(game->DistanceToSolution(), 1);
  const auto x = game->parameters();
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>(game->solution()[i]);
  }
  EXPECT_LT(game->DistanceToSolution(), 1e-6);
  ASSERT_TRUE(game->Gradient(Players::kBoth, kNoKey).ok());
  for (const float g : game->gradients()) EXPECT_NEAR(g, 0, 1e-6);
}

TEST(SaddleGameTest, CouplingIsOrthogonal) {
  const OrthogonalMatrix matrix(17, RngKey(3));
  std::vector<double> x(17);
  for (size_t i = 0; i < x.size(); ++i) x[i] = RngKey(4).Gaussian(i);
  auto y = x;
  matrix.Apply(y);
  double norm_x = 0, norm_y = 0, moved = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    norm_x += x[i] * x[i], norm_y += y[i] * y[i];
    moved += std::abs(x[i] - y[i]);
  }
  EXPECT_NEAR(norm_x, norm_y, 1e-12);
  EXPECT_GT(moved, 1);
  matrix.ApplyTransposed(y);
  for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(x[i], y[i], 1e-12);
}

TEST(SaddleGameTest, OnlyTheNamedPlayersGradientIsWritten) {
  auto game = Bilinear({.dimension = 4});
  ASSERT_TRUE(game->Gradient(Players::kDiscriminator, kNoKey).ok());
  EXPECT_THAT(game->gradients().first(4), testing::Each(0.0f));
  const std::vector<float> d(game->gradients().begin() + 4,
                             game->gradients().end());
  ASSERT_TRUE(game->Gradient(Players::kBoth, kNoKey).ok());
  EXPECT_THAT(game->gradients().first(4), testing::Not(testing::Each(0.0f)));
  EXPECT_THAT(d, testing::ElementsAreArray(game->gradients().last(4)));
}

TEST(SaddleGameTest, NoiseIsAFunctionOfTheKeyAndHasItsDeviation) {
  auto noisy = Bilinear({.dimension = 20000, .noise = 0.5});
  auto exact = Bilinear({.dimension = 20000});
  ASSERT_TRUE(noisy->Gradient(Players::kBoth, RngKey(1)).ok());
  ASSERT_TRUE(exact->Gradient(Players::kBoth, RngKey(1)).ok());
  const std::vector<float> first(noisy->gradients().begin(),
                                 noisy->gradients().end());
  double square = 0;
  for (size_t i = 0; i < first.size(); ++i) {
    const double noise = first[i] - exact->gradients()[i];
    square += noise * noise;
  }
  EXPECT_NEAR(std::sqrt(square / first.size()), 0.5, 0.01);
  ASSERT_TRUE(noisy->Gradient(Players::kBoth, RngKey(2)).ok());
  EXPECT_NE(first[0], noisy->gradients()[0]);
  ASSERT_TRUE(noisy->Gradient(Players::kBoth, RngKey(1)).ok());
  EXPECT_THAT(first, testing::ElementsAreArray(noisy->gradients()));
}

TEST(SaddleGameTest, ADivergedGameIsDataLossAndKeepsItsGradients) {
  auto game = Bilinear({.dimension = 4});
  ASSERT_TRUE(game->Gradient(Players::kBoth, kNoKey).ok());
  const std::vector<float> before(game->gradients().begin(),
                                  game->gradients().end());
  game->parameters()[5] = std::numeric_limits<float>::infinity();
  const auto losses = game->Gradient(Players::kBoth, kNoKey);
  EXPECT_EQ(losses.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(losses.status().message()),
              testing::HasSubstr("generator.u"));
  EXPECT_THAT(before, testing::ElementsAreArray(game->gradients()));
}

TEST(SaddleGameTest, SameSeedSameGameOtherSeedAnother) {
  auto a = Bilinear({}, 1), b = Bilinear({}, 1), c = Bilinear({}, 2);
  EXPECT_THAT(a->parameters(), testing::ElementsAreArray(b->parameters()));
  EXPECT_NE(a->parameters()[0], c->parameters()[0]);
  EXPECT_EQ(a->solution()[0], b->solution()[0]);
  EXPECT_NE(a->solution()[0], c->solution()[0]);
}

TEST(SaddleGameTest, ScoreIsTheGeneratorsDistance) {
  auto game = Bilinear({.dimension = 3});
  Evaluator* evaluator = game->evaluator();
  EXPECT_EQ(evaluator->score_name(), "distance");
  std::vector<float> generator(3);
  for (int i = 0; i < 3; ++i) {
    generator[i] = static_cast<float>(game->solution()[i]);
  }
  generator[1] += 2;
  EXPECT_NEAR(evaluator->Score(generator, kNoKey).value(), 2, 1e-6);
  EXPECT_EQ(evaluator->Score(game->parameters(), kNoKey).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(evaluator->WriteSamples(generator, kNoKey, "grid.png").code(),
            absl::StatusCode::kUnimplemented);
}

TEST(QuadraticGameTest, ShiftsCancelOverThePeers) {
  const QuadraticSpec spec = {.dimension = 6, .noise = 0, .heterogeneity = 2.0};
  constexpr int kPeers = 5;
  std::vector<double> sum(12);
  double spread = 0;
  for (int rank = 0; rank < kPeers; ++rank) {
    auto game = Quadratic(spec, rank, kPeers);
    const auto x = game->parameters();
    for (size_t i = 0; i < x.size(); ++i) {
      x[i] = static_cast<float>(game->solution()[i]);
    }
    ASSERT_TRUE(game->Gradient(Players::kBoth, kNoKey).ok());
    for (size_t i = 0; i < x.size(); ++i) {
      sum[i] += game->gradients()[i];
      spread += std::abs(game->gradients()[i]);
    }
  }
  EXPECT_GT(spread, 10);
  for (const double s : sum) EXPECT_NEAR(s, 0, 1e-5);
}

TEST(QuadraticGameTest, PlainDescentReachesThePeersOwnSolution) {
  auto game = Quadratic();
  Play(*game, {.name = "sgd", .learning_rate = 0.1}, 400, kConstant);
  EXPECT_LT(game->DistanceToSolution(), 1e-5);
}

TEST(DynamicsTest, SimultaneousDescentSpiralsOutOnABilinearGame) {
  auto game = Bilinear();
  const double start = game->DistanceToSolution();
  Play(*game, {.name = "sgd", .learning_rate = 0.1}, 500, kConstant);
  // Each step multiplies the distance by √(1 + η²).
  EXPECT_NEAR(game->DistanceToSolution() / start, std::pow(1 + 0.1 * 0.1, 250),
              0.01);
}

TEST(DynamicsTest, OptimisticDescentConvergesOnABilinearGame) {
  for (const char* name : {"ogda", "osg"}) {
    auto game = Bilinear();
    Play(*game, {.name = name, .learning_rate = 0.1}, 2500, kConstant);
    EXPECT_LT(game->DistanceToSolution(), 1e-4) << name;
  }
}

// RMS distance per component.
double Error(const SaddleGame& game) {
  return game.DistanceToSolution() /
         std::sqrt(static_cast<double>(game.layout().size()));
}

// Returns the largest error of OAdam at a constant rate, once it has settled.
double SettledOAdamError(double rate, int settle) {
  auto game = Bilinear();
  double worst = 0;
  Play(*game, {.name = "oadam", .learning_rate = rate}, settle + 4000,
       [&](int t) {
         if (t > settle) worst = std::max(worst, Error(*game));
         return 1.0;
       });
  return worst;
}

TEST(DynamicsTest, OAdamSettlesWithinABoundThatFallsWithTheRate) {
  // OAdam's direction has the size of a sign, so at a constant rate it circles
  // the solution at a distance in proportion to the rate.
  const double coarse = SettledOAdamError(2e-2, 4000);
  const double fine = SettledOAdamError(1e-2, 8000);
  EXPECT_LT(coarse, 10 * 2e-2);
  EXPECT_LT(fine, 10 * 1e-2);
  EXPECT_LT(fine, 0.6 * coarse);
}

TEST(DynamicsTest, OAdamConvergesWhenTheRateDecays) {
  constexpr int kSteps = 16000;
  auto game = Bilinear();
  Play(*game, {.name = "oadam", .learning_rate = 1e-2}, kSteps,
       [](int t) { return 1 - static_cast<double>(t) / kSteps; });
  EXPECT_LT(Error(*game), 1e-3);
}

TEST(SpecTest, OutOfRangeIsRefused) {
  const auto code = [](const auto& made) { return made.status().code(); };
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(code(BilinearGame::Create({.dimension = 0}, 1)), kInvalid);
  EXPECT_EQ(code(BilinearGame::Create({.dimension = 8, .noise = -1}, 1)),
            kInvalid);
  EXPECT_EQ(code(QuadraticGame::Create({.heterogeneity = NAN}, 0, 1, 1)),
            kInvalid);
  EXPECT_EQ(code(QuadraticGame::Create({}, 3, 3, 1)), kInvalid);
  EXPECT_EQ(code(QuadraticGame::Create({}, -1, 3, 1)), kInvalid);
}

}  // namespace game_test
}  // namespace gossamer
