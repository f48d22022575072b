#include "topology/service/simulation/simulation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "topology/mixing_schedule.h"

namespace gossamer::simulation {
namespace {

using ::testing::IsEmpty;

TEST(Simulation, TheSameSeedGivesTheSameTrace) {
  std::set<uint64_t> hashes;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    const Scenario scenario = DrawScenario(seed);
    std::vector<std::string> lines;
    const Outcome one = Simulate(scenario);
    const Outcome two = Simulate(
        scenario, [&](const std::string& line) { lines.push_back(line); });
    EXPECT_THAT(one.violation, IsEmpty());
    EXPECT_EQ(one.trace_hash, two.trace_hash) << Describe(scenario);
    EXPECT_EQ(one.events, two.events);
    EXPECT_GT(lines.size(), 10u);
    hashes.insert(one.trace_hash);
  }
  EXPECT_EQ(hashes.size(), 8u) << "seeds differ";
}

// One in thousands each; kept for as long as draws stay what they are.
TEST(Simulation, SeedsThatFoundSomethingOnce) {
  for (const uint64_t seed :
       {931,     2448,    2577,    3078,    4618,    4631,    20602,
        41703,   44699,   50614,   50879,   56131,   56141,   59122,
        60313,   205,     101069,  312097,  450988,  452336,  500780,
        501014,  501134,  502478,  856598,  1050261, 1156558, 2052882,
        2057772, 3000791, 3001104, 2003605, 2007102, 2008830, 2010524,
        2011488, 2011611, 2014957, 2019125, 4011278, 5004382, 5055425,
        5055617, 93,      361,     399,     5083324, 5083857}) {
    EXPECT_THAT(Simulate(DrawScenario(seed)).violation, IsEmpty()) << seed;
  }
}

// What else the process has done must not show: no order of addresses, no state
// that outlives a seed.
TEST(Simulation, SeedsDoNotKnowOfEachOther) {
  constexpr uint64_t kSeeds = 40;
  std::vector<uint64_t> forwards, backwards;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    forwards.push_back(Simulate(DrawScenario(seed)).trace_hash);
  }
  for (uint64_t seed = kSeeds; seed >= 1; --seed) {
    backwards.push_back(Simulate(DrawScenario(seed)).trace_hash);
  }
  std::ranges::reverse(backwards);
  EXPECT_EQ(forwards, backwards);
}

TEST(Simulation, ScenariosAreWithinTheirBounds) {
  double peers = 0;
  constexpr int kSeeds = 2000;
  for (int seed = 0; seed < kSeeds; ++seed) {
    const Scenario s = DrawScenario(static_cast<uint64_t>(seed));
    peers += s.peers;
    EXPECT_GE(s.peers, kFewestPeers);
    EXPECT_LE(s.peers, kMostPeers);
    EXPECT_LE((s.tracked ? 4 : 2) * s.dimension, kMostParameters);
    EXPECT_TRUE(MakeSchedule(s.schedule, s.peers, s.seed).ok()) << Describe(s);
  }
  EXPECT_GT(peers / kSeeds, 8);
  EXPECT_LT(peers / kSeeds, 12);
}

}  // namespace
}  // namespace gossamer::simulation
