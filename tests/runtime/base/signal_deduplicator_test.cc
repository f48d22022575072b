// The same signal twice within a moment counts once.

#include "runtime/base/signal_deduplicator.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace gossamer {
namespace {

constexpr absl::Time kThen = absl::UnixEpoch();

TEST(SignalDeduplicator, TheFirstOneSoonAgainIsADuplicate) {
  SignalDeduplicator deduplicator;
  EXPECT_FALSE(deduplicator.IsDuplicate(SIGTERM, kThen));
  EXPECT_TRUE(deduplicator.IsDuplicate(SIGTERM, kThen));
  EXPECT_TRUE(
      deduplicator.IsDuplicate(SIGTERM, kThen + absl::Milliseconds(1900)));
}

TEST(SignalDeduplicator, LaterOrAnotherOneIsNot) {
  SignalDeduplicator deduplicator;
  EXPECT_FALSE(deduplicator.IsDuplicate(SIGTERM, kThen));
  EXPECT_FALSE(deduplicator.IsDuplicate(SIGINT, kThen));
  EXPECT_FALSE(
      deduplicator.IsDuplicate(SIGTERM, kThen + SignalDeduplicator::kWithin));
}

// A person who keeps a key pressed gets through every two seconds.
TEST(SignalDeduplicator, DuplicatesDoNotPutOffWhatFollows) {
  SignalDeduplicator deduplicator;
  int duplicates = 0;
  for (int i = 0; i < 100; ++i) {
    duplicates +=
        deduplicator.IsDuplicate(SIGINT, kThen + i * absl::Milliseconds(100));
  }
  EXPECT_EQ(duplicates, 95);
}

}  // namespace
}  // namespace gossamer
