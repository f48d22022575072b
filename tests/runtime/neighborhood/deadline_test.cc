#include "runtime/neighborhood/deadline.h"

#include <optional>

#include "gtest/gtest.h"

namespace gossamer {
namespace {

constexpr absl::Duration kRound = absl::Milliseconds(100);

DeadlineEstimator Adaptive() {
  return DeadlineEstimator({DeadlinePolicy::Kind::kAdaptive, {}});
}

void Record(DeadlineEstimator& e, int n, absl::Duration arrival) {
  for (int i = 0; i < n; ++i) e.Record(arrival);
}

// Of a peer whose edges have taught nothing.
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

// Rounds that wait for silence make it older, and the deadline longer.
TEST(DeadlineTest, FixedDoesNotGrowWithWhatNeverArrives) {
  DeadlineEstimator e({DeadlinePolicy::Kind::kFixed, kRound});
  Record(e, 20, absl::Milliseconds(12));
  for (int i = 0; i < 100; ++i) e.RecordMissing(absl::Seconds(20));
  EXPECT_LE(Limit(e, kRound, *e.Typical()),
            absl::Seconds(1) + absl::Milliseconds(12));
  // A long way is not silence.
  Record(e, 100, absl::Seconds(3));
  EXPECT_EQ(Limit(e, kRound, *e.Typical()), absl::Seconds(3));
}

// Steps that compile take as long as they like, but not for ever.
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
  // At most a second over the round, unless the others need more.
  Record(peer, 32, absl::Milliseconds(900));
  EXPECT_EQ(Adaptive().Limit(kRound, peer), absl::Seconds(1) + kRound);
  Record(peer, 32, absl::Seconds(3));
  EXPECT_EQ(Adaptive().Limit(kRound, peer), absl::Seconds(3) + kRound / 4);
}

// A longer way is not late eight times; one long silence teaches no patience.
TEST(DeadlineTest, FirstExchangesTeach) {
  DeadlineEstimator peer = Adaptive(), e = Adaptive();
  Record(peer, 32, absl::Milliseconds(5));
  EXPECT_EQ(e.Limit(kRound, peer), absl::Milliseconds(200));
  e.Record(absl::Milliseconds(300));
  EXPECT_EQ(e.Limit(kRound, peer), absl::Milliseconds(300));
  e.Record(absl::Minutes(1));
  EXPECT_EQ(e.Limit(kRound, peer), absl::Milliseconds(1300));
}

// Exchanges that took the same time again and again are not late for little.
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
  // Median 120, median deviation 20.
  EXPECT_EQ(Limit(e, kRound), absl::Milliseconds(200));
  Record(e, 32, absl::Milliseconds(30));
  EXPECT_EQ(Limit(e, kRound), absl::Milliseconds(55));
}

TEST(DeadlineTest, IsBoundedAboveBesideTheTransfer) {
  DeadlineEstimator e = Adaptive();
  for (int i = 0; i < 32; ++i) e.Record(absl::Seconds(1 + i));
  EXPECT_EQ(Limit(e, kRound), absl::Seconds(2));
  EXPECT_EQ(Limit(e, absl::Seconds(20)), absl::Seconds(11));
}

// Not for who is so much slower than the others and this peer itself.
TEST(DeadlineTest, WhoNeedsFourTimesWhatOthersNeedIsNotWaitedFor) {
  DeadlineEstimator e = Adaptive();
  Record(e, 20, absl::Milliseconds(400));
  EXPECT_EQ(Limit(e, kRound), absl::Milliseconds(425));
  EXPECT_EQ(Limit(e, kRound, kRound), absl::Milliseconds(400));
  EXPECT_EQ(Limit(e, kRound, kRound / 2), absl::Milliseconds(200));
  EXPECT_EQ(Limit(e, kRound, absl::ZeroDuration()), absl::Milliseconds(50));
}

// They are behind a cut or do not run: how long they have been missing is no
// transfer.
TEST(DeadlineTest, WhatNeverArrivesRaisesItNoFurtherThanItsBound) {
  DeadlineEstimator e = Adaptive();
  Record(e, 20, absl::Milliseconds(30));
  for (int i = 0; i < 100; ++i) e.RecordMissing(absl::Seconds(20 + i));
  EXPECT_EQ(Limit(e, kRound), absl::Milliseconds(1030));
}

}  // namespace
}  // namespace gossamer
