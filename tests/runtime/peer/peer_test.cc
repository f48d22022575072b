// The round loop over the simulated network: gossip and the centralized
// baseline, faults and ends.

#include "runtime/peer/peer.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/game/bilinear_game.h"
#include "algorithms/game/wrapped_game.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/telemetry/metrics_log.h"
#include "tests/runtime/peer/quadratic_fleet.h"
#include "tests/testing/forwarding_membership.h"
#include "tests/testing/sim_fleet.h"

namespace gossamer {
namespace peer_test {

TEST(PeerTest, TrainsAndSettles) {
  for (int overlap : {0, 1, 2, 5}) {
    for (const char* codec : {"dense-f32", "diff-int8", "innov-int4"}) {
      SimFleetOptions o = QuadraticFleet();
      o.peer.overlap_steps = overlap;
      o.codec = codec;
      SimFleet fleet(o);
      ASSERT_TRUE(fleet.Run()) << fleet.StatusOf(0);
      for (int r = 0; r < fleet.size(); ++r) {
        const RoundMetrics& m = fleet.peer(r).last_metrics();
        EXPECT_EQ(m.round, 60);
        EXPECT_EQ(m.skipped, 0) << codec << " h=" << overlap;
        // Corrections of the last h − 1 rounds are applied after them.
        EXPECT_EQ(m.corrections, 2 * (60 - std::max(0, overlap - 1)));
        EXPECT_EQ(fleet.recorder(r).Count("not_settled"), 0);
      }
    }
  }
}

TEST(PeerTest, OnePeerIsPlainTraining) {
  SimFleetOptions o = QuadraticFleet(1, 30);
  SimFleet fleet(o);
  ASSERT_TRUE(fleet.Run()) << fleet.StatusOf(0);
  auto game = Quadratic(0, 1, 0.1, 0.5);
  auto step = *LocalStep::Create(o.step, game.get());
  const RngKey key = RngKey(o.seed).Fold("step").Fold(uint64_t{0});
  for (uint64_t k = 0; k < 30; ++k) {
    ASSERT_TRUE(step->Run(k, k + 1, key.Fold(k)).ok());
  }
  EXPECT_THAT(fleet.game(0).parameters(),
              testing::ElementsAreArray(game->parameters()));
}

// CP-OAdam on M peers with batch m is OAdam on batch M·m: here, on one gradient
// that is the mean of the M peers' gradients.
TEST(PeerTest, CentralizedIsOneOptimizerOnTheMeanGradient) {
  for (const char* all_reduce :
       {"ring", "mesh", "all-gather", "recursive-doubling", "tree", "star"}) {
    for (int peers : {2, 3, 4, 5}) {
      SimFleetOptions o = QuadraticFleet(peers, 25);
      o.peer.averaging = Averaging::kGradients;
      o.peer.all_reduce = all_reduce;
      o.peer.overlap_steps = 0;
      o.schedule.graph = "complete";
      SimFleet fleet(o);
      ASSERT_TRUE(fleet.Run()) << fleet.StatusOf(0);
      std::vector<std::unique_ptr<Game>> games;
      for (int r = 0; r < peers; ++r) {
        games.push_back(Quadratic(r, peers, 0.1, 0.5));
      }
      auto step = *LocalStep::Create(o.step, games[0].get());
      const RngKey key = RngKey(o.seed).Fold("step");
      for (uint64_t k = 0; k < 25; ++k) {
        std::vector<double> mean(games[0]->layout().size());
        for (int r = 0; r < peers; ++r) {
          const auto x0 = games[0]->parameters();
          std::copy(x0.begin(), x0.end(), games[r]->parameters().begin());
          ASSERT_TRUE(games[r]
                          ->Gradient(Players::kBoth,
                                     key.Fold(static_cast<uint64_t>(r)).Fold(k))
                          .ok());
          for (size_t i = 0; i < mean.size(); ++i) {
            mean[i] += games[r]->gradients()[i] / static_cast<double>(peers);
          }
        }
        const std::vector<float> g(mean.begin(), mean.end());
        step->Apply(k, k + 1, g);
      }
      for (int r = 0; r < peers; ++r) {
        for (size_t i = 0; i < games[0]->parameters().size(); ++i) {
          ASSERT_NEAR(fleet.game(r).parameters()[i], games[0]->parameters()[i],
                      2e-4)
              << all_reduce << " " << peers;
          ASSERT_EQ(fleet.game(r).parameters()[i],
                    fleet.game(0).parameters()[i]);
        }
      }
    }
  }
}

// Latency favours few steps, here by far: all-gather has one, mesh and star
// two.  All peers choose alike and average as before.
TEST(PeerTest, CentralizedChoosesTheFastestAllReduce) {
  SimFleetOptions o = FarCentralizedFleet();
  SimFleet fleet(o);
  ASSERT_TRUE(fleet.Run()) << fleet.StatusOf(0);
  for (int r = 0; r < 4; ++r) {
    ASSERT_EQ(fleet.recorder(r).Count("all_reduce"), 1);
    for (const Event& e : fleet.recorder(r).events) {
      if (e.kind == "all_reduce") {
        EXPECT_THAT(e.detail, testing::HasSubstr("all-gather from here on"));
      }
    }
    EXPECT_LT(fleet.recorder(r).rounds.back().seconds_waiting, 0.06);
    EXPECT_THAT(fleet.game(r).parameters(),
                testing::ElementsAreArray(fleet.game(0).parameters()));
  }
}

// Gradients are rounded at random without bias.  All peers stay at one point to
// the bit, and end as near to the solution as with floats, except for the noise
// of rounding.
TEST(PeerTest, CentralizedTrainsOnQuantizedGradients) {
  constexpr int kPeers = 4;
  const auto distance_of = [](const std::string& codec) {
    SimFleetOptions o = QuadraticFleet(kPeers, 400);
    // The layers are large enough to be quantized.
    o.game = [](int rank) {
      return *QuadraticGame::Create(
          {.dimension = 1100, .noise = 0.1, .heterogeneity = 0.5}, rank, kPeers,
          7);
    };
    o.peer.averaging = Averaging::kGradients;
    o.peer.all_reduce = "all-gather";
    o.peer.overlap_steps = 0;
    o.schedule.graph = "complete";
    o.gradient_codec = codec;
    SimFleet fleet(o);
    EXPECT_TRUE(fleet.Run()) << fleet.StatusOf(0);
    double sum = 0;
    for (int r = 0; r < kPeers; ++r) {
      EXPECT_THAT(fleet.game(r).parameters(),
                  testing::ElementsAreArray(fleet.game(0).parameters()))
          << codec;
    }
    const auto solution =
        dynamic_cast<const QuadraticGame&>(fleet.game(0)).solution();
    for (size_t i = 0; i < solution.size(); ++i) {
      sum += std::pow(fleet.game(0).parameters()[i] - solution[i], 2);
    }
    return std::sqrt(sum / static_cast<double>(solution.size()));
  };
  const double floats = distance_of("dense-f32");
  EXPECT_LT(distance_of("qsgd:levels=127"), 1.1 * floats);
  EXPECT_LT(distance_of("qsgd:levels=7,coding=gamma"), 1.5 * floats);
}

TEST(PeerTest, CentralizedSurvivesLostConnections) {
  SimFleetOptions o = QuadraticFleet(4, 30);
  o.peer.averaging = Averaging::kGradients;
  o.peer.overlap_steps = 0;
  o.schedule.graph = "complete";
  SimFleet calm(o);
  ASSERT_TRUE(calm.Run());
  SimFleet fleet(o);
  fleet.Start();
  for (int i = 0; i < 12; ++i) {
    fleet.loop().RunFor(absl::Milliseconds(31));
    fleet.network().Break(SimFleet::IdOf(i % 4), SimFleet::IdOf((i + 1) % 4));
  }
  ASSERT_TRUE(fleet.Run()) << fleet.StatusOf(0);
  EXPECT_EQ(fleet.Hash(), calm.Hash());
}

// On the bilinear game DPOSG converges on every topology, while simultaneous
// descent (sgd, with gossip too) diverges.
TEST(PeerTest, DposgConvergesWhereDescentDiverges) {
  struct Case {
    const char* graph;
    int peers;
  };
  for (const Case& c :
       {Case{"ring", 6}, Case{"torus", 6}, Case{"complete", 4}, Case{"star", 5},
        Case{"hypercube", 8}, Case{"permuted-ring", 6},
        Case{"random-matching", 6}, Case{"one-peer-exponential", 8}}) {
    for (bool optimistic : {true, false}) {
      SimFleetOptions o = QuadraticFleet(c.peers, 600);
      o.schedule.graph = c.graph;
      o.peer.overlap_steps = 0;
      const char* name = optimistic ? "osg" : "sgd";
      o.step.generator = {.name = name, .learning_rate = 0.1};
      o.step.discriminator = {.name = name, .learning_rate = 0.1};
      o.game = [](int) { return *BilinearGame::Create({.dimension = 20}, 3); };
      SimFleet fleet(o);
      const double before = *fleet.game(0).evaluator()->Score(
          fleet.peer(0).generator(), RngKey(0));
      ASSERT_TRUE(fleet.Run()) << fleet.StatusOf(0);
      const double after = *fleet.game(0).evaluator()->Score(
          fleet.peer(0).generator(), RngKey(0));
      if (optimistic) {
        EXPECT_LT(after, 0.1 * before) << c.graph;
      } else {
        EXPECT_GT(after, 2 * before) << c.graph;
      }
    }
  }
}

TEST(PeerTest, BothOrdersAndSeveralMixingRounds) {
  for (bool step_then_mix : {false, true}) {
    std::vector<double> consensus;
    for (int t : {1, 4}) {
      SimFleetOptions o = QuadraticFleet(6, 80);
      o.peer.overlap_steps = 0;
      o.peer.mixing_rounds = t;
      o.peer.step_then_mix = step_then_mix;
      SimFleet fleet(o);
      ASSERT_TRUE(fleet.Run()) << fleet.StatusOf(0);
      EXPECT_EQ(fleet.peer(0).last_metrics().corrections, 160u * t);
      consensus.push_back(fleet.ConsensusDistance());
    }
    EXPECT_LT(consensus[1], consensus[0]);
  }
}

// The rounds only mix: three accelerated phases contract a ring of 8 by 1 /
// T_3(1/rho), three plain ones by rho^3, and the mean stays.
TEST(PeerTest, ChebyshevMixesFasterThanPlainGossip) {
  double left[2];
  for (const bool chebyshev : {false, true}) {
    SimFleetOptions o = QuadraticFleet(8, 6);
    o.game = [](int rank) { return Quadratic(rank, 8, 0, 0); };
    o.step.generator.learning_rate = o.step.discriminator.learning_rate = 1e-12;
    o.peer.overlap_steps = 0;
    o.peer.mixing_rounds = 3;
    o.peer.chebyshev = chebyshev;
    SimFleet fleet(o);
    for (int r = 0; r < 8; ++r) {
      fleet.game(r).parameters()[3] = static_cast<float>(r < 4 ? 1 : -1);
    }
    const double before = fleet.ConsensusDistance();
    const double mean = fleet.Mean()[3];
    ASSERT_TRUE(fleet.Run()) << fleet.StatusOf(0);
    left[chebyshev] = std::sqrt(fleet.ConsensusDistance() / before);
    EXPECT_NEAR(fleet.Mean()[3], mean, 1e-6);
  }
  const double rho = 1 - 2.0 / 3 * (1 - std::sqrt(0.5));
  EXPECT_NEAR(left[0], std::pow(rho, 18), 0.1 * std::pow(rho, 18));
  const double accelerated = std::pow(std::cosh(3 * std::acosh(1 / rho)), -6);
  EXPECT_NEAR(left[1], accelerated, 0.1 * accelerated);
}

TEST(PeerTest, KeepsGoingUnderFaultsAndConvergesAfterwards) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SimFleetOptions o = QuadraticFleet(6, 500);
    o.seed = seed;
    o.codec = seed % 2 ? "innov-int4" : "diff-int8";
    o.schedule.graph = seed % 3 ? "ring" : "permuted-ring";
    o.peer.overlap_steps = static_cast<int>(seed % 4);
    o.peer.deadline.kind = DeadlinePolicy::Kind::kAdaptive;
    o.step.decay_from_round = 1;
    o.step.generator.learning_rate = o.step.discriminator.learning_rate = 3e-3;
    SimFleet fleet(o);
    fleet.Start();
    const RngKey key = RngKey(seed).Fold("faults");
    for (uint64_t i = 0; i < 60; ++i) {
      fleet.loop().RunFor(absl::Milliseconds(50));
      const int a = static_cast<int>(key.Below(6, 4 * i));
      const int b = (a + 1 + static_cast<int>(key.Below(5, 4 * i + 1))) % 6;
      const absl::Time later =
          fleet.loop().Now() + absl::Milliseconds(key.Below(400, 4 * i + 2));
      switch (key.Below(3, 4 * i + 3)) {
        case 0:
          fleet.network().Break(SimFleet::IdOf(a), SimFleet::IdOf(b),
                                later - fleet.loop().Now());
          break;
        case 1:
          fleet.network().Stall(SimFleet::IdOf(a), SimFleet::IdOf(b), later);
          break;
        default:
          fleet.network().Freeze(SimFleet::IdOf(a), later);
      }
    }
    ASSERT_TRUE(fleet.Run()) << fleet.StatusOf(0) << " seed " << seed;
    for (int r = 0; r < 6; ++r) {
      EXPECT_EQ(fleet.recorder(r).Count("edge_refused"), 0);
      EXPECT_EQ(fleet.recorder(r).Count("not_settled"), 0)
          << "seed " << seed << " rank " << r;
    }
    EXPECT_LT(fleet.ConsensusDistance(), 1e-2) << "seed " << seed;
  }
}

