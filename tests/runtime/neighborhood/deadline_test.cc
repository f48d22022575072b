// Deadlines that edges learn: from spread and median, bounded, and never from
// silence.

#include "runtime/neighborhood/deadline.h"

#include <optional>

#include "gtest/gtest.h"

namespace gossamer {
namespace deadline_test {

constexpr absl::Duration kRound = absl::Milliseconds(100);

DeadlineEstimator Adaptive() {
  return DeadlineEstimator({DeadlinePolicy::Kind::kAdaptive, {}});
}

void Record(DeadlineEstimator& e, int n, absl::Duration arrival) {
  for (int i = 0; i < n; ++i) e.Record(arrival);
}

// Returns the limit for a peer whose edges have taught nothing.
absl::Duration Limit(const DeadlineEstimator& e, absl::Duration round,
                     std::optional<absl::Duration> possible = {}) {
  return e.Limit(round, Adaptive(), possible);
}

TEST(DeadlineTest, NoneNeverEnds) {
  DeadlineEstimator e({DeadlinePolicy::Kind::kNone, {}});
  Record(e, 20, absl::Milliseconds(1));
  EXPECT_EQ(Limit(e, kRound), absl::InfiniteDuration());
}

TEST(DeadlineTest, FixedIsFixedIfItCanBeKept) {
  DeadlineEstimator e({DeadlinePolicy::Kind::kFixed, absl::Milliseconds(7)});
  EXPECT_EQ(Limit(e, kRound), absl::Milliseconds(7));
  EXPECT_EQ(Limit(e, kRound, absl::Milliseconds(5)), absl::Milliseconds(7));
  EXPECT_EQ(Limit(e, kRound, absl::Milliseconds(9)), absl::Milliseconds(9));
}

// A round that waits for a silent neighbour makes the silence longer, which
// must not make the deadline longer.
TEST(DeadlineTest, AFixedDeadlineDoesNotGrowWithMissingPayloads) {
  DeadlineEstimator e({DeadlinePolicy::Kind::kFixed, kRound});
  Record(e, 20, absl::Milliseconds(12));
  for (int i = 0; i < 100; ++i) e.RecordMissing(absl::Seconds(20));
  EXPECT_LE(Limit(e, kRound, *e.Typical()),
            absl::Seconds(1) + absl::Milliseconds(12));
  // A long transfer is not silence.
  Record(e, 100, absl::Seconds(3));
  EXPECT_EQ(Limit(e, kRound, *e.Typical()), absl::Seconds(3));
}

// A first step may compile for long, but not for ever.
TEST(DeadlineTest, FirstExchangesOfAFleetHaveTime) {
  DeadlineEstimator e = Adaptive();
  EXPECT_EQ(Limit(e, absl::ZeroDuration()), absl::Seconds(30));
  Record(e, 7, absl::Milliseconds(50));
  EXPECT_EQ(Limit(e, kRound), absl::Seconds(30) + kRound);
  e.Record(absl::Milliseconds(50));
  EXPECT_EQ(Limit(e, kRound), absl::Milliseconds(75));
}

TEST(DeadlineTest, FirstExchangesOfAnEdgeHaveFourTimesWhatOthersNeed) {
  DeadlineEstimator peer = Adaptive();
  Record(peer, 8, absl::Milliseconds(50));
  EXPECT_EQ(Adaptive().Limit(kRound, peer), absl::Milliseconds(300));
  // The limit is a second over the round, or more if the other edges need more.
  Record(peer, 32, absl::Milliseconds(900));
  EXPECT_EQ(Adaptive().Limit(kRound, peer), absl::Seconds(1) + kRound);
  Record(peer, 32, absl::Seconds(3));
  EXPECT_EQ(Adaptive().Limit(kRound, peer), absl::Seconds(3) + kRound / 4);
}

// A longer transfer is late only once, not eight times, and one long silence
// teaches no patience.
TEST(DeadlineTest, AnEdgeLearnsFromItsFirstExchanges) {
  DeadlineEstimator peer = Adaptive(), e = Adaptive();
  Record(peer, 32, absl::Milliseconds(5));
  EXPECT_EQ(e.Limit(kRound, peer), absl::Milliseconds(200));
  e.Record(absl::Milliseconds(300));
  EXPECT_EQ(e.Limit(kRound, peer), absl::Milliseconds(300));
  e.Record(absl::Minutes(1));
  EXPECT_EQ(e.Limit(kRound, peer), absl::Milliseconds(1300));
}

// The margin keeps exchanges that always take the same time from being late by
// a little.
TEST(DeadlineTest, IsAtLeastFiftyMillisecondsAndAQuarterRoundAboveTheMedian) {
  DeadlineEstimator e = Adaptive();
  Record(e, 10, absl::Milliseconds(1));
  EXPECT_EQ(Limit(e, absl::Milliseconds(10)), absl::Milliseconds(50));
  EXPECT_EQ(Limit(e, absl::Milliseconds(400)), absl::Milliseconds(101));
}

TEST(DeadlineTest, FollowsSpreadAndForgets) {
  DeadlineEstimator e = Adaptive();
  for (int i = 0; i < 32; ++i) {
    e.Record(absl::Milliseconds(i % 2 ? 100 : 120));
  }
  // The median is 120, the median deviation 20.
  EXPECT_EQ(Limit(e, kRound), absl::Milliseconds(200));
  Record(e, 32, absl::Milliseconds(30));
  EXPECT_EQ(Limit(e, kRound), absl::Milliseconds(55));
}

TEST(DeadlineTest, TheTimeBeyondTheTransferIsBounded) {
  DeadlineEstimator e = Adaptive();
  for (int i = 0; i < 32; ++i) e.Record(absl::Seconds(1 + i));
  EXPECT_EQ(Limit(e, kRound), absl::Seconds(2));
  EXPECT_EQ(Limit(e, absl::Seconds(20)), absl::Seconds(11));
}

// An edge that needs far more than the other edges and this peer itself does
// not get it.
TEST(DeadlineTest, AnEdgeGetsAtMostFourTimesWhatOthersNeed) {
  DeadlineEstimator e = Adaptive();
  Record(e, 20, absl::Milliseconds(400));
  EXPECT_EQ(Limit(e, kRound), absl::Milliseconds(425));
  EXPECT_EQ(Limit(e, kRound, kRound), absl::Milliseconds(400));
  EXPECT_EQ(Limit(e, kRound, kRound / 2), absl::Milliseconds(200));
  EXPECT_EQ(Limit(e, kRound, absl::ZeroDuration()), absl::Milliseconds(50));
}

// The missing neighbours are behind a cut or do not run, so the time for which
// they have been missing is no transfer.
TEST(DeadlineTest, MissingPayloadsRaiseADeadlineOnlyUpToItsBound) {
  DeadlineEstimator e = Adaptive();
  Record(e, 20, absl::Milliseconds(30));
  for (int i = 0; i < 100; ++i) e.RecordMissing(absl::Seconds(20 + i));
  EXPECT_EQ(Limit(e, kRound), absl::Milliseconds(1030));
}

}  // namespace deadline_test
}  // namespace gossamer
