// A peer that joins a fleet with deadlines costs the others no round.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/testing/serviced_fleet.h"

namespace gossamer {
namespace join_cost_test {

using ::testing::IsEmpty;

constexpr uint64_t kTrain = 8;

struct Case {
  std::string graph;
  int joiners = 1;  // joiners at the same time
  int latency = 5;  // ms
  int overlap = 1;  // h
};

simulation::Scenario EightAndMore(const Case& c) {
  simulation::Scenario s = UsualFleet(static_cast<int>(kTrain) + c.joiners);
  s.seed = 11;
  s.late = c.joiners;
  s.schedule.graph = c.graph;
  s.link.latency = absl::Milliseconds(c.latency);
  s.overlap = c.overlap;
  s.step_jitter = 0.02;
  s.deadline.kind = DeadlinePolicy::Kind::kAdaptive;
  s.noise = 0.1;
  s.fault_rounds = 1'000'000;
  s.step_time = absl::Milliseconds(40);
  return s;
}

class JoinCostTest : public ::testing::TestWithParam<Case> {};

TEST_P(JoinCostTest, AJoinCostsEightPeersWithDeadlinesNoRound) {
  const int joiners = GetParam().joiners;
  ServicedFleet fleet(EightAndMore(GetParam()));
  std::set<PeerId> others = fleet.Everybody();
  for (int k = 1; k <= joiners; ++k) others.erase({kTrain + k});
  // Runs until all other peers are in `round`.  Returns, for each, the most
  // rounds that it had begun and not ended: the one under way and all that it
  // has jumped over so far.
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
  for (int k = 1; k <= joiners; ++k) fleet.Join(kTrain + k);
  run_to(700);
  EXPECT_TRUE(fleet.Together());
  EXPECT_EQ(fleet.Count("state_received"), joiners);
  EXPECT_EQ(run_to(800), before);
  // A frozen peer costs a round, so the measurement would show one.
  fleet.network().Freeze({3}, fleet.loop().Now() + absl::Seconds(3));
  EXPECT_GT(run_to(900).at({3}), before.at({3}));
  EXPECT_THAT(fleet.Stop(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(
    All, JoinCostTest,
    ::testing::Values(Case{"permuted-ring"}, Case{"ring"}, Case{"ring", 1, 0},
                      Case{"ring", 1, 15}, Case{"ring", 2}, Case{"ring", 2, 0},
                      Case{"ring", 4}, Case{"permuted-ring", 2},
                      Case{"permuted-ring", 4}, Case{"ring", 1, 5, 3},
                      Case{"ring", 2, 5, 3}, Case{"ring", 2, 5, 0},
                      Case{"permuted-ring", 2, 5, 2},
                      Case{"permuted-ring", 4, 5, 3}),
    [](const auto& info) {
      const Case& c = info.param;
      return (c.graph == "ring" ? "Fixed" : "Permuted") +
             absl::StrCat(c.joiners, "Over", c.latency, "ms", c.overlap);
    });

}  // namespace join_cost_test
}  // namespace gossamer
