// Replicas inside a memory budget: both ends agree, the budget holds, and the
// fleet mixes as well.

#include "runtime/neighborhood/replica_budget.h"

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>

#include "gtest/gtest.h"
#include "tests/runtime/peer/quadratic_fleet.h"
#include "tests/testing/sim_fleet.h"

namespace gossamer {
namespace replica_budget_test {

constexpr size_t kParameters = 1000;
constexpr uint64_t kEdge = 2 * 4 * kParameters;

std::unique_ptr<MixingSchedule> Schedule(const std::string& kind, int peers) {
  ScheduleSpec spec;
  spec.graph = kind;
  return *MakeSchedule(spec, peers, 1);
}

TEST(ReplicaBudgetTest, CoversNoMoreEdgesThanFitAndBothEndsAgree) {
  for (int peers : {2, 3, 8, 9, 64}) {
    const auto schedule = Schedule("permuted-ring", peers);
    for (uint64_t fit = 0; fit < static_cast<uint64_t>(peers) + 2; ++fit) {
      const ReplicaBudget budget(fit * kEdge + kEdge / 2, kParameters,
                                 *schedule);
      for (int a = 0; a < peers; ++a) {
        uint64_t covered = 0;
        for (int b = 0; b < peers; ++b) {
          EXPECT_EQ(budget.Covers(a, b), budget.Covers(b, a));
          if (a != b && budget.Covers(a, b)) ++covered;
        }
        if (kEdge * (static_cast<uint64_t>(peers) - 1) > fit * kEdge) {
          EXPECT_LE(covered, fit);
          EXPECT_GE(covered + 1, fit);
        } else {
          EXPECT_EQ(covered, static_cast<uint64_t>(peers) - 1);
        }
      }
    }
  }
}

TEST(ReplicaBudgetTest, AFixedGraphNeedsReplicasForItsEdgesOnly) {
  const auto ring = Schedule("ring", 16);
  const ReplicaBudget two(2 * kEdge, kParameters, *ring);
  EXPECT_TRUE(two.Covers(0, 1));
  EXPECT_TRUE(two.Covers(0, 15));
  EXPECT_FALSE(ReplicaBudget(kEdge, kParameters, *ring).Covers(0, 1));
  EXPECT_TRUE(ReplicaBudget(0, kParameters, *ring).Covers(0, 8));
  EXPECT_TRUE(
      ReplicaBudget(std::numeric_limits<uint64_t>::max(), kParameters, *ring)
          .Covers(0, 8));
}

SimFleetOptions Fleet(uint64_t replicas) {
  SimFleetOptions o = QuadraticFleet(8, 300);
  o.codec = "innov-int4";
  o.schedule.graph = "permuted-ring";
  o.peer.replica_memory = replicas;
  return o;
}

TEST(ReplicaBudgetTest, AFleetMixesAsWellWithReplicasOnSomeEdges) {
  SimFleet all(Fleet(0));
  all.Start();
  ASSERT_TRUE(all.Run());
  const uint64_t edge = 8 * all.game(0).parameters().size();
  SimFleet some(Fleet(3 * edge));
  some.Start();
  ASSERT_TRUE(some.Run());
  int with = 0;
  for (int r = 1; r < some.size(); ++r) {
    const Edge* e = some.peer(0).neighborhood().edge(SimFleet::IdOf(r));
    ASSERT_NE(e, nullptr);
    with += e->codec_state().codec().needs_replica() ? 1 : 0;
  }
  EXPECT_EQ(with, 2);
  EXPECT_EQ(some.recorder(0).Count("replicas"), 1);
  EXPECT_LT(some.ConsensusDistance(), 2 * all.ConsensusDistance());
}

// The budget goes by ranks, which may have been others when the checkpoint was
// taken; another budget has the same effect here.
TEST(ReplicaBudgetTest, EdgesGoOnFromRecordsWithTheCodecThatTheyHad) {
  const std::string folder =
      testing::TempDir() + "/gossamer_budget_" + std::to_string(getpid());
  const uint64_t edge = 8 * 80;
  SimFleetOptions o = Fleet(3 * edge);
  o.peer.overlap_steps = 2;
  SimFleet whole(o);
  ASSERT_TRUE(whole.Run());
  o.checkpoints = folder;
  {
    SimFleet first(o);
    first.Start();
    first.loop().RunFor(absl::Milliseconds(500));
    first.fleet().RequestStop();
    ASSERT_TRUE(first.Run());
    o.resume_round = first.peer(0).round();
  }
  ASSERT_LT(o.resume_round, 300u);
  o.incarnation = 2;
  for (const uint64_t budget : {edge, 3 * edge, 7 * edge}) {
    o.peer.replica_memory = budget;
    SimFleet second(o);
    ASSERT_TRUE(second.Run()) << second.StatusOf(0);
    // A record without replicas may begin to have them.
    if (budget <= 3 * edge) {
      EXPECT_EQ(second.Hash(), whole.Hash()) << budget;
    }
    EXPECT_LT(second.ConsensusDistance(), 2 * whole.ConsensusDistance());
  }
  std::filesystem::remove_all(folder);
}

TEST(ReplicaBudgetTest, TimingDoesNotReachTheParameters) {
  SimFleetOptions o = Fleet(3 * 8 * 80);
  SimFleet near(o);
  near.Start();
  ASSERT_TRUE(near.Run());
  o.network.link.latency = absl::Milliseconds(35);
  o.network.link.jitter = 3;
  o.slowness = {{2, 3.0}};
  SimFleet far(o);
  far.Start();
  ASSERT_TRUE(far.Run());
  EXPECT_EQ(near.Hash(), far.Hash());
}

}  // namespace replica_budget_test
}  // namespace gossamer
