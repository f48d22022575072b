// Clipped mixing: a peer whose parameters are nonsense, finite and far away,
// moves its neighbours by no more than they allow.

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/runtime/peer/quadratic_fleet.h"
#include "tests/testing/sim_fleet.h"

namespace gossamer {
namespace clipping_test {

constexpr int kPeers = 8, kLiar = 3;

// A game that sets its parameters to +-1e6 before every emission, whatever
// mixing has made of them.
class Liar final : public Game {
 public:
  explicit Liar(std::unique_ptr<Game> honest)
      : honest_(std::move(honest)), still_(layout().size()) {
    Lie();
  }
  const ParameterLayout& layout() const override { return honest_->layout(); }
  DeviceSpan<float> device_parameters() override {
    return honest_->device_parameters();
  }
  DeviceSpan<const float> device_gradients() const override { return still_; }
  absl::StatusOr<Losses> Gradient(Players players, RngKey key) override {
    Lie();
    return Losses{};
  }

 private:
  void Lie() {
    const std::span<float> x = honest_->parameters();
    for (size_t i = 0; i < x.size(); ++i) x[i] = i % 2 ? 1e6f : -1e6f;
  }
  std::unique_ptr<Game> honest_;
  const std::vector<float> still_;
};

SimFleetOptions Fleet(double clip_radius, bool liar) {
  SimFleetOptions o = QuadraticFleet(kPeers, 600);
  o.schedule.graph = "complete";
  o.codec = "innov-int4";
  o.peer.limits.clip_radius = clip_radius;
  o.game = [liar](int rank) -> std::unique_ptr<Game> {
    auto game = Quadratic(rank, kPeers, 0.1, 0.1);
    if (!liar || rank != kLiar) return game;
    return std::make_unique<Liar>(std::move(game));
  };
  return o;
}

// Returns the root mean square over the parameters of the honest peer that is
// furthest from the solution.
double DistanceToSolution(SimFleet& fleet) {
  const auto honest = Quadratic(0, kPeers, 0.1, 0.1);
  const auto solution = dynamic_cast<const QuadraticGame&>(*honest).solution();
  double furthest = 0;
  for (int rank = 0; rank < kPeers; ++rank) {
    if (rank == kLiar) continue;
    double sum = 0;
    for (size_t i = 0; i < solution.size(); ++i) {
      sum += std::pow(fleet.game(rank).parameters()[i] - solution[i], 2);
    }
    furthest = std::max(furthest,
                        std::sqrt(sum / static_cast<double>(solution.size())));
  }
  return furthest;
}

double AfterTraining(SimFleetOptions o) {
  SimFleet fleet(std::move(o));
  EXPECT_TRUE(fleet.Run()) << fleet.StatusOf(0);
  return DistanceToSolution(fleet);
}

TEST(ClippingTest, OneLyingPeerRuinsAFleetThatDoesNotClip) {
  EXPECT_LT(AfterTraining(Fleet(0, false)), 0.05);
  EXPECT_GT(AfterTraining(Fleet(0, true)), 1e4);
}

TEST(ClippingTest, AFleetThatClipsConvergesDespiteALyingPeer) {
  for (const char* graph : {"complete", "random-regular", "permuted-ring"}) {
    for (const char* codec : {"innov-int4", "diff-int8", "dense-f32"}) {
      SCOPED_TRACE(std::string(graph) + " " + codec);
      SimFleetOptions o = Fleet(0.02, true);
      o.schedule.graph = graph;
      o.schedule.degree = 4;
      o.codec = codec;
      EXPECT_LT(AfterTraining(o), 0.1);
    }
  }
}

// Events name the liar, and metrics have its distance.
TEST(ClippingTest, EventsNameAPeerWhoseParametersAreFarAway) {
  SimFleet fleet(Fleet(0.02, true));
  ASSERT_TRUE(fleet.Run()) << fleet.StatusOf(0);
  const RoundMetrics& last = fleet.peer(0).last_metrics();
  ASSERT_TRUE(last.clipping.has_value());
  EXPECT_GE(last.clipping->clipped, 599u);
  EXPECT_NEAR(last.clipping->longest, 1e6, 1e4);
  int of_liar = 0;
  for (const Event& e : fleet.recorder(0).events) {
    if (e.kind != "edge_clipped") continue;
    of_liar += e.detail.starts_with("peer 4: ");
  }
  EXPECT_EQ(of_liar, 3) << "its first, 10th and 100th";
}

// A radius that no difference exceeds changes no bit, and is measured.
TEST(ClippingTest, ADifferenceWithinTheRadiusIsNotChanged) {
  SimFleetOptions o = Fleet(0, false);
  SimFleet plain(o);
  ASSERT_TRUE(plain.Run());
  EXPECT_FALSE(plain.peer(0).last_metrics().clipping.has_value());
  o.peer.limits.clip_radius = 1e3;
  SimFleet clipping(o);
  ASSERT_TRUE(clipping.Run());
  EXPECT_EQ(clipping.Hash(), plain.Hash());
  const auto& seen = clipping.peer(0).last_metrics().clipping;
  EXPECT_EQ(seen->clipped, 0u);
  EXPECT_GT(seen->longest, 0);
}

TEST(ClippingTest, AViewWithTooFewNeighborsIsRefused) {
  SimFleetOptions o = Fleet(0.02, /*liar=*/false);
  o.schedule.graph = "ring";
  o.peer.min_degree = 4;
  SimFleet fleet(std::move(o));
  EXPECT_FALSE(fleet.Run());
  EXPECT_THAT(std::string(fleet.StatusOf(0).message()),
              testing::HasSubstr("view 1 has graph ring, "
                                 "where some mix with 2 others; "
                                 "mixing.clip_radius needs 4"));
}

}  // namespace clipping_test
}  // namespace gossamer
