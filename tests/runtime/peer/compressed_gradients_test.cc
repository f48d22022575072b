// The centralized baseline on compressed gradients: whole fleets in virtual
// time.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <string>

#include "algorithms/compress/linear_coder.h"
#include "algorithms/game/wrapped_game.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/runtime/peer/quadratic_fleet.h"
#include "tests/testing/sim_fleet.h"

namespace gossamer {
namespace compressed_gradients_test {

using testing::HasSubstr;

constexpr int kPeers = 4;

// Returns a game whose layers are large enough to be compressed.
std::unique_ptr<Game> LargeGame(int rank) {
  return *QuadraticGame::Create(
      {.dimension = 1100, .noise = 0.1, .heterogeneity = 0.5}, rank, kPeers, 7);
}

SimFleetOptions CompressedFleet(const std::string& method, uint64_t rounds) {
  SimFleetOptions o = QuadraticFleet(kPeers, rounds);
  o.game = LargeGame;
  o.peer.averaging = Averaging::kGradients;
  o.peer.all_reduce = (*GradientCompressor::Create(method, {}))->summable()
                          ? "mesh"
                          : "all-gather";
  o.peer.overlap_steps = 0;
  o.schedule.graph = "complete";
  o.gradient_codec = method;
  o.coders = MakeLinearCoder;
  return o;
}

// Within a run of 30 rounds codes begin, and learning goes on.
constexpr char kLgc[] = "lgc:rate=50,full=3,learn=4,worst=0.9,again=3";
constexpr char kLgcServer[] =
    "lgc:rate=50,full=3,learn=4,worst=0.9,again=3,server=1,novel=4";

class CompressedGradientsTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("gossamer_gradients_" + std::to_string(getpid()));
    std::filesystem::remove_all(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path folder_;
};

TEST_P(CompressedGradientsTest, TimingAndLostConnectionsChangeNoBit) {
  SimFleetOptions o = CompressedFleet(GetParam(), 30);
  SimFleet calm(o);
  ASSERT_TRUE(calm.Run()) << calm.StatusOf(0);
  for (int r = 1; r < kPeers; ++r) {
    EXPECT_THAT(calm.game(r).parameters(),
                testing::ElementsAreArray(calm.game(0).parameters()));
  }
  o.network.link.latency = absl::Milliseconds(37);
  o.network.link.jitter = 0.8;
  o.step_jitter = 2;
  SimFleet fleet(o);
  fleet.Start();
  for (int i = 0; i < 16; ++i) {
    fleet.loop().RunFor(absl::Milliseconds(61));
    fleet.network().Break(SimFleet::IdOf(i % 4), SimFleet::IdOf((i + 1) % 4));
    fleet.network().Break(SimFleet::IdOf(i % 4), SimFleet::IdOf((i + 2) % 4));
  }
  ASSERT_TRUE(fleet.Run()) << fleet.StatusOf(0);
  EXPECT_EQ(fleet.Hash(), calm.Hash());
}

TEST_P(CompressedGradientsTest, StoppedAndResumedFleetIsBitExact) {
  SimFleetOptions o = CompressedFleet(GetParam(), 40);
  SimFleet whole(o);
  ASSERT_TRUE(whole.Run());
  o.checkpoints = folder_;
  uint64_t stopped_at = 0;
  {
    SimFleet first(o);
    first.Start();
    first.loop().RunFor(absl::Milliseconds(250));
    first.fleet().RequestStop();
    ASSERT_TRUE(first.Run()) << first.StatusOf(0);
    stopped_at = first.peer(0).round();
  }
  ASSERT_GT(stopped_at, 5u);
  ASSERT_LT(stopped_at, 40u);
  o.resume_round = stopped_at;
  o.incarnation = 2;
  SimFleet second(o);
  ASSERT_TRUE(second.Run()) << second.StatusOf(0);
  EXPECT_EQ(second.Hash(), whole.Hash());
}

INSTANTIATE_TEST_SUITE_P(
    Methods, CompressedGradientsTest,
    testing::Values("qsgd", "qsgd:norm=l2", "qsgd:levels=127,coding=gamma",
                    "top-k:rate=50", "scalecom:rate=50,beta=0.3",
                    "scalecom:rate=50,ahead=1", "adacomp", kLgc, kLgcServer,
                    "qsgd:full=7", "top-k:rate=50,full=7",
                    "scalecom:rate=50,ahead=1,full=7", "adacomp:full=7"));

// The need is known before anything is sent, though floats travel first.
TEST(CentralizedStepTest, PayloadsThatComeLaterNeedAllGatherFromTheStart) {
  for (const char* const method : {"adacomp", "adacomp:full=7", kLgcServer}) {
    for (const char* const schedule : {"mesh", "auto"}) {
      SimFleetOptions o = CompressedFleet(method, 20);
      o.peer.all_reduce = schedule;
      SimFleet fleet(o);
      EXPECT_FALSE(fleet.Run(absl::Minutes(1)));
      EXPECT_THAT(std::string(fleet.StatusOf(0).message()),
                  HasSubstr("need all-gather"))
          << method;
    }
  }
}

// A step costs the leader's message, one latency before the two of mesh.  A
// message that is sent ahead arrives while gradients are computed.
TEST(ScaleComPeerTest, TheMessageAheadHidesItsLatency) {
  const auto waiting = [](const std::string& method) {
    SimFleetOptions o = CompressedFleet(method, 20);
    o.network.link.latency = absl::Milliseconds(50);
    o.step_time = absl::Milliseconds(60);
    o.step_jitter = 0;
    SimFleet fleet(o);
    EXPECT_TRUE(fleet.Run()) << fleet.StatusOf(0);
    return fleet.recorder(1).rounds.back().seconds_waiting;
  };
  EXPECT_NEAR(waiting("dense-f32"), 0.100, 1e-3);
  EXPECT_NEAR(waiting("scalecom:rate=50"), 0.150, 1e-3);
  EXPECT_NEAR(waiting("scalecom:rate=50,ahead=1"), 0.100, 1e-3);
}

TEST(ScaleComPeerTest, ALeaderThatDiesEndsTheRunByName) {
  SimFleetOptions o = CompressedFleet("scalecom:rate=50", 400);
  o.peer.liveness_limit = absl::Seconds(20);
  SimFleet fleet(o);
  fleet.Start();
  fleet.loop().RunFor(absl::Milliseconds(100));
  fleet.network().Freeze(SimFleet::IdOf(2), absl::InfiniteFuture());
  EXPECT_FALSE(fleet.Run(absl::Minutes(2)));
  EXPECT_EQ(fleet.StatusOf(1).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(
      std::string(fleet.StatusOf(1).message()),
      testing::AllOf(HasSubstr("for want of peer 3"), HasSubstr("liveness")));
}

// A game whose gradient is not finite now and then.
class FaintGame final : public WrappedGame {
 public:
  explicit FaintGame(std::unique_ptr<Game> healthy)
      : WrappedGame(std::move(healthy)) {}
  absl::StatusOr<Losses> Gradient(Players players, RngKey key) override {
    if (++calls_ % 3 == 0) return absl::DataLossError("not finite");
    return WrappedGame::Gradient(players, key);
  }

 private:
  int calls_ = 0;
};

// A game with finite gradients at all peers, once so large that their sum is
// not finite.
class OverflowingGame final : public WrappedGame {
 public:
  explicit OverflowingGame(std::unique_ptr<Game> inner)
      : WrappedGame(std::move(inner)), large_(layout().size(), 3e38f) {}
  DeviceSpan<const float> device_gradients() const override {
    return calls_ == 7 ? DeviceSpan<const float>(large_)
                       : WrappedGame::device_gradients();
  }
  absl::StatusOr<Losses> Gradient(Players players, RngKey key) override {
    ++calls_;
    return WrappedGame::Gradient(players, key);
  }

 private:
  const std::vector<float> large_;
  int calls_ = 0;
};

TEST(CentralizedStepTest, AMeanThatIsNotFiniteIsSkippedByAll) {
  SimFleetOptions o = CompressedFleet("dense-f32", 12);
  o.game = [](int rank) {
    return std::make_unique<OverflowingGame>(LargeGame(rank));
  };
  SimFleet fleet(o);
  ASSERT_TRUE(fleet.Run()) << fleet.StatusOf(0);
  for (int r = 0; r < kPeers; ++r) {
    EXPECT_EQ(fleet.recorder(r).Count("step_skipped"), 1);
    EXPECT_EQ(fleet.peer(r).last_metrics().round, 12u);
    EXPECT_TRUE(HostKernels().all_finite(fleet.game(r).parameters()));
    EXPECT_THAT(fleet.game(r).parameters(),
                testing::ElementsAreArray(fleet.game(0).parameters()));
  }
  const auto& events = fleet.recorder(2).events;
  EXPECT_TRUE(std::ranges::any_of(events, [](const Event& e) {
    return e.detail == "the mean gradient is not finite";
  }));
}

// A game that returns OK with a gradient that is not finite, or huge.
class BrokenGame final : public WrappedGame {
 public:
  BrokenGame(std::unique_ptr<Game> inner, float bad)
      : WrappedGame(std::move(inner)), bad_(bad) {}
  DeviceSpan<const float> device_gradients() const override {
    return gradients_;
  }
  absl::StatusOr<Losses> Gradient(Players players, RngKey key) override {
    auto losses = WrappedGame::Gradient(players, key);
    const auto inner = HostSpan(WrappedGame::device_gradients());
    gradients_.assign(inner.begin(), inner.end());
    if (++calls_ == 7 || calls_ == 8) gradients_[1500] = bad_;
    return losses;
  }

 private:
  const float bad_;
  std::vector<float> gradients_;
  int calls_ = 0;
};

// One peer's bad gradients are left out, and leave nothing in the memory.
TEST_P(CompressedGradientsTest, AGradientThatWouldSpoilTheMemoryIsLeftOut) {
  for (const float bad : {std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN(), -3e38f}) {
    SimFleetOptions o = CompressedFleet(GetParam(), 30);
    o.game = [bad](int rank) -> std::unique_ptr<Game> {
      if (rank != 2) return LargeGame(rank);
      return std::make_unique<BrokenGame>(LargeGame(rank), bad);
    };
    SimFleet fleet(o);
    ASSERT_TRUE(fleet.Run()) << fleet.StatusOf(2);
    for (int r = 0; r < kPeers; ++r) {
      EXPECT_EQ(fleet.recorder(r).Count("step_skipped"), r == 2 ? 2 : 0) << bad;
      EXPECT_TRUE(HostKernels().all_finite(fleet.game(r).parameters())) << bad;
      EXPECT_THAT(fleet.game(r).parameters(),
                  testing::ElementsAreArray(fleet.game(0).parameters()));
    }
    for (const float x : fleet.game(0).parameters()) {
      ASSERT_LT(std::abs(x), 100) << bad;
    }
  }
}

// The step goes on even while that peer leads.
TEST(ScaleComPeerTest, APeerWithoutAGradientHoldsUpNobody) {
  for (const char* const method : {"top-k:rate=50", "scalecom:rate=50",
                                   "adacomp", "qsgd", kLgc, kLgcServer}) {
    SimFleetOptions o = CompressedFleet(method, 40);
    o.game = [](int rank) -> std::unique_ptr<Game> {
      if (rank != 1) return LargeGame(rank);
      return std::make_unique<FaintGame>(LargeGame(rank));
    };
    SimFleet fleet(o);
    ASSERT_TRUE(fleet.Run()) << fleet.StatusOf(1);
    EXPECT_EQ(fleet.recorder(1).Count("step_skipped"), 13) << method;
    for (int r = 0; r < kPeers; ++r) {
      EXPECT_EQ(fleet.peer(r).last_metrics().round, 40u);
      EXPECT_THAT(fleet.game(r).parameters(),
                  testing::ElementsAreArray(fleet.game(0).parameters()))
          << method;
    }
  }
}

}  // namespace compressed_gradients_test
}  // namespace gossamer
