#include "runtime/peer/deadline.h"

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

TEST(DeadlineTest, NoneNeverEnds) {
  DeadlineEstimator e({DeadlinePolicy::Kind::kNone, {}});
  Record(e, 20, absl::Milliseconds(1));
  EXPECT_EQ(e.Limit(kRound), absl::InfiniteDuration());
}

TEST(DeadlineTest, FixedIsFixedIfItCanBeKept) {
  DeadlineEstimator e({DeadlinePolicy::Kind::kFixed, absl::Milliseconds(7)});
  EXPECT_EQ(e.Limit(kRound), absl::Milliseconds(7));
  EXPECT_EQ(e.Limit(kRound, absl::Milliseconds(5)), absl::Milliseconds(7));
  EXPECT_EQ(e.Limit(kRound, absl::Milliseconds(9)), absl::Milliseconds(9));
}

TEST(DeadlineTest, FirstEightExchangesHaveNone) {
  DeadlineEstimator e = Adaptive();
  Record(e, 7, absl::Milliseconds(50));
  EXPECT_EQ(e.Limit(kRound), absl::InfiniteDuration());
  e.Record(absl::Milliseconds(50));
  EXPECT_EQ(e.Limit(kRound), absl::Milliseconds(50));
}

TEST(DeadlineTest, IsAtLeastTwentyMillisecondsAndAQuarterRound) {
  DeadlineEstimator e = Adaptive();
  Record(e, 10, absl::Milliseconds(1));
  EXPECT_EQ(e.Limit(absl::Milliseconds(10)), absl::Milliseconds(20));
  EXPECT_EQ(e.Limit(absl::Milliseconds(400)), absl::Milliseconds(100));
}

TEST(DeadlineTest, FollowsSpreadAndForgets) {
  DeadlineEstimator e = Adaptive();
  for (int i = 0; i < 32; ++i) {
    e.Record(absl::Milliseconds(i % 2 ? 100 : 120));
  }
  // Median 120, median deviation 20.
  EXPECT_EQ(e.Limit(kRound), absl::Milliseconds(200));
  Record(e, 32, absl::Milliseconds(30));
  EXPECT_EQ(e.Limit(kRound), absl::Milliseconds(30));
}

TEST(DeadlineTest, IsBoundedAboveBesideTheTransfer) {
  DeadlineEstimator e = Adaptive();
  for (int i = 0; i < 32; ++i) e.Record(absl::Seconds(1 + i));
  EXPECT_EQ(e.Limit(kRound), absl::Seconds(2));
  EXPECT_EQ(e.Limit(absl::Seconds(20)), absl::Seconds(11));
}

}  // namespace
}  // namespace gossamer
