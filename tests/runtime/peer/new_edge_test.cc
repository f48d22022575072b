// Edges that have not taught a deadline yet: a neighbour that dies just then
// costs the others a bounded wait, and one that warms up is not taken for late.

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/runtime/peer/quadratic_fleet.h"
#include "tests/testing/forwarding_membership.h"
#include "tests/testing/sim_fleet.h"

namespace gossamer {
namespace new_edge_test {

// A view to come, and whether each rank knows it.
struct NextView {
  View view;
  std::vector<bool> known;
  std::vector<std::function<void()>> tell;
  void AnnounceTo(size_t rank) {
    known[rank] = true;
    tell[rank]();
  }
  void Announce(uint64_t from_round) {
    view.from_round = from_round;
    for (size_t rank = 0; rank < known.size(); ++rank) AnnounceTo(rank);
  }
};

// The membership of a peer that takes the next view once it knows it.
class RegroupedFleet final : public ForwardingMembership {
 public:
  RegroupedFleet(std::unique_ptr<Membership> fleet, NextView* next)
      : ForwardingMembership(std::move(fleet)),
        next_(next),
        rank_(next->known.size()) {
    next->known.push_back(false);
    next->tell.emplace_back();
  }
  const View& view() const override {
    return next_->known[rank_] ? next_->view : ForwardingMembership::view();
  }
  void Observe(const void* owner, std::function<void()> f) override {
    next_->tell[rank_] = f;
    ForwardingMembership::Observe(owner, std::move(f));
  }

