// The overlap that the service chooses from what peers measure.

#include "topology/fleet/overlap_chooser.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "topology/view.h"

namespace gossamer {
namespace {

int Choose(std::vector<Tempo> peers, int current) {
  return ChooseOverlap(peers, current);
}

TEST(OverlapChooserTest, HidesTheLongestExchangeBehindSteps) {
  EXPECT_EQ(Choose({{0.1, 0.05, 32}, {0.1, 0.02, 32}}, 1), 1);
  EXPECT_EQ(Choose({{0.1, 0.05, 32}, {0.1, 0.11, 32}}, 1), 2);
  EXPECT_EQ(Choose({{0.1, 0.31, 32}, {0.1, 0.02, 32}}, 1), 4);
  EXPECT_EQ(Choose({{0.001, 0.2, 32}}, 1), kMaxOverlap);
}

TEST(OverlapChooserTest, WaitsForEveryPeersMeasurements) {
  EXPECT_EQ(Choose({{0.1, 0.5, 32}, {0.1, 0.5, kRoundsToChoose - 1}}, 1), 1);
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

TEST(OverlapChooserTest, NonsenseChangesNothing) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const Tempo bad :
       {Tempo{0, 1, 32}, Tempo{-1, 1, 32}, Tempo{kInfinity, 1, 32},
        Tempo{1, kInfinity, 32}, Tempo{1, -1, 32}, Tempo{1, 0.0 / 0.0, 32}}) {
    EXPECT_EQ(Choose({{0.1, 0.5, 32}, bad}, 2), 2);
  }
}

}  // namespace
}  // namespace gossamer
