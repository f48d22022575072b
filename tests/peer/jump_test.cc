// Peers that were left behind catch up, and nobody is dragged along by one.

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "gtest/gtest.h"
#include "tests/peer/quadratic_fleet.h"
#include "tests/testing/sim_fleet.h"

namespace gossamer {
namespace {

constexpr int kPeers = 22;

SimFleetOptions Torus() {
  SimFleetOptions o = QuadraticFleet(kPeers, 1500);
  o.schedule.graph = "torus";
  o.peer.deadline.kind = DeadlinePolicy::Kind::kAdaptive;
  return o;
}

// Rounds between the first and the last of the fleet.
uint64_t Spread(SimFleet& fleet) {
  uint64_t least = fleet.peer(0).round(), most = least;
  for (int r = 1; r < fleet.size(); ++r) {
    least = std::min(least, fleet.peer(r).round());
    most = std::max(most, fleet.peer(r).round());
  }
  return most - least;
}

// At the border of the part that stood still only a minority of a peer's
// neighbours is ahead.
TEST(JumpTest, HalfOfATorusCatchesUp) {
  SimFleet fleet(Torus());
  fleet.Start();
  fleet.loop().RunFor(absl::Seconds(1));
  for (int r = 0; r < kPeers / 2; ++r) {
    fleet.network().Freeze(SimFleet::IdOf(r),
                           fleet.loop().Now() + absl::Seconds(2));
  }
  fleet.loop().RunFor(absl::Seconds(2));
  EXPECT_GT(Spread(fleet), 50u);
  fleet.loop().RunFor(absl::Seconds(2));
  EXPECT_LT(Spread(fleet), 10u);
  EXPECT_TRUE(fleet.Run()) << fleet.StatusOf(0);
}

// Its neighbours have room for one payload until it answers: it goes where that
// one waits, however many rounds they have gone on since.
TEST(JumpTest, WhoIsSlowMixesInItsRounds) {
  for (const double slowness : {3.0, 6.0, 12.0}) {
    for (const int overlap : {0, 1}) {
      SCOPED_TRACE(testing::Message() << slowness << ", h = " << overlap);
      SimFleetOptions o = QuadraticFleet(4, 600);
      o.schedule.graph = "complete";
      o.peer.deadline.kind = DeadlinePolicy::Kind::kAdaptive;
      o.peer.overlap_steps = overlap;
      o.slowness = {{0, slowness}};
      o.network.link.latency = absl::Milliseconds(1);
      SimFleet fleet(o);
      fleet.Start();
      ASSERT_TRUE(fleet.Run());
      const std::vector<RoundMetrics>& own = fleet.recorder(0).rounds;
      EXPECT_GE(own.back().corrections, own.size());
    }
  }
}

// However many phases of it a neighbour has sent.
TEST(JumpTest, ARoundOfSeveralPhasesCountsOnceANeighbour) {
  constexpr int kNeighbors = 3;
  SimFleetOptions o = QuadraticFleet(kNeighbors + 1, 600);
  o.schedule.graph = "complete";
  o.peer.deadline.kind = DeadlinePolicy::Kind::kAdaptive;
  o.peer.mixing_rounds = 4;
  o.peer.overlap_steps = 0;
  o.slowness = {{0, 12}};
  SimFleet fleet(o);
  fleet.Start();
  size_t most = 0;
  for (int times = 0; times < 200; ++times) {
    fleet.loop().RunFor(absl::Milliseconds(7));
    std::map<uint64_t, int> neighbors;
    for (const uint64_t r : fleet.peer(0).neighborhood().LookAround().waiting) {
      ASSERT_LE(++neighbors[r], kNeighbors);
    }
    most = std::max(most, neighbors.size());
  }
  EXPECT_GT(most, 0u);
}

}  // namespace
}  // namespace gossamer
