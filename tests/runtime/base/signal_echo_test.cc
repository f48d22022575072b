// The same signal twice within a moment counts once.

#include "runtime/base/signal_echo.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace gossamer {
namespace {

constexpr absl::Time kThen = absl::UnixEpoch();

TEST(SignalEcho, TheFirstOneSoonAgainIsAnEcho) {
  SignalEcho echo;
  EXPECT_FALSE(echo.Is(SIGTERM, kThen));
  EXPECT_TRUE(echo.Is(SIGTERM, kThen));
  EXPECT_TRUE(echo.Is(SIGTERM, kThen + absl::Milliseconds(1900)));
}

TEST(SignalEcho, LaterOrAnotherOneIsNot) {
  SignalEcho echo;
  EXPECT_FALSE(echo.Is(SIGTERM, kThen));
  EXPECT_FALSE(echo.Is(SIGINT, kThen));
  EXPECT_FALSE(echo.Is(SIGTERM, kThen + SignalEcho::kWithin));
}

// A person who keeps a key pressed gets through every two seconds.
TEST(SignalEcho, EchoesDoNotPutOffWhatFollows) {
  SignalEcho echo;
  int echoes = 0;
  for (int i = 0; i < 100; ++i) {
    echoes += echo.Is(SIGINT, kThen + i * absl::Milliseconds(100));
  }
  EXPECT_EQ(echoes, 95);
}

}  // namespace
}  // namespace gossamer
