// Peers that were left behind catch up, and one peer alone takes no other
// along.

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "algorithms/base/rng.h"
#include "gtest/gtest.h"
#include "tests/runtime/peer/quadratic_fleet.h"
#include "tests/testing/sim_fleet.h"

namespace gossamer {
namespace jump_test {

constexpr int kPeers = 22;

SimFleetOptions Torus() {
  SimFleetOptions o = QuadraticFleet(kPeers, 1500);
  o.schedule.graph = "torus";
  o.peer.deadline.kind = DeadlinePolicy::Kind::kAdaptive;
  return o;
}

// Returns the rounds between the first and the last peer.
uint64_t Spread(SimFleet& fleet) {
  uint64_t least = fleet.peer(0).round(), most = least;
  for (int r = 1; r < fleet.size(); ++r) {
    least = std::min(least, fleet.peer(r).round());
    most = std::max(most, fleet.peer(r).round());
  }
  return most - least;
}

// At the border of the frozen half only a minority of a peer's neighbours is
// ahead.
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

// Its neighbours have room for one payload until it answers.  It jumps to the
// round of that payload, however many rounds they have gone on since.
TEST(JumpTest, ASlowPeerMixesInItsRounds) {
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
      const absl::Time begun = fleet.loop().Now();
      fleet.Start();
      ASSERT_TRUE(fleet.Run());
      const std::vector<RoundMetrics>& own = fleet.recorder(0).rounds;
      EXPECT_GE(own.back().corrections, own.size());
      // A peer that is four times slower than the others is too slow to be
      // waited for.
      const absl::Duration took =
          fleet.recorder(1).rounds.back().finished - begun;
      const bool at_their_speed = took < 1.5 * 600 * o.step_time;
      EXPECT_EQ(at_their_speed, slowness > 4) << took;
    }
  }
}

// In rounds without an exchange nobody waits, and a peer that is a little
// slower is found behind in the next one that has.  It is waited for there.
TEST(JumpTest, RoundsWithoutExchangesLeaveNobodyBehind) {
  for (const char* codec : {"innov-int4", "innov-int4 every 8"}) {
    SCOPED_TRACE(codec);
    SimFleetOptions o = QuadraticFleet(4, 200);
    o.codec = codec;
    o.peer.deadline.kind = DeadlinePolicy::Kind::kAdaptive;
    o.slowness = {{3, 1.5}};
    o.network.link.latency = absl::Milliseconds(1);
    SimFleet fleet(o);
    ASSERT_TRUE(fleet.Run()) << fleet.StatusOf(3);
    EXPECT_EQ(fleet.recorder(3).rounds.size(), 200u);
  }
}

// The count does not depend on the phases that a neighbour has sent.
TEST(JumpTest, ARoundOfSeveralPhasesCountsOncePerNeighbour) {
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
    for (const uint64_t r :
         fleet.peer(0).neighborhood().ObservedRounds().waiting) {
      ASSERT_LE(++neighbors[r], kNeighbors);
    }
    most = std::max(most, neighbors.size());
  }
  EXPECT_GT(most, 0u);
}

// Returns the payloads that mixed between two rounds of the fleet, as a share
// of those of a ring.
double MixedShare(SimFleet& fleet, uint64_t from, uint64_t to) {
  double mixed = 0;
  for (int r = 0; r < fleet.size(); ++r) {
    uint64_t before = 0, after = 0;
    for (const RoundMetrics& m : fleet.recorder(r).rounds) {
      if (m.round <= from) before = m.corrections;
      if (m.round <= to) after = m.corrections;
    }
    mixed += static_cast<double>(after - before);
  }
  return mixed / static_cast<double>(2 * (to - from) * fleet.size());
}

// A peer that was frozen for one to four rounds stays that much behind, since
// no peer waits for it.  An edge whose ends are apart mixes in every second or
// third round only.
TEST(JumpTest, PeersAFewRoundsApartComeBackIntoStep) {
  constexpr uint64_t kFaults = 400, kCalm = 100, kRounds = 700;
  for (const int overlap : {0, 1, 2}) {
    for (const int latency : {1, 40}) {
      SCOPED_TRACE(testing::Message() << overlap << ", " << latency << " ms");
      SimFleetOptions o = QuadraticFleet(8, kRounds);
      o.peer.deadline.kind = DeadlinePolicy::Kind::kAdaptive;
      o.peer.overlap_steps = overlap;
      o.step_time = absl::Milliseconds(160);
      o.step_jitter = 0.02;
      o.network.link.latency = absl::Milliseconds(latency);
      SimFleet fleet(o);
      fleet.Start();
      RngKey key(7);
      for (uint64_t fault = 0; fleet.peer(0).round() < kFaults; ++fault) {
        const RngKey draw = key.Fold(fault);
        fleet.loop().RunFor(absl::Seconds(1));
        fleet.network().Freeze(
            SimFleet::IdOf(static_cast<int>(draw.Bits(0) % 8)),
            fleet.loop().Now() + absl::Milliseconds(100 + draw.Bits(1) % 700));
      }
      ASSERT_TRUE(fleet.Run());
      EXPECT_GE(MixedShare(fleet, kFaults + kCalm, kRounds - 20), 0.95);
    }
  }
}

// Two peers that once outran the others would stay ahead for good, while the
// others wait for the slowest.
TEST(JumpTest, ASlowPeerWithinAFixedDeadlineIsWaitedForAgain) {
  SimFleetOptions o = QuadraticFleet(5, 2000);
  o.schedule.graph = "complete";
  o.peer.deadline = {.kind = DeadlinePolicy::Kind::kFixed,
                     .fixed = absl::Milliseconds(400)};
  o.slowness = {{0, 6}};
  o.network.link.latency = absl::Milliseconds(5);
  SimFleet fleet(o);
  fleet.Start();
  fleet.loop().RunFor(absl::Seconds(1));
  const absl::Time thaw = fleet.loop().Now() + absl::Seconds(2);
  for (const int r : {0, 1, 2}) {
    fleet.network().Freeze(SimFleet::IdOf(r), thaw);
  }
  fleet.loop().RunFor(absl::Seconds(2));
  EXPECT_GT(Spread(fleet), 50u);
  fleet.loop().RunFor(absl::Seconds(2));
  for (int i = 0; i < 20; ++i) {
    EXPECT_LE(Spread(fleet), 1u);
    fleet.loop().RunFor(absl::Milliseconds(333));
  }
}

// The other peer of two computes for minutes, and all connections stay.  The
// silence makes rounds longer, but a deadline does not grow with them.
TEST(JumpTest, AFixedDeadlineDoesNotGrowWithSilence) {
  SimFleetOptions o = QuadraticFleet(2, 5000);
  o.peer.deadline = {DeadlinePolicy::Kind::kFixed, absl::Milliseconds(100)};
  SimFleet fleet(o);
  fleet.Start();
  fleet.loop().RunFor(absl::Seconds(5));
  fleet.network().Freeze(SimFleet::IdOf(1),
                         fleet.loop().Now() + absl::Minutes(10));
  fleet.loop().RunFor(absl::Minutes(5));
  const uint64_t before = fleet.peer(0).round();
  fleet.loop().RunFor(absl::Minutes(1));
  EXPECT_GE(fleet.peer(0).round() - before, 50u);
}

}  // namespace jump_test
}  // namespace gossamer
