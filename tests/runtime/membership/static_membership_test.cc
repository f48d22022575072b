// The fleet without a service shows its view, and stops as one with a service
// does.

#include "tests/testing/static_membership.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "runtime/sim/virtual_loop.h"

namespace gossamer {
namespace static_membership_test {

View ViewOf(int peers) {
  View view;
  view.run_id = "run";
  for (int i = 1; i <= peers; ++i) {
    view.members.push_back({.id = {static_cast<uint64_t>(i)}, .address = "a"});
  }
  return view;
}

PeerReport AtRound(uint64_t round) {
  PeerReport report;
  report.round = round;
  return report;
}

TEST(StaticMembershipTest, ShowsTheViewAndTheFurthestRound) {
  VirtualLoop loop;
  StaticFleet fleet(ViewOf(2));
  const auto one = fleet.Join({1}, &loop);
  const auto two = fleet.Join({2}, &loop);
  EXPECT_EQ(one->view().epoch, 1);
  EXPECT_EQ(one->view().RankOf({2}), 1);
  EXPECT_FALSE(one->fleet_round());
  two->Report(AtRound(9));
  one->Report(AtRound(4));
  EXPECT_EQ(one->fleet_round(), 9);
  EXPECT_EQ(fleet.reports().at({1}).round, 4);
}

TEST(StaticMembershipTest, StopsWhenAllHaveAcknowledged) {
  VirtualLoop loop;
  StaticFleet fleet(ViewOf(2), 5);
  const auto one = fleet.Join({1}, &loop);
  const auto two = fleet.Join({2}, &loop);
  int changes = 0;
  one->Observe(&changes, [&changes] { ++changes; });
  two->Report(AtRound(10));
  one->RequestStop();
  EXPECT_EQ(one->stop().round, 15);
  EXPECT_EQ(changes, 0);  // never inline
  loop.Run();
  EXPECT_EQ(changes, 1);
  one->AcknowledgeStop(15);
  EXPECT_FALSE(one->stop().committed);
  two->AcknowledgeStop(15);
  EXPECT_TRUE(two->stop().committed);
  loop.Run();
  EXPECT_EQ(changes, 2);
}

TEST(StaticMembershipTest, EveryObserverIsCalledUntilItsOwnerRemovesIt) {
  VirtualLoop loop;
  StaticFleet fleet(ViewOf(2), 5);
  const auto one = fleet.Join({1}, &loop);
  std::string told;
  const int first = 0, second = 0;
  one->Observe(&first, [&told] { told += "a"; });
  one->Observe(&second, [&told] { told += "b"; });
  one->RequestStop();
  loop.Run();
  EXPECT_EQ(told, "ab");
  one->Observe(&first, [&] {
    told += "c";
    one->RemoveObserver(&second);
  });
  one->AcknowledgeStop(one->stop().round);
  fleet.Join({2}, &loop)->AcknowledgeStop(one->stop().round);
  loop.Run();
  EXPECT_EQ(told.substr(0, 3), "abc");
  EXPECT_EQ(told.find('b', 2), std::string::npos);
}

TEST(StaticMembershipTest, TheStopMovesLaterIfAPeerHasBegunItsRound) {
  VirtualLoop loop;
  StaticFleet fleet(ViewOf(2), 5);
  const auto one = fleet.Join({1}, &loop);
  const auto two = fleet.Join({2}, &loop);
  one->RequestStop();
  EXPECT_EQ(one->stop().round, 6);
  one->AcknowledgeStop(6);
  two->BeginRound(6);
  EXPECT_EQ(one->stop().round, 11);
  two->AcknowledgeStop(11);
  EXPECT_FALSE(one->stop().committed);
  one->AcknowledgeStop(11);
  EXPECT_TRUE(one->stop().committed);
}

TEST(StaticMembershipTest, AMemberThatLeftIsNeitherWaitedForNorNotified) {
  VirtualLoop loop;
  StaticFleet fleet(ViewOf(2), 5);
  auto one = fleet.Join({1}, &loop);
  const auto two = fleet.Join({2}, &loop);
  bool called = false;
  one->Observe(&called, [&called] { called = true; });
  two->RequestStop();
  two->AcknowledgeStop(two->stop().round);
  EXPECT_FALSE(two->stop().committed);
  one.reset();
  EXPECT_TRUE(two->stop().committed);
  loop.Run();
  EXPECT_FALSE(called);
}

}  // namespace static_membership_test
}  // namespace gossamer