// One peer is six times slower: it jumps, its edges stay, and the others do not
// wait for it.
TEST(PeerTest, SlowPeerJumps) {
  SimFleetOptions o = QuadraticFleet(6, 400);
  o.peer.deadline = {DeadlinePolicy::Kind::kFixed, absl::Milliseconds(15)};
  o.slowness = {{2, 6.0}};
  SimFleet fleet(o);
  ASSERT_TRUE(fleet.Run()) << fleet.StatusOf(0);
  EXPECT_LT(fleet.peer(2).steps(), 150u);
  EXPECT_EQ(fleet.peer(0).steps(), 400u);
  EXPECT_GT(fleet.peer(2).last_metrics().corrections, 40u);
}

// A membership that reports the fleet's end only once its peer is past it.
class LateToHear final : public ForwardingMembership {
 public:
  LateToHear(std::unique_ptr<Membership> fleet, uint64_t stop, uint64_t hears)
      : ForwardingMembership(std::move(fleet)), stop_(stop), hears_(hears) {}
  StopState stop() const override {
    if (begun_ < hears_) return {};
    return {.round = stop_, .committed = true};
  }
  void BeginRound(uint64_t round) override { begun_ = round; }
  void AcknowledgeStop(uint64_t round) override { ADD_FAILURE() << round; }
  void RequestStop() override {}

