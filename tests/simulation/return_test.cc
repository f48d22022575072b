// A killed peer that comes back at the same address, under methods whose
// quantities must sum to zero or to the sum of gradients.  The fleet ends where
// an undisturbed one does.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "algorithms/method/registry.h"
#include "tests/testing/serviced_fleet.h"

namespace gossamer {
namespace return_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint64_t kRounds = 2500;
// The kill comes long after the checkpoint of round 200, so that much is lost.
constexpr uint64_t kKilledAt = 250;

struct Case {
  std::string name;
  bool tracked = false;
  std::string codec;
  int overlap = 0;
  bool step_then_mix = false;
  OptimizerSpec optimizer;
  uint64_t checkpoint_every = 0;
  DeadlinePolicy::Kind deadline = DeadlinePolicy::Kind::kNone;
};

simulation::Scenario Unlike(const Case& method) {
  simulation::Scenario s = UsualFleet(4);
  s.seed = 11;
  s.schedule.graph = "complete";
  s.codec = method.codec;
  s.overlap = method.overlap;
  s.step_then_mix = method.step_then_mix;
  s.tracked = method.tracked;
  s.heterogeneity = 1;
  s.optimizer = method.optimizer;
  s.fault_rounds = kRounds;
  s.ends_by_stop = false;
  s.checkpoint_every = method.checkpoint_every;
  s.deadline.kind = method.deadline;
  s.step_time = absl::Milliseconds(20);
  s.step_jitter = 0;
  return s;
}

// Trains and returns the parameters of all peers.
std::vector<std::vector<float>> Train(const Case& method, bool disturbed) {
  ServicedFleet fleet(Unlike(method));
  const std::set<PeerId> all = fleet.Everybody();
  EXPECT_TRUE(fleet.Until(
      [&] { return fleet.RoundsOf(all).first >= kKilledAt; }, absl::Hours(1)))
      << fleet.violation();
  EXPECT_TRUE(fleet.Together());
  if (disturbed) {
    fleet.Restart(3);
    EXPECT_TRUE(fleet.Until([&] { return fleet.Together(); }, absl::Hours(1)))
        << fleet.violation();
  }
  EXPECT_THAT(fleet.Finish(absl::Hours(1)), IsEmpty());
  EXPECT_EQ(fleet.Count("member_removed"), 0) << "it is back in time";
  std::vector<std::vector<float>> parameters;
  for (const PeerId id : all) parameters.push_back(fleet.Last(id.value));
  return parameters;
}

class ReturnTest : public testing::TestWithParam<Case> {};

TEST_P(ReturnTest, AFleetWithARestartedPeerEndsAtTheSameSolution) {
  const auto quiet = Train(GetParam(), /*disturbed=*/false);
  const auto disturbed = Train(GetParam(), /*disturbed=*/true);
  for (size_t peer = 0; peer < quiet.size(); ++peer) {
    ASSERT_EQ(quiet[peer].size(), disturbed[peer].size());
    for (size_t i = 0; i < quiet[peer].size(); ++i) {
      ASSERT_NEAR(quiet[peer][i], disturbed[peer][i], 0.02)
          << "peer " << peer + 1 << " parameter " << i;
    }
  }
}

const OptimizerSpec kCold = {
    .name = "cold", .make = OwnRule("cold"), .learning_rate = 0.05};
const OptimizerSpec kDescent = {.name = "ogda", .learning_rate = 0.02};

INSTANTIATE_TEST_SUITE_P(
    Return, ReturnTest,
    testing::Values(
        Case{"cold", false, "innov-int8:least=16", 0, true, kCold, 0},
        Case{"cold_checkpoint", false, "innov-int8:least=16", 0, true, kCold,
             100},
        Case{"tracking", true, "innov-int8:least=16", 1, false, kDescent, 0},
        Case{"tracking_checkpoint", true, "innov-int8:least=16", 1, false,
             kDescent, 100},
        Case{"tracking_deadline", true, "innov-int8:least=16", 1, false,
             kDescent, 100, DeadlinePolicy::Kind::kAdaptive}),
    [](const auto& info) { return info.param.name; });

// The centralized baseline has one optimizer in as many copies and cannot wait
// for a member's parameters.
TEST(CentralizedReturnTest, APeerThatRestartsDuringTheRunIsRefused) {
  Case method{.name = "cp-oadam",
              .codec = "dense-f32",
              .optimizer = {.name = "oadam", .learning_rate = 0.01},
              .checkpoint_every = 10};
  simulation::Scenario scenario = Unlike(method);
  scenario.quantized = false;
  scenario.gradient_codec = "dense-f32";
  scenario.all_reduce = "ring";
  ServicedFleet fleet(scenario);
  ASSERT_TRUE(
      fleet.Until([&] { return fleet.RoundsOf(fleet.Everybody()).first >= 20; },
                  absl::Minutes(1)))
      << fleet.violation();
  fleet.Restart(3);
  EXPECT_FALSE(fleet.Until([&] { return false; }, absl::Minutes(1)));
  EXPECT_THAT(fleet.violation(), AllOf(HasSubstr("peer 3"),
                                       HasSubstr("takes nobody in under way")));
}

class ResumeWithoutServiceTest
    : public testing::TestWithParam<DeadlinePolicy::Kind> {
 protected:
  static simulation::Scenario Fleet(DeadlinePolicy::Kind deadline) {
    simulation::Scenario s = UsualFleet(6);
    s.checkpoint_every = 100;
    s.step_time = absl::Milliseconds(50);
    s.deadline.kind = deadline;
    s.fault_rounds = 100'000;
    return s;
  }
  bool Reach(uint64_t round, absl::Duration limit) {
    return fleet_.Until(
        [&] { return fleet_.RoundsOf(fleet_.Everybody()).first >= round; },
        limit);
  }

  ServicedFleet fleet_{Fleet(GetParam())};
};

// Without the service nobody could evict it, so the others wait for it, or
// train without it, until it is back.
TEST_P(ResumeWithoutServiceTest,
       APeerResumesFromItsLastViewWhileTheServiceIsAway) {
  ASSERT_TRUE(Reach(250, absl::Minutes(2))) << fleet_.violation();
  ASSERT_TRUE(fleet_.Together());
  fleet_.service().Crash();
  fleet_.Restart(3);
  ASSERT_TRUE(Reach(500, absl::Minutes(2))) << fleet_.violation();
  EXPECT_EQ(fleet_.Count("resumed_without_service"), 1);
  ASSERT_TRUE(fleet_.service().Start(/*old=*/false).ok());
  ASSERT_TRUE(fleet_.Until([&] { return fleet_.Together(); }, absl::Minutes(2)))
      << fleet_.violation();
  EXPECT_EQ(fleet_.Count("member_removed"), 0);
  EXPECT_THAT(fleet_.Stop(), IsEmpty());
}

// The service knows which checkpoint all have.
TEST_P(ResumeWithoutServiceTest, AFleetThatWasRestartedWaitsForTheService) {
  ASSERT_TRUE(Reach(250, absl::Minutes(2))) << fleet_.violation();
  ASSERT_TRUE(fleet_.Together());
  fleet_.service().Crash();
  for (uint64_t id = 1; id <= 6; ++id) fleet_.Restart(id);
  EXPECT_FALSE(fleet_.Until([&] { return false; }, absl::Minutes(2)));
  EXPECT_EQ(fleet_.RoundsOf(fleet_.Everybody()).second, 1u) << "nobody trains";
  EXPECT_EQ(fleet_.Count("resumed_without_service"), 0);
  ASSERT_TRUE(fleet_.service().Start(/*old=*/false).ok());
  ASSERT_TRUE(Reach(300, absl::Minutes(2))) << fleet_.violation();
  EXPECT_EQ(fleet_.Count("resumed"), 6);
  EXPECT_THAT(fleet_.Stop(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Deadlines, ResumeWithoutServiceTest,
                         testing::Values(DeadlinePolicy::Kind::kNone,
                                         DeadlinePolicy::Kind::kAdaptive),
                         [](const auto& info) {
                           return info.param == DeadlinePolicy::Kind::kNone
                                      ? "none"
                                      : "adaptive";
                         });

}  // namespace return_test
}  // namespace gossamer
