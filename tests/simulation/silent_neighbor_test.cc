// A neighbour on a ring that falls silent: no third peer has a connection with
// both ends of an edge, so the service answers for it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/testing/serviced_fleet.h"

namespace gossamer {
namespace silent_neighbor_test {

using ::testing::IsEmpty;

simulation::Scenario Ring() {
  simulation::Scenario s = UsualFleet(8);
  s.schedule.graph = "ring";
  s.deadline.kind = DeadlinePolicy::Kind::kAdaptive;
  s.step_time = absl::Milliseconds(50);
  return s;
}

class SilentNeighborTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(fleet_.Until(
        [this] {
          return fleet_.Together() &&
                 fleet_.RoundsOf(fleet_.Everybody()).first >= 50;
        },
        absl::Minutes(2)));
  }
  void RunFor(absl::Duration time) {
    const absl::Time end = fleet_.loop().Now() + time;
    EXPECT_TRUE(
        fleet_.Until([&] { return fleet_.loop().Now() >= end; }, 2 * time))
        << fleet_.violation();
  }
  int Suspected() const { return fleet_.Count("member_suspected"); }
  int PathsBroken() const {
    return fleet_.CountText("does not answer here, though others have heard");
  }

  ServicedFleet fleet_{Ring()};
};

TEST_F(SilentNeighborTest, APathThatIsBrokenIsToldFromAPeerThatIsDead) {
  fleet_.network().Break({1}, {2}, absl::Seconds(20));
  RunFor(absl::Seconds(2.5));
  EXPECT_EQ(Suspected(), 2);
  EXPECT_EQ(PathsBroken(), 0) << "the service is asked now";
  RunFor(absl::Seconds(1));
  EXPECT_EQ(Suspected(), 2) << "its answer has ended the suspicions";
  RunFor(absl::Seconds(5));
  EXPECT_EQ(Suspected(), 4);
  EXPECT_EQ(PathsBroken(), 2);
  RunFor(absl::Seconds(20));
  EXPECT_EQ(fleet_.service().fleet()->record().counts.removals, 0);
  EXPECT_THAT(fleet_.Stop(), IsEmpty());
}

// The answer comes when the suspicion has lasted for longer than it gains.
TEST(SlowHeartbeats, APathThatIsBrokenIsToldLate) {
  simulation::Scenario s = Ring();
  s.heartbeat = absl::Seconds(20);
  s.lease = absl::Seconds(60);
  ServicedFleet fleet(s);
  ASSERT_TRUE(fleet.Until([&] { return fleet.Together(); }, absl::Minutes(5)))
      << fleet.violation();
  fleet.network().Break({1}, {2}, absl::Minutes(2));
  const auto told = [&] {
    return fleet.CountText("though others have heard it since");
  };
  EXPECT_TRUE(fleet.Until([&] { return told() == 2; }, absl::Minutes(1)));
  const absl::Time later = fleet.loop().Now() + absl::Seconds(50);
  EXPECT_TRUE(fleet.Until([&] { return fleet.loop().Now() >= later; },
                          absl::Minutes(1)));
  EXPECT_EQ(told(), 2) << "once each";
  EXPECT_THAT(fleet.Stop(), IsEmpty());
}

TEST_F(SilentNeighborTest, NobodyAnswersForAPeerThatIsCutOffFromAll) {
  fleet_.network().Partition({{3}});
  fleet_.service().Cut({{3}}, {{3}});
  RunFor(absl::Seconds(8));
  EXPECT_EQ(PathsBroken(), 0);
  EXPECT_EQ(fleet_.service().fleet()->record().counts.removals, 1);
  fleet_.network().Heal();
  fleet_.service().Cut({}, {});
  ASSERT_TRUE(
      fleet_.Until([&] { return fleet_.Together(); }, absl::Minutes(2)));
  EXPECT_THAT(fleet_.Stop(), IsEmpty());
}

}  // namespace silent_neighbor_test
}  // namespace gossamer
