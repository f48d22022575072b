// Which peers suspect a silent one, and when.  A peer that is cut off from one
// neighbour only is known to live by the others.

#include <string>

#include "gtest/gtest.h"
#include "tests/runtime/peer/quadratic_fleet.h"
#include "tests/testing/sim_fleet.h"

namespace gossamer {
namespace suspicion_test {

constexpr absl::Duration kSuspectAfter = absl::Seconds(2);

SimFleetOptions WatchfulFleet(const std::string& graph) {
  SimFleetOptions o = QuadraticFleet(5, 2000);
  o.schedule.graph = graph;
  o.peer.deadline = {DeadlinePolicy::Kind::kFixed, absl::Milliseconds(40)};
  o.peer.suspect_after = kSuspectAfter;
  return o;
}

class SuspicionTest : public ::testing::Test {
 protected:
  // Cuts peers 0 and 1 off from each other for `cut`; returns how many peers
  // suspect.
  int SuspectersAfterCut(const std::string& graph, absl::Duration cut) {
    SimFleet fleet(WatchfulFleet(graph));
    fleet.Start();
    fleet.loop().RunFor(absl::Seconds(1));
    fleet.network().Break(SimFleet::IdOf(0), SimFleet::IdOf(1), cut);
    fleet.loop().RunFor(cut);
    return Suspecters(fleet);
  }
  static int Suspecters(SimFleet& fleet) {
    int suspecters = 0;
    for (int rank = 0; rank < fleet.size(); ++rank) {
      suspecters += fleet.recorder(rank).Count("member_suspected");
    }
    return suspecters;
  }
};

TEST_F(SuspicionTest, APeerThatAnotherOneReachesIsSuspectedLater) {
  EXPECT_EQ(SuspectersAfterCut("complete", 1.75 * kSuspectAfter), 0);
  EXPECT_EQ(SuspectersAfterCut("complete", 2.25 * kSuspectAfter), 2);
}

// On a ring of five no other peer has a connection with both.
TEST_F(SuspicionTest, APeerThatNoOtherReachesIsSuspectedOnTime) {
  EXPECT_EQ(SuspectersAfterCut("ring", 0.9 * kSuspectAfter), 0);
  EXPECT_EQ(SuspectersAfterCut("ring", 1.25 * kSuspectAfter), 2);
}

TEST_F(SuspicionTest, AFrozenPeerIsSuspectedByAllOthersOnTime) {
  SimFleet fleet(WatchfulFleet("complete"));
  fleet.Start();
  fleet.loop().RunFor(absl::Seconds(1));
  fleet.network().Freeze(SimFleet::IdOf(1),
                         fleet.loop().Now() + absl::Hours(1));
  fleet.loop().RunFor(0.9 * kSuspectAfter);
  EXPECT_EQ(Suspecters(fleet), 0);
  fleet.loop().RunFor(0.35 * kSuspectAfter);
  EXPECT_EQ(Suspecters(fleet), 4);
}

}  // namespace suspicion_test
}  // namespace gossamer
