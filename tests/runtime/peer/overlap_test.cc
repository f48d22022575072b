// Exchanges that hide behind steps change no bit with their timing, and mix
// stably.

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/runtime/peer/quadratic_fleet.h"
#include "tests/testing/forwarding_membership.h"
#include "tests/testing/sim_fleet.h"

namespace gossamer {
namespace overlap_test {

// Without deadlines and faults, latency, jitter and speed change no bit.
TEST(OverlapTest, TimingChangesNoBit) {
  for (const char* schedule : {"ring", "permuted-ring"}) {
    for (int overlap = 0; overlap <= kMaxOverlap; ++overlap) {
      std::vector<uint64_t> hashes;
      for (double latency_ms : {0.1, 7.0, 60.0}) {
        SimFleetOptions o = QuadraticFleet(5, 40);
        o.schedule.graph = schedule;
        o.codec = "innov-int4";
        o.peer.overlap_steps = overlap;
        o.network.link.latency = absl::Milliseconds(latency_ms);
        o.network.link.jitter = 0.5;
        o.network.seed = static_cast<uint64_t>(latency_ms * 10);
        o.step_jitter = 0.3;
        o.slowness = {{1, latency_ms > 1 ? 3.0 : 1.0}};
        SimFleet fleet(o);
        ASSERT_TRUE(fleet.Run()) << fleet.StatusOf(0);
        hashes.push_back(fleet.Hash());
      }
      EXPECT_THAT(hashes, testing::Each(hashes[0]))
          << schedule << " h=" << overlap;
    }
  }
}

TEST(OverlapTest, OverlapHidesLatencyBelowAStep) {
  auto virtual_time = [](double latency_ms, int overlap) {
    SimFleetOptions o = QuadraticFleet(4, 50);
    o.step_jitter = 0;
    o.peer.overlap_steps = overlap;
    o.network.link.latency = absl::Milliseconds(latency_ms);
    SimFleet fleet(o);
    const absl::Time start = fleet.loop().Now();
    EXPECT_TRUE(fleet.Run());
    return absl::ToDoubleMilliseconds(fleet.recorder(0).rounds.back().finished -
                                      start);
  };
  EXPECT_NEAR(virtual_time(8, 1), virtual_time(0.01, 1), 60);
  EXPECT_GT(virtual_time(8, 0), virtual_time(0.01, 0) + 50 * 7.9);
  // The first hellos take a round trip.
  EXPECT_NEAR(virtual_time(38, 4), virtual_time(0.01, 4), 2 * 38 + 1);
  EXPECT_GT(virtual_time(38, 3), virtual_time(0.01, 3) + 50 * 2.6);
}

// For old snapshots the loop chooses a step size below the stable one, and
// refuses a larger one.
TEST(OverlapTest, StepSizeFollowsTheAgeOfSnapshots) {
  for (int overlap : {1, 2, 4, 8}) {
    SimFleetOptions o = QuadraticFleet(6, 200);
    o.game = [](int rank) { return Quadratic(rank, 6, 0, 0.5); };
    o.step.generator.learning_rate = o.step.discriminator.learning_rate = 1e-9;
    o.peer.overlap_steps = overlap;
    SimFleet fleet(o);
    for (int r = 0; r < 6; ++r) {
      fleet.game(r).parameters()[0] = static_cast<float>(r * r);
    }
    const double before = fleet.ConsensusDistance();
    ASSERT_TRUE(fleet.Run()) << fleet.StatusOf(0);
    EXPECT_LT(fleet.ConsensusDistance(), 1e-2 * before) << "h=" << overlap;
  }
  SimFleetOptions o = QuadraticFleet(6, 20);
  o.peer.overlap_steps = 2;
  o.peer.gamma = 0.8;  // the bound is 0.75 on a ring with weights 1/3
  SimFleet fleet(o);
  EXPECT_FALSE(fleet.Run());
  EXPECT_THAT(std::string(fleet.StatusOf(0).message()),
              testing::HasSubstr("it must be below 0.75"));
}

// A service that changes the overlap: each peer hears of a view only shortly
// before its round.
class ChangingOverlap final : public ForwardingMembership {
 public:
  ChangingOverlap(std::unique_ptr<Membership> fleet,
                  std::vector<std::pair<uint64_t, int>> plan)
      : ForwardingMembership(std::move(fleet)), plan_(std::move(plan)) {}
  const View& view() const override { return view_; }
  void BeginRound(uint64_t round) override {
    ForwardingMembership::BeginRound(round);
    for (const auto& [from, overlap] : plan_) {
      if (from != round + 1) continue;
      view_.epoch += 1;
      view_.from_round = from;
      view_.overlap_steps = overlap;
    }
  }
  void Observe(const void* owner, std::function<void()> f) override {
    ForwardingMembership::Observe(owner, [this, f = std::move(f)] {
      if (view_.epoch == 0) view_ = ForwardingMembership::view();
      f();
    });
    view_ = ForwardingMembership::view();
  }

 private:
  const std::vector<std::pair<uint64_t, int>> plan_;
  View view_;
};

TEST(OverlapTest, ChangesAtAViewWithoutASkip) {
  for (const char* schedule : {"ring", "permuted-ring"}) {
    std::vector<uint64_t> hashes;
    for (const double latency_ms : {0.1, 17.0, 60.0}) {
      SimFleetOptions o = QuadraticFleet(5, 80);
      o.schedule.graph = schedule;
      o.codec = "innov-int4";
      o.peer.overlap_steps = kAutoOverlap;
      o.membership = [](std::unique_ptr<Membership> fleet) {
        return std::make_unique<ChangingOverlap>(
            std::move(fleet), std::vector<std::pair<uint64_t, int>>{
                                  {10, 4}, {30, 2}, {45, 8}, {60, 1}});
      };
      o.network.link.latency = absl::Milliseconds(latency_ms);
      o.network.link.jitter = 0.5;
      SimFleet fleet(o);
      ASSERT_TRUE(fleet.Run()) << fleet.StatusOf(0);
      for (int r = 0; r < fleet.size(); ++r) {
        EXPECT_EQ(fleet.peer(r).last_metrics().skipped, 0);
        EXPECT_EQ(fleet.peer(r).last_metrics().corrections, 160);
        EXPECT_EQ(fleet.recorder(r).Count("overlap"), 5);
      }
      hashes.push_back(fleet.Hash());
    }
    EXPECT_THAT(hashes, testing::Each(hashes[0])) << schedule;
  }
}

// A deadline shorter than the network's latency would make every correction
// rounds late, on which random schedules diverge.  Without the least possible
// deadline the distance here is 45 to 1e13.
TEST(OverlapTest, ADeadlineThatNobodyCanKeepDoesNoHarm) {
  for (const char* schedule :
       {"random-matching", "permuted-ring", "one-peer-exponential"}) {
    SimFleetOptions o = QuadraticFleet(16, 150);
    o.schedule.graph = schedule;
    o.peer.deadline = {DeadlinePolicy::Kind::kFixed, absl::Milliseconds(20)};
    o.step_time = absl::Milliseconds(50);
    o.network.link.latency = absl::Milliseconds(150);
    SimFleet hasty(o);
    hasty.Start();
    ASSERT_TRUE(hasty.Run()) << hasty.StatusOf(0);
    o.peer.deadline = {};
    SimFleet patient(o);
    patient.Start();
    ASSERT_TRUE(patient.Run()) << patient.StatusOf(0);
    EXPECT_LT(hasty.ConsensusDistance(), 10 * patient.ConsensusDistance())
        << schedule;
  }
}

}  // namespace overlap_test
}  // namespace gossamer
