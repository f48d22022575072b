// What a peer that joins costs those who train, with deadlines: no round.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "tests/testing/serviced_fleet.h"

namespace gossamer {
namespace {

using ::testing::IsEmpty;

constexpr uint64_t kTrain = 8;

simulation::Scenario EightAndOne() {
  simulation::Scenario s = UsualFleet(static_cast<int>(kTrain) + 1);
  s.seed = 11;
  s.late = 1;
  s.deadline.kind = DeadlinePolicy::Kind::kAdaptive;
  s.noise = 0.1;
  s.fault_rounds = 1'000'000;
  s.step_time = absl::Milliseconds(40);
  return s;
}

TEST(JoinCostTest, AJoinCostsEightPeersWithDeadlinesNoRound) {
  ServicedFleet fleet(EightAndOne());
  std::set<PeerId> others = fleet.Everybody();
  others.erase({kTrain + 1});
  // Until all others are there: of each the most rounds begun and not ended,
  // the one under way and all that it has passed over so far.
  const auto run_to = [&](uint64_t round) {
    std::map<PeerId, uint64_t> open;
    EXPECT_TRUE(fleet.Until(
        [&] {
          for (const PeerId id : others) {
            open[id] = std::max(open[id], fleet.peer(id.value).round() -
                                              fleet.RoundsDone(id.value));
          }
          return fleet.RoundsOf(others).first >= round;
        },
        absl::Minutes(5)))
        << fleet.violation();
    return open;
  };
  run_to(100);
  const std::map<PeerId, uint64_t> before = run_to(200);
  fleet.Join(kTrain + 1);
  run_to(700);
  EXPECT_TRUE(fleet.Together());
  EXPECT_EQ(fleet.Count("state_received"), 1);
  EXPECT_EQ(run_to(800), before);
  // And such a round would be seen.
  fleet.network().Freeze({3}, fleet.loop().Now() + absl::Seconds(3));
  EXPECT_GT(run_to(900).at({3}), before.at({3}));
  EXPECT_THAT(fleet.Stop(), IsEmpty());
}

}  // namespace
}  // namespace gossamer
