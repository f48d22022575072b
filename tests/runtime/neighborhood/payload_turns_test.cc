// Payloads that go out in every second or third round only are paired all the
// same.

#include "runtime/neighborhood/payload_turns.h"

#include <gtest/gtest.h>

#include "tests/runtime/peer/quadratic_fleet.h"
#include "tests/testing/sim_fleet.h"

namespace gossamer {
namespace {

void Exchange(PayloadTurns& turns, ExchangeId id, bool mine, bool theirs) {
  const EdgeMessage message;
  turns.OnExchange(id, mine ? &message : nullptr, theirs ? &message : nullptr);
}

// Returns the first of many exchanges from `id` on that it lets pass; 0 if
// there is none.
ExchangeId FirstLetPass(PayloadTurns& turns, ExchangeId id) {
  for (ExchangeId at = id; at < id + 64; ++at) {
    if (turns.LetPass(at)) return at;
  }
  return 0;
}

TEST(PayloadTurnsTest, ATurnPassesOnceIfPayloadsOfBothEndsMetSkips) {
  PayloadTurns turns(/*upper=*/true);
  EXPECT_EQ(FirstLetPass(turns, 1), 0u);
  Exchange(turns, 1, true, false);
  EXPECT_EQ(FirstLetPass(turns, 2), 0u) << "the other end may be away";
  Exchange(turns, 2, true, true);
  Exchange(turns, 3, false, true);
  EXPECT_EQ(FirstLetPass(turns, 4), 0u) << "a correction in between";
  Exchange(turns, 4, true, false);
  EXPECT_NE(FirstLetPass(turns, 6), 0u);
  EXPECT_EQ(FirstLetPass(turns, 70), 0u) << "once";
}

TEST(PayloadTurnsTest, ExchangesBeforeAPassedTurnDoNotCountAfterIt) {
  PayloadTurns turns(/*upper=*/true);
  Exchange(turns, 1, true, false);
  Exchange(turns, 2, false, true);
  const ExchangeId passed = FirstLetPass(turns, 5);
  ASSERT_NE(passed, 0u);
  Exchange(turns, passed - 2, true, false);
  Exchange(turns, passed - 1, false, true);
  EXPECT_EQ(FirstLetPass(turns, passed + 1), 0u);
  Exchange(turns, passed, false, true);
  Exchange(turns, passed + 1, true, false);
  EXPECT_NE(FirstLetPass(turns, passed + 3), 0u);
}

TEST(PayloadTurnsTest, OnlyTheUpperEndLetsTurnsPass) {
  PayloadTurns turns(/*upper=*/false);
  Exchange(turns, 1, true, false);
  Exchange(turns, 2, false, true);
  EXPECT_EQ(FirstLetPass(turns, 3), 0u);
}

// An exchange takes several rounds, and no end waits for it.  However far apart
// the two ends began, at least every third round mixes.
TEST(PayloadTurnsTest, EdgesMixWhateverTheirPhase) {
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

}  // namespace
}  // namespace gossamer
