// SIGTERM ends a peer in good order within seconds, with the default heartbeat
// of the service, in virtual time.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "tests/testing/serviced_fleet.h"

namespace gossamer {
namespace leave_time_test {

using ::testing::IsEmpty;

// The time that --leave-within's default leaves for the drain, after the
// checkpoint and the FIN.
constexpr absl::Duration kLimit = absl::Seconds(8);
constexpr absl::Duration kUsual = absl::Milliseconds(7500);

simulation::Scenario Eight(DeadlinePolicy::Kind deadline, absl::Duration step) {
  simulation::Scenario s = UsualFleet(8);
  s.seed = 7;
  s.deadline.kind = deadline;
  s.noise = 0.1;
  s.fault_rounds = 1'000'000;
  s.link.latency = absl::Milliseconds(50);
  s.step_time = step;
  return s;
}

bool RunFor(ServicedFleet& fleet, absl::Duration length) {
  const absl::Time end = fleet.loop().Now() + length;
  return fleet.Until([&] { return fleet.loop().Now() >= end; }, 2 * length);
}

TEST(LeaveTimeTest, EightPeersLeaveInGoodOrderWithinTenSeconds) {
  for (const auto deadline :
       {DeadlinePolicy::Kind::kNone, DeadlinePolicy::Kind::kAdaptive}) {
    for (const absl::Duration step :
         {absl::Milliseconds(8), absl::Milliseconds(500)}) {
      ServicedFleet fleet(Eight(deadline, step));
      ASSERT_TRUE(RunFor(fleet, absl::Seconds(20)));
      ASSERT_TRUE(fleet.Together());
      absl::Duration longest;
      // Two peers leave one at once after the other, two at other points
      // between heartbeats.
      for (const auto& [id, pause] :
           {std::pair<uint64_t, int>{8, 0}, {3, 0}, {1, 2300}, {6, 1400}}) {
        ASSERT_TRUE(RunFor(fleet, absl::Milliseconds(pause)));
        ASSERT_TRUE(fleet.peer(id).joined());
        const absl::Time asked = fleet.loop().Now();
        fleet.peer(id).Leave(kLimit);
        ASSERT_TRUE(fleet.Until(
            [&, id = id] { return fleet.RoundsOf({{id}}).second == 0; },
            absl::Minutes(1)))
            << fleet.violation();
        longest = std::max(longest, fleet.loop().Now() - asked);
      }
      EXPECT_LT(longest, kUsual);
      EXPECT_EQ(fleet.Count("left"), 4);
      EXPECT_EQ(fleet.Count("left_late"), 0);
      EXPECT_THAT(fleet.Stop(), IsEmpty());
    }
  }
}

}  // namespace leave_time_test
}  // namespace gossamer
