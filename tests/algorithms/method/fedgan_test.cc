// FedGAN over the real all-reduce in the simulated network: each peer takes its
// own steps, then all take the exact mean of all parameters.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "algorithms/game/bilinear_game.h"
#include "algorithms/game/quadratic_game.h"
#include "algorithms/method/registry.h"
#include "runtime/config/compose.h"
#include "runtime/config/run_config.h"
#include "tests/testing/sim_fleet.h"

namespace gossamer {
namespace fedgan_test {

constexpr int kDimension = 40;

// A quadratic game without noise that differs between peers.
std::unique_ptr<Game> Quadratic(int rank, int peers) {
  return *QuadraticGame::Create({.dimension = kDimension, .heterogeneity = 1},
                                rank, peers, 7);
}

SimFleetOptions Fleet(int peers, int steps_per_round, uint64_t rounds) {
  SimFleetOptions o;
  o.peers = peers;
  o.peer.rounds = rounds;
  o.peer.averaging = Averaging::kParameters;
  o.peer.steps_per_round = steps_per_round;
  o.peer.overlap_steps = 0;
  o.schedule.graph = "complete";
  o.step.generator = {.name = "oadam", .learning_rate = 1e-2};
  o.step.discriminator = o.step.generator;
  o.game = [peers](int rank) { return Quadratic(rank, peers); };
  return o;
}

// The reference without a fleet: returns the parameters of all peers after the
// last round.
std::vector<float> Reference(const SimFleetOptions &o) {
  std::vector<std::unique_ptr<Game>> games;
  std::vector<std::unique_ptr<LocalStep>> steps;
  for (int r = 0; r < o.peers; ++r) {
    games.push_back(o.game(r));
    steps.push_back(*LocalStep::Create(o.step, games.back().get()));
  }
  const size_t size = games[0]->parameters().size();
  const RngKey key = RngKey(o.seed).Fold("step");
  uint64_t k = 0;
  for (uint64_t round = 1; round <= o.peer.rounds; ++round) {
    for (int i = 0; i < o.peer.steps_per_round; ++i, ++k) {
      for (size_t r = 0; r < games.size(); ++r) {
        EXPECT_TRUE(steps[r]->Run(k, round, key.Fold(r).Fold(k)).ok());
      }
    }
    for (size_t i = 0; i < size; ++i) {
      double sum = 0;
      for (const auto &game : games) sum += game->parameters()[i];
      for (const auto &game : games) {
        game->parameters()[i] =
            static_cast<float>(sum / static_cast<double>(games.size()));
      }
    }
  }
  const auto x = games[0]->parameters();
  return {x.begin(), x.end()};
}

void ExpectEqualPeers(SimFleet &fleet) {
  for (int r = 1; r < fleet.size(); ++r) {
    EXPECT_THAT(fleet.game(r).parameters(),
                testing::ElementsAreArray(fleet.game(0).parameters()))
        << "peer " << r;
  }
}

TEST(FedganTest, PeersAreEqualAfterEveryRoundAndAtTheMean) {
  for (const char *all_reduce : {"ring", "mesh", "all-gather", "tree"}) {
    for (const int peers : {2, 3, 5}) {
      for (const int steps : {1, 4}) {
        for (const uint64_t rounds : {1, 2, 3, 9}) {
          SimFleetOptions o = Fleet(peers, steps, rounds);
          o.peer.all_reduce = all_reduce;
          SCOPED_TRACE(testing::Message()
                       << all_reduce << ", " << peers << " peers, " << steps
                       << " steps, " << rounds << " rounds");
          SimFleet fleet(o);
          ASSERT_TRUE(fleet.Run()) << fleet.StatusOf(0);
          EXPECT_EQ(fleet.peer(0).steps(), steps * rounds);
          ExpectEqualPeers(fleet);
          const std::vector<float> x = Reference(o);
          for (size_t i = 0; i < x.size(); ++i) {
            ASSERT_NEAR(fleet.game(0).parameters()[i], x[i], 2e-4) << i;
          }
        }
      }
    }
  }
}

// The mean of the results of one step each is a step along the mean gradient.
TEST(FedganTest, OneStepOfDescentIsAStepAlongTheMeanGradient) {
  SimFleetOptions o = Fleet(4, 1, 20);
  o.step.generator.name = o.step.discriminator.name = "sgd";
  SimFleet parameters(o);
  ASSERT_TRUE(parameters.Run()) << parameters.StatusOf(0);
  o.peer.averaging = Averaging::kGradients;
  SimFleet gradients(o);
  ASSERT_TRUE(gradients.Run()) << gradients.StatusOf(0);
  for (int i = 0; i < 2 * kDimension; ++i) {
    EXPECT_NEAR(parameters.game(0).parameters()[i],
                gradients.game(0).parameters()[i], 1e-5);
  }
}

// Each peer keeps its own optimism between means, while the game of all peers
// is one game.
TEST(FedganTest, ConvergesOnTheBilinearGame) {
  SimFleetOptions o = Fleet(4, 5, 400);
  o.step.generator = {.name = "ogda", .learning_rate = 0.2};
  o.step.discriminator = o.step.generator;
  o.game = [](int) {
    return *BilinearGame::Create({.dimension = kDimension}, 7);
  };
  SimFleet fleet(o);
  ASSERT_TRUE(fleet.Run()) << fleet.StatusOf(0);
  ExpectEqualPeers(fleet);
  EXPECT_LT(
      dynamic_cast<const SaddleGame &>(fleet.game(0)).DistanceToSolution(),
      1e-3);
}

TEST(FedganTest, LostConnectionsChangeNothing) {
  const SimFleetOptions o = Fleet(4, 3, 20);
  SimFleet calm(o);
  ASSERT_TRUE(calm.Run()) << calm.StatusOf(0);
  SimFleet fleet(o);
  fleet.Start();
  for (int i = 0; i < 12; ++i) {
    fleet.loop().RunFor(absl::Milliseconds(31));
    fleet.network().Break(SimFleet::IdOf(i % 4), SimFleet::IdOf((i + 1) % 4));
  }
  ASSERT_TRUE(fleet.Run()) << fleet.StatusOf(0);
  EXPECT_EQ(fleet.Hash(), calm.Hash());
}

TEST(FedganTest, AMeanThatIsNotFiniteEndsTheRunOfAll) {
  SimFleetOptions o = Fleet(3, 2, 20);
  o.step.generator = {.name = "sgd", .learning_rate = 1e30};
  o.step.discriminator = o.step.generator;
  SimFleet fleet(o);
  EXPECT_FALSE(fleet.Run());
  for (int r = 0; r < 3; ++r) {
    EXPECT_EQ(fleet.StatusOf(r).code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(std::string(fleet.StatusOf(r).message()),
                testing::HasSubstr("parameters is not finite; lower the "
                                   "learning rates"));
  }
}

TEST(FedganTest, AConfigurationChoosesItByName) {
  const auto config = ParseRunConfig(
      "algorithm: \"fedgan\" step { steps_per_round: 20 }", "f.textproto");
  ASSERT_TRUE(config.ok()) << config.status();
  const auto spec = PeerSpecOf(*config);
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->averaging, Averaging::kParameters);
  EXPECT_EQ(spec->steps_per_round, 20);
  EXPECT_EQ(spec->overlap_steps, 0);
}

TEST(FedganTest, GradientCodecsAndOverlapAreRefused) {
  const auto config = ParseRunConfig(
      "algorithm: \"fedgan\" "
      "mixing { gradient_codec: \"qsgd\" overlap_steps: 1 }",
      "f.textproto");
  EXPECT_THAT(
      std::string(config.status().message()),
      testing::AllOf(
          testing::HasSubstr("fedgan sends no gradients: leave it out"),
          testing::HasSubstr("averages the parameters of the very round")));
}

}  // namespace fedgan_test
}  // namespace gossamer