 private:
  const uint64_t stop_, hears_;
  uint64_t begun_ = 0;
};

TEST(PeerTest, PeerPastTheAgreedEndStopsAtOnce) {
  SimFleetOptions o = QuadraticFleet(2, 500);
  o.membership = [](std::unique_ptr<Membership> fleet) {
    return std::make_unique<LateToHear>(std::move(fleet), 20, 30);
  };
  SimFleet fleet(o);
  ASSERT_TRUE(fleet.Run()) << fleet.StatusOf(0);
  for (int rank : {0, 1}) {
    EXPECT_TRUE(fleet.peer(rank).stopped());
    EXPECT_EQ(fleet.peer(rank).round(), 31u);
  }
}

// A peer that is cut off from all neighbours takes a deadline per round; the
// others keep their own speed.
TEST(PeerTest, PeerAloneDoesNotRunAhead) {
  SimFleetOptions o = QuadraticFleet(4, 1000);
  o.peer.deadline = {DeadlinePolicy::Kind::kFixed, absl::Milliseconds(40)};
  SimFleet fleet(o);
  fleet.Start();
  fleet.loop().RunFor(absl::Seconds(1));
  const absl::Duration cut = absl::Seconds(4);
  for (int other : {1, 3}) {
    fleet.network().Break(SimFleet::IdOf(0), SimFleet::IdOf(other), cut);
  }
  const uint64_t alone = fleet.peer(0).round();
  const uint64_t among = fleet.peer(2).round();
  fleet.loop().RunFor(cut);
  EXPECT_LE(fleet.peer(0).round() - alone, 4000u / 40 + 2);
  EXPECT_GE(fleet.peer(2).round() - among, 300u);
  ASSERT_TRUE(fleet.Run()) << fleet.StatusOf(0);
}