 private:
  NextView* const next_;
  const size_t rank_;
};

// Returns the fleet's next view: a ring of its members in another order.
View Regrouped(SimFleet& fleet, const std::vector<size_t>& ranks) {
  View view = fleet.fleet().view();
  view.schedule.graph = "edge-list";
  for (size_t i = 0; i < ranks.size(); ++i) {
    absl::StrAppend(&view.schedule.edges, ranks[i], "-",
                    ranks[(i + 1) % ranks.size()], " ");
  }
  view.epoch = 2;
  return view;
}

SimFleetOptions AdaptiveFleet(int peers, uint64_t rounds) {
  SimFleetOptions o = QuadraticFleet(peers, rounds);
  o.peer.deadline.kind = DeadlinePolicy::Kind::kAdaptive;
  o.peer.liveness_limit = absl::Minutes(2);
  return o;
}

// Returns the longest time between two rounds of a peer, from the `from`-th to
// the `to`-th.
absl::Duration LongestGap(SimFleet& fleet, int rank, size_t from, size_t to) {
  const std::vector<RoundMetrics>& rounds = fleet.recorder(rank).rounds;
  absl::Duration longest;
  for (size_t i = from; i < std::min(to, rounds.size()); ++i) {
    longest = std::max(longest, rounds[i].finished - rounds[i - 1].finished);
  }
  return longest;
}

// The others' bound is four times what their old edges needed, here 200 ms.
// The view keeps the dead peer.
TEST(NewEdgeTest, ANewNeighbourThatDiesHoldsNobodyUp) {
  constexpr int kPeers = 6, kDead = 2;
  constexpr uint64_t kFrom = 60;
  for (const int overlap : {0, 1, 3}) {
    for (const int early : {0, 1, 2}) {
      SCOPED_TRACE(testing::Message() << "h=" << overlap << " -" << early);
      NextView next;
      SimFleetOptions o = AdaptiveFleet(kPeers, 300);
      o.peer.overlap_steps = overlap;
      o.membership = [&](std::unique_ptr<Membership> fleet) {
        return std::make_unique<RegroupedFleet>(std::move(fleet), &next);
      };
      SimFleet fleet(o);
      next.view = Regrouped(fleet, {0, 2, 4, 1, 3, 5});
      fleet.Start();
      const auto at = [&](uint64_t round) {
        return fleet.loop().RunUntil(
            [&] { return fleet.peer(kDead).round() >= round; },
            absl::Minutes(1));
      };
      ASSERT_TRUE(at(kFrom - 20));
      next.Announce(kFrom);
      ASSERT_TRUE(at(kFrom + 1 - static_cast<uint64_t>(early)));
      fleet.network().Freeze(SimFleet::IdOf(kDead), absl::InfiniteFuture());
      fleet.loop().RunFor(absl::Seconds(20));
      for (int rank = 0; rank < kPeers; ++rank) {
        if (rank == kDead) continue;
        ASSERT_EQ(fleet.peer(rank).round(), 301u) << rank;
        EXPECT_LE(LongestGap(fleet, rank, kFrom - 10, 300),
                  absl::Milliseconds(250))
            << rank;
      }
    }
  }
}

// Before anything is learnt the bound is half a minute, not the liveness limit.
TEST(NewEdgeTest, APeerThatDiesAtTheStartCostsHalfAMinute) {
  SimFleetOptions o = AdaptiveFleet(5, 100);
  SimFleet fleet(o);
  fleet.Start();
  fleet.loop().RunFor(absl::Milliseconds(15));
  fleet.network().Freeze(SimFleet::IdOf(1), absl::InfiniteFuture());
  fleet.loop().RunFor(absl::Seconds(29));
  EXPECT_LT(fleet.peer(0).round(), 5u);
  fleet.loop().RunFor(absl::Seconds(21));
  for (int rank = 0; rank < 5; ++rank) {
    if (rank == 1) continue;
    EXPECT_EQ(fleet.peer(rank).round(), 101u) << rank;
  }
}

// A new edge gets nothing in a round that has begun by the view before.  A
// neighbour that waits for the round's first phase must learn this at once:
// this peer may be waiting, by way of others, for that neighbour's last phase.
TEST(NewEdgeTest, ANewEdgeSkipsARoundThatHasAlreadyBegun) {
  constexpr uint64_t kFrom = 20;
  for (const int phases : {1, 3}) {
    NextView next;
    SimFleetOptions o = QuadraticFleet(6, 60);
    o.peer.overlap_steps = 0;
    o.peer.mixing_rounds = phases;
    o.network.link.latency = absl::Milliseconds(20);
    o.membership = [&](std::unique_ptr<Membership> fleet) {
      return std::make_unique<RegroupedFleet>(std::move(fleet), &next);
    };
    SimFleet fleet(o);
    next.view = Regrouped(fleet, {1, 0, 4, 2, 3, 5});
    next.view.from_round = kFrom;
    fleet.Start();
    const auto edge = [&](int from, int to) {
      return fleet.peer(from).neighborhood().edge(SimFleet::IdOf(to));
    };
    ASSERT_TRUE(fleet.loop().RunUntil(
        [&] { return edge(2, 1)->decided() == MakeExchangeId(kFrom) + 1; },
        absl::Minutes(1)));
    next.AnnounceTo(2);
    ASSERT_NE(edge(2, 4), nullptr);
    EXPECT_EQ(edge(2, 4)->decided(), MakeExchangeId(kFrom + 1));
    for (const size_t rank : {0, 1, 3, 4, 5}) next.AnnounceTo(rank);
    EXPECT_TRUE(fleet.Run(absl::Minutes(5))) << fleet.StatusOf(0);
  }
}

// A firewall is between two peers: both live, and stay in the view.
TEST(NewEdgeTest, PeersThatCannotConnectWaitForEachOtherOnce) {
  constexpr uint64_t kRounds = 400, kFirst = 40;
  for (const char* schedule : {"ring", "permuted-ring", "random-matching"}) {
    SCOPED_TRACE(schedule);
    SimFleetOptions o = AdaptiveFleet(6, kRounds);
    o.schedule.graph = schedule;
    SimFleet fleet(o);
    fleet.network().Break(SimFleet::IdOf(2), SimFleet::IdOf(3), absl::Hours(1));
    fleet.Start();
    fleet.loop().RunFor(absl::Minutes(2));
    for (int rank = 0; rank < 6; ++rank) {
      ASSERT_GE(fleet.peer(rank).round(), kRounds) << rank;
      EXPECT_LE(LongestGap(fleet, rank, kFirst, kRounds),
                absl::Milliseconds(150))
          << rank;
      const std::vector<RoundMetrics>& rounds = fleet.recorder(rank).rounds;
      EXPECT_LE(rounds.back().finished - rounds[kFirst].finished,
                absl::Milliseconds(20) * (kRounds - kFirst))
          << rank;
    }
  }
}

TEST(NewEdgeTest, AFleetThatWarmsUpMissesNoDeadline) {
  for (const char* schedule : {"ring", "permuted-ring"}) {
    SimFleetOptions o = AdaptiveFleet(6, 100);
    o.schedule.graph = schedule;
    o.first_step = {{1, absl::Seconds(20)}, {4, absl::Seconds(3)}};
    SimFleet fleet(o);
    ASSERT_TRUE(fleet.Run()) << fleet.StatusOf(0);
    for (int rank = 0; rank < 6; ++rank) {
      EXPECT_EQ(fleet.peer(rank).last_metrics().late, 0u) << rank;
      EXPECT_EQ(fleet.peer(rank).last_metrics().skipped, 0u) << rank;
    }
  }
}

}  // namespace new_edge_test
}  // namespace gossamer
