// The overlap that the service chooses from what peers measure.

#include "topology/fleet/overlap_chooser.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "topology/view.h"

namespace gossamer {
namespace {

int Choose(std::vector<Tempo> peers, int current) {
  return OverlapChooser().Choose(peers, current, kRoundsToGoBack);
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

// Steps of 0.1 s on a link that carries a payload in 0.125 s: a second exchange
// under way fills it, and a third one can only wait in its queue.
TEST(OverlapChooserTest, FillsNoQueueOfAFullLink) {
  OverlapChooser chooser;
  const auto choose = [&](double exchange, int current) {
    return chooser.Choose(std::vector<Tempo>{{0.1, exchange, 32}}, current, 32);
  };
  EXPECT_EQ(choose(0.16, 1), 2);
  EXPECT_EQ(choose(0.25, 2), 3);  // a round takes 0.125 s instead of 0.16
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(choose(0.375, 3), 3);
    EXPECT_EQ(choose(0.55, 3), 3);
  }
  // The link has become another one, and latency is what a larger h hides.
  EXPECT_EQ(choose(0.6, 3), 7);
  EXPECT_EQ(choose(0.66, 7), 7);
  EXPECT_EQ(choose(0.71, 7), 8);
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