// A game whose gradient fails at one rank from some call on.
class SickGame final : public Game {
 public:
  SickGame(std::unique_ptr<Game> healthy, uint64_t from)
      : healthy_(std::move(healthy)), from_(from) {}
  const ParameterLayout& layout() const override { return healthy_->layout(); }
  DeviceSpan<float> device_parameters() override {
    return healthy_->device_parameters();
  }
  DeviceSpan<const float> device_gradients() const override {
    return healthy_->device_gradients();
  }
  absl::StatusOr<Losses> Gradient(Players players, RngKey key) override {
    if (calls_++ >= from_) {
      return absl::DataLossError("the gradient of generator.u is not finite");
    }
    return healthy_->Gradient(players, key);
  }

 private:
  std::unique_ptr<Game> healthy_;
  const uint64_t from_;
  uint64_t calls_ = 0;
};

TEST(PeerTest, NanGradientsStopThatPeersStepsOnly) {
  SimFleetOptions o = QuadraticFleet(4, 40);
  o.game = [](int rank) -> std::unique_ptr<Game> {
    auto game = Quadratic(rank, 4, 0.1, 0.5);
    if (rank != 1) return game;
    return std::make_unique<SickGame>(std::move(game), 10);
  };
  SimFleet fleet(o);
  ASSERT_TRUE(fleet.Run()) << fleet.StatusOf(1);
  EXPECT_EQ(fleet.recorder(1).Count("step_skipped"), 30);
  EXPECT_THAT(fleet.recorder(1).events[0].detail,
              testing::HasSubstr("generator.u"));
  for (int r = 0; r < 4; ++r) {
    EXPECT_EQ(fleet.peer(r).last_metrics().round, 40u);
    for (float v : fleet.game(r).parameters()) ASSERT_TRUE(std::isfinite(v));
  }
}

