// The contract of every gossip method: the mean of the parameters follows the
// peers' own steps and nothing else, mixing alone brings peers together, no
// timing changes a bit, and a stopped fleet resumes as if it had not been
// stopped.
//
// A method is a row of the table; a codec without one gets the usual row.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "algorithms/compress/codec.h"
#include "algorithms/method/registry.h"
#include "gtest/gtest.h"
#include "tests/runtime/peer/matrix_game.h"
#include "tests/testing/sim_fleet.h"

namespace gossamer {
namespace gossip_conformance_test {

constexpr int kPeers = 6;

std::unique_ptr<Game> Of(std::unique_ptr<Game> game, bool tracked) {
  if (!tracked) return game;
  return FindMethod("gradient-tracking")->game(std::move(game));
}

// A row of the table: a method and its settings, with the bounds on what it
// reaches.
struct Mixing {
  const char* name;
  const char* codec;
  int overlap = 1;
  const char* graph = "ring";
  const char* optimizer = "oadam";
  double gamma = 0;  // 0: the codec's own
  // The share of the consensus distance that 400 rounds of mixing leave.
  double contraction = 1;
  double clip_radius = 0;  // 0: no clipping
  bool tracked = false;
  double apart = 1;  // standard deviation at the start of mixing
  int mixing_rounds = 1;
  bool chebyshev = false;

