// Edges that come and go with the rounds, where rows are drawn anew in a large
// fleet: few at a time, and the bits of a fleet with edges to everybody.

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/runtime/peer/quadratic_fleet.h"
#include "tests/testing/sim_fleet.h"

namespace gossamer {
namespace changing_neighbors_test {

SimFleetOptions Fleet(int peers, uint64_t rounds, const std::string& graph) {
  SimFleetOptions o = QuadraticFleet(peers, rounds);
  o.schedule.graph = graph;
  o.step_time = absl::Seconds(1);
  o.network.link.latency = absl::Milliseconds(50);
  o.peer.max_neighbors = 8;
  return o;
}

size_t MostEdges(SimFleet& fleet) {
  size_t most = 0;
  for (int r = 0; r < fleet.size(); ++r) {
    most = std::max(most, fleet.peer(r).neighborhood().Peers().size());
  }
  return most;
}

class ChangingNeighborsTest : public testing::TestWithParam<std::string> {};

TEST_P(ChangingNeighborsTest, AFewEdgesHaveTheBitsOfAll) {
  for (const auto kind :
       {DeadlinePolicy::Kind::kNone, DeadlinePolicy::Kind::kAdaptive}) {
    SimFleetOptions few = Fleet(96, 60, GetParam());
    few.peer.deadline.kind = kind;
    few.codec = "diff-int8";  // which edges without replicas have
    SimFleet some(few);
    some.Start();
    some.Run(absl::Seconds(45));
    // 28 rounds around the present one, and ten seconds without use.
    const int degree = GetParam() == "permuted-ring" ? 2 : 1;
    EXPECT_LE(MostEdges(some), static_cast<size_t>(degree * (28 + 10 + 2)));
    ASSERT_TRUE(some.Run()) << some.StatusOf(0);
    for (int r = 0; r < some.size(); ++r) {
      for (const Event& e : some.recorder(r).events) {
        // At the end peers go.
        if (e.round > 57 || e.kind == "overdue") continue;
        ADD_FAILURE() << e.round << " " << e.kind.name() << " " << e.detail;
      }
    }
    if (kind != DeadlinePolicy::Kind::kNone) continue;
    SimFleetOptions all = few;
    all.peer.max_neighbors = few.peers;
    SimFleet every(all);
    every.Start();
    ASSERT_TRUE(every.Run());
    EXPECT_EQ(some.Hash(), every.Hash());
  }
}

// Timing decides nothing without deadlines.
TEST_P(ChangingNeighborsTest, BitsDoNotDependOnTheNetwork) {
  SimFleetOptions near = Fleet(32, 120, GetParam());
  near.codec = "innov-int4";
  SimFleetOptions far = near;
  far.network.link.latency = absl::Milliseconds(400);
  far.network.link.jitter = 1;
  SimFleet a(near), b(far);
  for (SimFleet* fleet : {&a, &b}) {
    fleet->Start();
    ASSERT_TRUE(fleet->Run()) << fleet->StatusOf(0);
    EXPECT_EQ(fleet->recorder(0).Count("replicas"), 1);
  }
  EXPECT_EQ(a.Hash(), b.Hash());
}

// Edges become inactive and are dropped while the next meeting of two peers is
// near or far, and a hello takes as long as many rounds; then the others are
// dozens of rounds ahead of one that is slow.
TEST_P(ChangingNeighborsTest, BitsDoNotDependOnWhatHasBeenForgotten) {
  for (const double slow : {1.0, 5.0}) {
    SimFleetOptions few = Fleet(64, 200, GetParam());
    few.codec = "diff-int8";
    few.peer.overlap_steps = 8;
    few.step_time = absl::Milliseconds(100);
    few.slowness = {{5, slow}};
    few.network.link.latency = absl::Milliseconds(300);
    few.network.link.jitter = 1;
    SimFleetOptions all = few;
    all.peer.max_neighbors = few.peers;
    SimFleet some(few), every(all);
    for (SimFleet* fleet : {&some, &every}) {
      fleet->Start();
      ASSERT_TRUE(fleet->Run()) << fleet->StatusOf(0);
    }
    for (int r = 0; r < some.size(); ++r) {
      EXPECT_EQ(some.recorder(r).Count("edge_lost"), 0) << slow;
    }
    EXPECT_EQ(some.Hash(), every.Hash()) << slow;
  }
}

// Rounds are short: twelve of them, after which an edge is inactive, take less
// than a suspicion.
TEST_P(ChangingNeighborsTest, ASilentPeerIsSuspectedByThoseWhoWereToMeetIt) {
  SimFleetOptions o = Fleet(48, 100000, GetParam());
  o.step_time = absl::Milliseconds(20);
  o.network.link.latency = absl::Milliseconds(2);
  o.peer.deadline.kind = DeadlinePolicy::Kind::kAdaptive;
  SimFleet fleet(o);
  fleet.Start();
  fleet.Run(absl::Seconds(10));
  const auto suspecters = [&fleet] {
    int n = 0;
    for (int r = 0; r < fleet.size(); ++r) {
      n += fleet.recorder(r).Count("member_suspected") > 0 ? 1 : 0;
    }
    return n;
  };
  EXPECT_EQ(suspecters(), 0);
  fleet.network().Partition({SimFleet::IdOf(7)});
  fleet.Run(absl::Seconds(4));
  // Eviction takes two of them.
  EXPECT_GE(suspecters(), 3);
}

INSTANTIATE_TEST_SUITE_P(Randomized, ChangingNeighborsTest,
                         testing::Values("permuted-ring", "random-matching"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

TEST(NeighborsOfAllRoundsTest, EdgesThatKeepMoreThanReplicasStay) {
  SimFleetOptions o = Fleet(24, 20, "random-matching");
  o.codec = "power-gossip";
  SimFleet fleet(o);
  fleet.Start();
  ASSERT_TRUE(fleet.Run()) << fleet.StatusOf(0);
  EXPECT_EQ(MostEdges(fleet), 23u);
}

TEST(NeighborsOfAPeriodTest, ATurningScheduleHasEdgesToThoseOfItsRounds) {
  SimFleet fleet(Fleet(64, 40, "one-peer-exponential"));
  fleet.Start();
  ASSERT_TRUE(fleet.Run());
  EXPECT_EQ(MostEdges(fleet), 6u);
}

}  // namespace changing_neighbors_test
}  // namespace gossamer
