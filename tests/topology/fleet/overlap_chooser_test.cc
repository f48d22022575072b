// The overlap that the service chooses from what peers measure.

#include "topology/fleet/overlap_chooser.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "topology/view.h"

namespace gossamer {
namespace overlap_chooser_test {

int Choose(std::vector<RoundTiming> peers, int current) {
  return OverlapChooser().Choose(peers, current, kExchangesToGoBack);
}

TEST(OverlapChooserTest, HidesTheLongestExchangeBehindSteps) {
  EXPECT_EQ(Choose({{0.1, 0.05, 32}, {0.1, 0.02, 32}}, 1), 1);
  EXPECT_EQ(Choose({{0.1, 0.05, 32}, {0.1, 0.11, 32}}, 1), 2);
  EXPECT_EQ(Choose({{0.1, 0.31, 32}, {0.1, 0.02, 32}}, 1), 4);
  EXPECT_EQ(Choose({{0.001, 0.2, 32}}, 1), kMaxOverlap);
}

TEST(OverlapChooserTest, WaitsForEveryPeersMeasurements) {
  EXPECT_EQ(Choose({{0.1, 0.5, 32}, {0.1, 0.5, kExchangesToChoose - 1}}, 1), 1);
  EXPECT_EQ(Choose({}, 3), 3);
}

TEST(OverlapChooserTest, GoesBackOnlyWithAQuarterToSpare) {
  EXPECT_EQ(Choose({{0.1, 0.18, 32}}, 3), 3);
  EXPECT_EQ(Choose({{0.1, 0.15, 32}}, 3), 2);
  EXPECT_EQ(Choose({{0.1, 0.01, 32}}, 8), 1);
}

// The fast peer hears the slow one a slow step late, which no overlap hides.
TEST(OverlapChooserTest, SlowPeersAreNotSlowLinks) {
  EXPECT_EQ(Choose({{0.01, 0.1, 32}, {0.1, 0.02, 32}}, 1), 1);
  EXPECT_EQ(Choose({{0.095, 0.25, 32}, {0.1, 0.02, 32}}, 1), 3);
}

TEST(OverlapChooserTest, NoLargerOneWhereNobodyWaits) {
  const RoundTiming ahead{0.1, 0.35, 32, /*waits=*/false};
  EXPECT_EQ(Choose({ahead, ahead}, 2), 2);
  EXPECT_EQ(Choose({ahead, {0.1, 0.05, 32, /*waits=*/true}}, 2), 4);
  // A fast peer waits for the slow ones, whatever the overlap.
  EXPECT_EQ(Choose({ahead, {0.01, 0.35, 32, /*waits=*/true}}, 2), 2);
  EXPECT_EQ(Choose({{0.1, 0.01, 32, /*waits=*/false}}, 2), 1);
}

// A fleet with steps of 0.1 s.
class SteadyFleet {
 public:
  // `measured`: exchanges of each peer in the present view.
  int Choose(double exchange, int current, uint64_t measured) {
    return chooser_.Choose(std::vector<RoundTiming>{{0.1, exchange, measured}},
                           current, measured);
  }

 private:
  OverlapChooser chooser_;
};

// A link that carries a payload in 0.125 s: a second exchange under way fills
// it, and a third one can only wait in its queue.
TEST(OverlapChooserTest, FillsNoQueueOfAFullLink) {
  SteadyFleet fleet;
  EXPECT_EQ(fleet.Choose(0.16, 1, 3), 2);
  // It did bring something: rounds take 0.125 s instead of 0.16.
  EXPECT_EQ(fleet.Choose(0.25, 2, 5), 3);
  // The queue grows by and by.
  EXPECT_EQ(fleet.Choose(0.31, 3, 5), 3);
  for (uint64_t measured : {6, 8, 32}) {
    EXPECT_EQ(fleet.Choose(0.375, 3, measured), 3) << measured;
  }
  // A few long ones are a disturbance, and many the latency of another link.
  EXPECT_EQ(fleet.Choose(0.6, 3, 31), 3);
  EXPECT_EQ(fleet.Choose(0.55, 3, 32), 3);
  EXPECT_EQ(fleet.Choose(0.6, 3, 32), 7);
}

TEST(OverlapChooserTest, HidesTheLatencyOfALinkThatIsNoLongerFull) {
  SteadyFleet fleet;
  EXPECT_EQ(fleet.Choose(0.19, 1, 3), 2);
  EXPECT_EQ(fleet.Choose(0.5, 2, 5), 2);
  EXPECT_EQ(fleet.Choose(0.3, 2, 31), 2);
  EXPECT_EQ(fleet.Choose(0.3, 2, 32), 4);
}

TEST(OverlapChooserTest, JudgesALargerOverlapByItsOwnExchanges) {
  SteadyFleet fleet;
  EXPECT_EQ(fleet.Choose(0.3, 1, 3), 4);
  // Rounds take 0.225 s instead of 0.3.
  EXPECT_EQ(fleet.Choose(0.9, 4, 6), 4);
  EXPECT_EQ(fleet.Choose(0.9, 4, 7), 8);
}

TEST(OverlapChooserTest, NonsenseChangesNothing) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const RoundTiming bad :
       {RoundTiming{0, 1, 32}, RoundTiming{-1, 1, 32},
        RoundTiming{kInfinity, 1, 32}, RoundTiming{1, kInfinity, 32},
        RoundTiming{1, -1, 32}, RoundTiming{1, 0.0 / 0.0, 32}}) {
    EXPECT_EQ(Choose({{0.1, 0.5, 32}, bad}, 2), 2);
  }
}

}  // namespace overlap_chooser_test
}  // namespace gossamer