  bool dual() const { return OwnRule(optimizer) != nullptr; }
  // One-peer-exponential needs a power of two.
  int peers() const {
    return std::string_view(graph) == "one-peer-exponential" ? 8 : kPeers;
  }
};

constexpr Mixing kMethods[] = {
    {"dense", "dense-f32", 1, "ring", "oadam", 0, 1e-5},
    {"bf16", "dense-bf16", 1, "ring", "oadam", 0, 2e-3},
    {"diff_int8", "diff-int8", 1, "ring", "oadam", 0, 0.01},
    {"choco_int8", "innov-int8", 1, "ring", "oadam", 0, 1e-5},
    {"choco_int4", "innov-int4", 1, "ring", "oadam", 0, 1e-5},
    {"choco_lm2", "innov-lm2", 0, "ring", "oadam", 0, 1e-4},
    {"choco_sign", "innov-sign", 1, "ring", "oadam", 0, 0.02},
    {"choco_topk", "innov-topk:k=1024", 1, "ring", "oadam", 0, 0.01},
    {"choco_deep", "innov-int4", 3, "ring", "oadam", 0, 1e-4},
    {"choco_random", "innov-int8", 1, "permuted-ring", "oadam", 0, 1e-5},
    {"choco_exponential", "innov-int8", 1, "one-peer-exponential", "oadam", 0,
     1e-5},
    {"choco_skewed", "innov-int8", 1, "locality-skewed", "oadam", 0, 1e-5},
    {"automatic", "auto", 1, "ring", "oadam", 0, 1e-5},
    {"fragments", "innov-int4:fragments=3", 1, "ring", "oadam", 0, 0.01},
    {"power_gossip", "power-gossip", 1, "ring", "oadam", 0, 0.1},
    {"choco_topk_default", "innov-topk", 1, "ring", "oadam", 0, 0.02},
    {"dyna_cold_default", "dyna", 0, "ring", "cold", 0, 0.05, 0, false, 0.1},
    {"clipped", "innov-int4", 1, "ring", "oadam", 0, 1e-5, 0.1},
    {"clipped_deep", "innov-int4", 3, "ring", "oadam", 0, 1e-3, 0.1},
    {"clipped_stateless", "diff-int8", 1, "permuted-ring", "oadam", 0, 0.02,
     0.1},
    {"clipped_fragments", "innov-int4:fragments=3", 1, "ring", "oadam", 0, 0.05,
     0.1},
    {"clipped_shared", "power-gossip", 1, "ring", "oadam", 0, 0.6, 0.01},
    {"tracking", "innov-int4", 1, "ring", "ogda", 0, 1e-5, 0, true},
    {"tracking_deep", "innov-int8", 3, "ring", "ogda", 0, 1e-4, 0, true},
    {"tracking_random", "innov-int8", 1, "permuted-ring", "ogda", 0, 1e-5, 0,
     true},
    {"optimistic", "innov-int4", 1, "ring", "osg", 0, 1e-5},
    {.name = "more_rounds",
     .codec = "innov-int8",
     .overlap = 0,
     .contraction = 1e-5,
     .mixing_rounds = 3},
    {.name = "chebyshev",
     .codec = "dense-f32",
     .overlap = 0,
     .contraction = 1e-5,
     .mixing_rounds = 3,
     .chebyshev = true},
    {"cold", "innov-int4", 0, "ring", "cold", 0.5, 1e-5},
    {"dyna_cold", "dyna:scale=4", 0, "ring", "cold", 0.2, 0.05},
};

class GossipConformanceTest : public testing::TestWithParam<Mixing> {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("gossamer_conformance_" + std::to_string(getpid()));
    std::filesystem::remove_all(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static SimFleetOptions Options(uint64_t rounds, double rate, double noise,
                                 double apart = 0) {
    const Mixing& m = GetParam();
    SimFleetOptions o;
    o.peers = m.peers();
    o.peer.rounds = rounds;
    o.peer.overlap_steps = m.overlap;
    o.peer.step_then_mix = m.dual();
    o.peer.gamma = m.gamma;
    o.peer.mixing_rounds = m.mixing_rounds;
    o.peer.chebyshev = m.chebyshev;
    o.peer.limits.clip_radius = m.clip_radius;
    o.codec = m.codec;
    o.schedule.graph = m.graph;
    if (o.schedule.graph == "locality-skewed") {
      o.schedule.sites = "near:1-3 far:4-6";
    }
    o.step.generator = {.name = m.optimizer,
                        .make = OwnRule(m.optimizer),
                        .learning_rate = rate};
    o.step.discriminator = o.step.generator;
    o.game = [=](int rank) {
      return Of(std::make_unique<MatrixGame>(rank, m.peers(), noise, apart),
                m.tracked);
    };
    return o;
  }

  std::filesystem::path folder_;
};

// The table, and a row for each codec that has none of its own.
std::vector<Mixing> Rows() {
  std::vector<Mixing> rows(std::begin(kMethods), std::end(kMethods));
  for (const std::string_view name : Codec::Names()) {
    const bool listed = std::ranges::any_of(kMethods, [&](const Mixing& m) {
      const std::string_view codec = m.codec;
      return codec.substr(0, codec.find(':')) == name;
    });
    // Names are literals, so they end with a zero.
    if (!listed) {
      rows.push_back(
          {.name = name.data(), .codec = name.data(), .contraction = 0.1});
    }
  }
  return rows;
}

INSTANTIATE_TEST_SUITE_P(Methods, GossipConformanceTest,
                         testing::ValuesIn(Rows()), [](const auto& info) {
                           std::string name = info.param.name;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

TEST_P(GossipConformanceTest, MixingAloneKeepsTheMeanAndContracts) {
  SimFleet fleet(Options(400, 1e-3, 0, GetParam().apart));
  const std::vector<double> before = fleet.Mean();
  const double apart = fleet.ConsensusDistance();
  ASSERT_TRUE(fleet.Run()) << fleet.StatusOf(0);
  const std::vector<double> after = fleet.Mean();
  double drift = 0;
  for (size_t i = 0; i < before.size(); ++i) {
    drift += (after[i] - before[i]) * (after[i] - before[i]);
  }
  // The tolerance is the rounding of 400 additions to values of about 1.
  // Rounding of duals moves their sum, and every step after that adds it to the
  // mean.
  EXPECT_LT(std::sqrt(drift / static_cast<double>(before.size())),
            GetParam().dual() ? 3e-5 : 2e-6);
  EXPECT_LT(std::sqrt(fleet.ConsensusDistance() / apart),
            GetParam().contraction);
  const auto& clipping = fleet.peer(0).last_metrics().clipping;
  ASSERT_EQ(clipping.has_value(), GetParam().clip_radius > 0);
  if (!clipping) return;
  EXPECT_GT(clipping->clipped, 0u);
  EXPECT_EQ(fleet.recorder(0).rounds[0].clipping->clipped > 0,
            fleet.recorder(0).rounds[0].corrections > 0);
}

// Codec::largest_gamma is stable on the graph on which top-k bears the least;
// not far above it, mixing diverges.
TEST(LargestStepSizeTest, ContractsThereAndNotFarAbove) {
  const auto left = [](const char* codec, const char* graph,
                       double of_largest) {
    SimFleetOptions o;
    o.peers = kPeers;
    o.peer.rounds = 400;
    o.codec = codec;
    o.schedule.graph = graph;
    o.step.generator = o.step.discriminator = {.name = "sgd"};
    o.game = [](int rank) {
      return std::make_unique<MatrixGame>(rank, kPeers, 0, /*apart=*/1);
    };
    const auto made = Codec::Create(codec, MatrixGame(0, kPeers, 0).layout());
    o.peer.gamma = of_largest * (*made)->largest_gamma();
    SimFleet fleet(o);
    const double apart = fleet.ConsensusDistance();
    EXPECT_TRUE(fleet.Run()) << fleet.StatusOf(0);
    return std::sqrt(fleet.ConsensusDistance() / apart);
  };
  for (const char* graph : {"ring", "complete"}) {
    for (const auto& [codec, contraction, above] :
         {std::tuple("innov-topk:k=256", 0.01, 5.0),
          {"innov-sign", 0.05, 1.0},
          {"innov-lm2", 1e-4, 1.0},
          {"dyna", 0.01, 1.0}}) {
      EXPECT_LT(left(codec, graph, 1), contraction) << codec << " " << graph;
      if (above == 1) continue;
      EXPECT_GT(left(codec, graph, above), 0.5) << codec << " " << graph;
    }
  }
}

TEST_P(GossipConformanceTest, NoTimingChangesABit) {
  SimFleetOptions o = Options(30, 1e-2, 0.1);
  SimFleet near(o);
  ASSERT_TRUE(near.Run()) << near.StatusOf(0);
  o.network.link.latency = absl::Milliseconds(70);
  o.network.link.jitter = 0.5;
  o.slowness = {{1, 3.0}, {4, 0.3}};
  o.step_jitter = 0.8;
  SimFleet far(o);
  ASSERT_TRUE(far.Run()) << far.StatusOf(0);
  EXPECT_EQ(near.Hash(), far.Hash());
}

TEST_P(GossipConformanceTest, AStoppedFleetGoesOnToTheBit) {
  SimFleetOptions o = Options(40, 1e-2, 0.1);
  SimFleet whole(o);
  ASSERT_TRUE(whole.Run()) << whole.StatusOf(0);
  o.checkpoints = folder_;
  uint64_t stopped_at = 0;
  {
    SimFleet first(o);
    first.Start();
    first.loop().RunFor(absl::Milliseconds(150));
    first.fleet().RequestStop();
    ASSERT_TRUE(first.Run()) << first.StatusOf(0);
    stopped_at = first.peer(0).round();
  }
  ASSERT_LT(stopped_at, 40u);
  o.resume_round = stopped_at;
  o.incarnation = 2;
  SimFleet second(o);
  ASSERT_TRUE(second.Run()) << second.StatusOf(0);
  EXPECT_EQ(second.Hash(), whole.Hash());
}

// Distances of the mean and of the peers from the solution of the average game.
struct Distances {
  double mean = 0, peers = 0;
};
Distances DistancesOf(SimFleet& fleet, const std::vector<double>& solution) {
  Distances d;
  const std::vector<double> mean = fleet.Mean();
  for (size_t i = 0; i < solution.size(); ++i) {
    d.mean += std::pow(mean[i] - solution[i], 2);
    for (int r = 0; r < fleet.size(); ++r) {
      d.peers += std::pow(fleet.game(r).parameters()[i] - solution[i], 2) /
                 fleet.size();
    }
  }
  d.mean = std::sqrt(d.mean / static_cast<double>(solution.size()));
  d.peers = std::sqrt(d.peers / static_cast<double>(solution.size()));
  return d;
}

// The main result of gradient tracking, with compression BEER's (theorem 1):
// the exact solution at a constant learning rate, however much games differ,
// also behind an exchange that hides, and with neighbours that change.  Gossip
// stops at a distance there.
TEST(GradientTrackingTest, ConvergesToTheExactSolutionWhereGossipStops) {
  const auto run = [](bool tracked, const char* optimizer, const char* codec,
                      int overlap, const char* graph, double rate) {
    SimFleetOptions o;
    o.peers = kPeers;
    o.peer.rounds = 1500;
    o.peer.overlap_steps = overlap;
    o.codec = codec;
    o.schedule.graph = graph;
    o.step.generator = {
        .name = optimizer, .make = OwnRule(optimizer), .learning_rate = rate};
    o.step.discriminator = o.step.generator;
    o.game = [=](int rank) {
      return Of(std::make_unique<MatrixGame>(rank, kPeers, 0), tracked);
    };
    SimFleet fleet(o);
    EXPECT_TRUE(fleet.Run()) << fleet.StatusOf(0);
    const MatrixGame game(0, kPeers, 0);
    const std::span<const double> s = game.solution();
    return DistancesOf(fleet, {s.begin(), s.end()});
  };
  for (const auto& [optimizer, codec, overlap, schedule, rate] :
       {std::tuple("sgd", "innov-int8", 1, "ring", 0.03),
        {"sgd", "innov-int4", 1, "ring", 0.03},
        {"ogda", "innov-int4", 1, "ring", 0.03},
        {"ogda", "innov-int4", 0, "ring", 0.03},
        {"ogda", "innov-int8", 3, "ring", 0.02},
        {"ogda", "innov-int4", 1, "permuted-ring", 0.03}}) {
    SCOPED_TRACE(testing::Message() << optimizer << " " << codec << " "
                                    << overlap << " " << schedule);
    const Distances gossip =
        run(false, optimizer, codec, overlap, schedule, rate);
    EXPECT_GT(gossip.peers, 0.03);
    const Distances d = run(true, optimizer, codec, overlap, schedule, rate);
    EXPECT_LT(d.mean, 1e-5);
    EXPECT_LT(d.peers, 1e-5);
  }
}

}  // namespace gossip_conformance_test
}  // namespace gossamer
