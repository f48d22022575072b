// Payloads that go out in every second or third round only are paired all the
// same.

#include "runtime/neighborhood/payload_stagger.h"

#include <gtest/gtest.h>

#include "tests/runtime/peer/quadratic_fleet.h"
#include "tests/testing/sim_fleet.h"

namespace gossamer {
namespace payload_stagger_test {

void Exchange(PayloadStagger& stagger, ExchangeId id, bool mine, bool theirs) {
  const EdgeMessage message;
  stagger.OnExchange(id, mine ? &message : nullptr,
                     theirs ? &message : nullptr);
}

// Returns the first of many exchanges from `id` on that it skips; 0 if there is
// none.
ExchangeId FirstSkipped(PayloadStagger& stagger, ExchangeId id) {
  for (ExchangeId at = id; at < id + 64; ++at) {
    if (stagger.ShouldSkip(at)) return at;
  }
  return 0;
}

TEST(PayloadStaggerTest, SkipsOnceIfPayloadsOfBothEndsMetSkips) {
  PayloadStagger stagger(/*upper=*/true);
  EXPECT_EQ(FirstSkipped(stagger, 1), 0u);
  Exchange(stagger, 1, true, false);
  EXPECT_EQ(FirstSkipped(stagger, 2), 0u) << "the other end may be away";
  Exchange(stagger, 2, true, true);
  Exchange(stagger, 3, false, true);
  EXPECT_EQ(FirstSkipped(stagger, 4), 0u) << "a correction in between";
  Exchange(stagger, 4, true, false);
  EXPECT_NE(FirstSkipped(stagger, 6), 0u);
  EXPECT_EQ(FirstSkipped(stagger, 70), 0u) << "once";
}

TEST(PayloadStaggerTest, ExchangesBeforeASkipDoNotCountAfterIt) {
  PayloadStagger stagger(/*upper=*/true);
  Exchange(stagger, 1, true, false);
  Exchange(stagger, 2, false, true);
  const ExchangeId skipped = FirstSkipped(stagger, 5);
  ASSERT_NE(skipped, 0u);
  Exchange(stagger, skipped - 2, true, false);
  Exchange(stagger, skipped - 1, false, true);
  EXPECT_EQ(FirstSkipped(stagger, skipped + 1), 0u);
  Exchange(stagger, skipped, false, true);
  Exchange(stagger, skipped + 1, true, false);
  EXPECT_NE(FirstSkipped(stagger, skipped + 3), 0u);
}

TEST(PayloadStaggerTest, OnlyTheUpperEndSkips) {
  PayloadStagger stagger(/*upper=*/false);
  Exchange(stagger, 1, true, false);
  Exchange(stagger, 2, false, true);
  EXPECT_EQ(FirstSkipped(stagger, 3), 0u);
}

// An exchange takes several rounds, and no end waits for it.  However far apart
// the two ends began, at least every third round mixes.
TEST(PayloadStaggerTest, EdgesMixWhateverTheirPhase) {
  constexpr uint64_t kRounds = 200;
  for (const int latency : {60, 90, 120, 150}) {
    for (const int later : {0, 50, 100, 150}) {
      SCOPED_TRACE(testing::Message() << latency << " ms, " << later);
      SimFleetOptions o = QuadraticFleet(2, kRounds);
      o.peer.deadline = {.kind = DeadlinePolicy::Kind::kFixed,
                         .fixed = absl::Milliseconds(55)};
      o.peer.overlap_steps = 1;
      o.step_time = absl::Milliseconds(50);
      o.step_jitter = 0;
      o.first_step = {{1, absl::Milliseconds(50 + later)}};
      o.network.link.latency = absl::Milliseconds(latency);
      SimFleet fleet(o);
      fleet.Start();
      ASSERT_TRUE(fleet.Run());
      for (const int rank : {0, 1}) {
        const uint64_t mixed = fleet.recorder(rank).rounds.back().corrections;
        EXPECT_GE(mixed, kRounds / 3) << rank;
      }
    }
  }
}

}  // namespace payload_stagger_test
}  // namespace gossamer