// A game of three players, of which one says no loss and one has no tensor.
class ThreePlayers final : public WrappedGame {
 public:
  explicit ThreePlayers(std::unique_ptr<Game> game)
      : WrappedGame(std::move(game)),
        layout_(WrappedGame::layout().segments(), {"G", "D", "S"}) {}
  const ParameterLayout& layout() const override { return layout_; }
  absl::StatusOr<Losses> Gradient(Players players, RngKey key) override {
    absl::StatusOr<Losses> losses = WrappedGame::Gradient(players, key);
    if (losses.ok()) *losses = {0.5, std::nan(""), 2};
    return losses;
  }

 private:
  const ParameterLayout layout_;
};

TEST(PeerTest, LossesHaveThePlayersNames) {
  SimFleetOptions o = QuadraticFleet(2, 5);
  o.game = [](int rank) -> std::unique_ptr<Game> {
    auto game = Quadratic(rank, 2, 0.1, 0.5);
    if (rank == 0) return game;
    return std::make_unique<ThreePlayers>(std::move(game));
  };
  SimFleet fleet(o);
  ASSERT_TRUE(fleet.Run()) << fleet.StatusOf(0);
  for (const RoundMetrics& m : fleet.recorder(0).rounds) {
    ASSERT_THAT(m.losses, testing::SizeIs(2));
    EXPECT_EQ(m.losses[0].player, "generator");
    EXPECT_EQ(m.losses[1].player, "discriminator");
    EXPECT_TRUE(std::isfinite(m.losses[1].value));
  }
  ASSERT_THAT(fleet.recorder(1).rounds, testing::SizeIs(5));
  for (const RoundMetrics& m : fleet.recorder(1).rounds) {
    const std::string line = ToJsonLine(m);
    EXPECT_THAT(line, testing::HasSubstr(
                          R"("G_loss":0.5,"D_loss":null,"S_loss":2.0,)"));
    EXPECT_EQ(ToJsonLine(*ParseMetricsLine(line)), line);
  }
}

// One peer's bad gradients are left out; if no peer has a gradient at the
// common x, the run ends.
TEST(PeerTest, ACentralizedFleetEndsIfNobodyHasAGradientForLong) {
  for (const int sick : {1, 4}) {
    SimFleetOptions o = FarCentralizedFleet();
    o.network.link.latency = absl::Milliseconds(1);
    o.peer.rounds = 300;
    o.game = [sick](int rank) -> std::unique_ptr<Game> {
      auto game = Quadratic(rank, 4, 0.1, 0.5);
      if (rank >= sick) return game;
      return std::make_unique<SickGame>(std::move(game), 50);
    };
    SimFleet fleet(o);
    EXPECT_EQ(fleet.Run(), sick == 1) << fleet.StatusOf(0);
    EXPECT_EQ(fleet.peer(0).round(), sick == 1 ? 301u : 150u);
    for (int r = 0; sick == 4 && r < 4; ++r) {
      EXPECT_EQ(fleet.StatusOf(r).code(), absl::StatusCode::kDataLoss);
      EXPECT_THAT(std::string(fleet.StatusOf(r).message()),
                  testing::HasSubstr("round 150: no peer has had a gradient"));
    }
  }
}

// Without deadlines a dead neighbour ends the run, with a message that says
// what to do.
TEST(PeerTest, SilentNeighbourEndsTheRunAfterTheLivenessLimit) {
  SimFleetOptions o = QuadraticFleet(4, 200);
  o.peer.liveness_limit = absl::Seconds(20);
  SimFleet fleet(o);
  fleet.Start();
  fleet.loop().RunFor(absl::Milliseconds(100));
  fleet.network().Freeze(SimFleet::IdOf(2), absl::InfiniteFuture());
  EXPECT_FALSE(fleet.Run(absl::Minutes(2)));
  EXPECT_EQ(fleet.StatusOf(1).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(fleet.StatusOf(1).message()),
              testing::AllOf(testing::HasSubstr("peer 3"),
                             testing::HasSubstr("liveness_limit")));
}

}  // namespace peer_test
}  // namespace gossamer
