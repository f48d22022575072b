// Which members of a view form a group, and the order of their pairs.

#include "runtime/transport/nccl/nccl_plan.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gossamer {
namespace nccl_plan_test {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Peers 1 to n on `hosts` hosts in turn, each on a GPU of its own.
View Fleet(int n, int hosts, const std::string& graph) {
  View view;
  view.generation = 5;
  view.epoch = 2;
  view.from_round = 10;
  view.schedule.graph = graph;
  for (int i = 1; i <= n; ++i) {
    const NcclPlace place{absl::StrCat("host", i % hosts),
                          absl::StrCat("gpu", i), 22809};
    view.members.push_back({.id = {static_cast<uint64_t>(i)},
                            .address = "a:1",
                            .device = place.Text()});
  }
  return view;
}

void Place(View& view, uint64_t peer, const NcclPlace& place) {
  view.members[*view.RankOf({peer})].device = place.Text();
}

TEST(NcclPlanTest, APlaceIsThreeWords) {
  const NcclPlace place{"host", "gpu-1", 22809};
  EXPECT_EQ(place.Text(), "host/gpu-1/22809");
  EXPECT_EQ(NcclPlace::Parse(place.Text())->gpu, "gpu-1");
  for (const char* text : {"", "host", "host/gpu", "host/gpu/x", "/gpu/1",
                           "host//1", "host/gpu/0", "host/gpu/1/2"}) {
    EXPECT_FALSE(NcclPlace::Parse(text)) << text;
  }
}

TEST(NcclPlanTest, AGroupIsOneHost) {
  const View view = Fleet(8, 2, "complete");
  const NcclPlan odd = NcclPlan::Of(view, {3});
  EXPECT_THAT(odd.group(),
              ElementsAre(PeerId{1}, PeerId{3}, PeerId{5}, PeerId{7}));
  EXPECT_EQ(odd.RankOf({5}), 2);
  EXPECT_EQ(odd.RankOf({2}), std::nullopt);
  EXPECT_THAT(odd.left_out(), IsEmpty());
  const NcclPlan even = NcclPlan::Of(view, {4});
  EXPECT_NE(odd.key(), even.key());
  EXPECT_EQ(odd.key(), NcclPlan::Of(view, {7}).key());
}

TEST(NcclPlanTest, APeerInHostMemoryIsInNone) {
  View view = Fleet(4, 1, "ring");
  view.members[1].device = "";
  EXPECT_THAT(NcclPlan::Of(view, {2}).group(), IsEmpty());
  EXPECT_THAT(NcclPlan::Of(view, {1}).group(),
              ElementsAre(PeerId{1}, PeerId{3}, PeerId{4}));
}

// The unique id travels along edges, so members that no edges join would wait
// for it in vain.
TEST(NcclPlanTest, AGroupIsJoinedByEdges) {
  View view = Fleet(6, 1, "ring");
  view.members[2].device = view.members[5].device = "";
  EXPECT_THAT(NcclPlan::Of(view, {1}).group(),
              ElementsAre(PeerId{1}, PeerId{2}));
  EXPECT_THAT(NcclPlan::Of(view, {4}).group(),
              ElementsAre(PeerId{4}, PeerId{5}));
  view.schedule.graph = "permuted-ring";
  EXPECT_EQ(NcclPlan::Of(view, {1}).group().size(), 4u);
}

TEST(NcclPlanTest, TwoPeersOnOneGpuAreNamedAndTheFirstIsTaken) {
  View view = Fleet(4, 1, "complete");
  Place(view, 3, {"host0", "gpu2", 22809});
  const NcclPlan plan = NcclPlan::Of(view, {1});
  EXPECT_THAT(plan.group(), ElementsAre(PeerId{1}, PeerId{2}, PeerId{4}));
  EXPECT_THAT(plan.left_out(),
              ElementsAre(AllOf(HasSubstr("peer 3 is on the GPU of peer 2"),
                                HasSubstr("gpu2"))));
  const NcclPlan third = NcclPlan::Of(view, {3});
  EXPECT_THAT(third.group(), IsEmpty());
  EXPECT_THAT(third.left_out(), ElementsAre(HasSubstr("peer 3 is on the GPU")));
}

TEST(NcclPlanTest, AnotherVersionIsNamedAndLeftOut) {
  View view = Fleet(4, 1, "complete");
  Place(view, 2, {"host0", "gpu2", 22703});
  const NcclPlan plan = NcclPlan::Of(view, {1});
  EXPECT_THAT(plan.group(), ElementsAre(PeerId{1}, PeerId{3}, PeerId{4}));
  EXPECT_THAT(plan.left_out(),
              ElementsAre(AllOf(HasSubstr("peer 2 has NCCL 2.27.3"),
                                HasSubstr("2.28.9"))));
}

// Both ends name one matching, no peer has two pairs in one, and a round has no
// other pairs than its edges.
TEST(NcclPlanTest, EveryRoundIsAListOfMatchings) {
  for (const char* graph :
       {"ring", "complete", "permuted-ring", "random-matching"}) {
    const View view = Fleet(6, 1, graph);
    std::vector<NcclPlan> plans;
    for (uint64_t id = 1; id <= 6; ++id) {
      plans.push_back(NcclPlan::Of(view, {id}));
    }
    const auto schedule = *view.MakeSchedule();
    for (uint64_t round = 10; round < 20; ++round) {
      for (int a = 0; a < 6; ++a) {
        std::set<int> taken;
        std::set<int> neighbors;
        for (const Neighbor& n : schedule->Row(a, round).neighbors) {
          neighbors.insert(n.rank);
        }
        for (int b = 0; b < 6; ++b) {
          const PeerId here{static_cast<uint64_t>(a + 1)};
          const PeerId there{static_cast<uint64_t>(b + 1)};
          const auto colour = plans[a].Colour(round, there);
          EXPECT_EQ(colour, plans[b].Colour(round, here)) << graph;
          EXPECT_EQ(colour.has_value(), neighbors.contains(b)) << graph;
          if (!colour) continue;
          EXPECT_TRUE(taken.insert(*colour).second) << graph;
        }
      }
    }
  }
}

TEST(NcclPlanTest, PartnersAreTheMembersWithWhichThereIsEverAnEdge) {
  for (const char* graph :
       {"ring", "complete", "one-peer-exponential", "random-matching"}) {
    View view = Fleet(8, 1, graph);
    view.members[4].device = "";  // peer 5 is in no group
    const std::vector<PeerId> group = NcclPlan::Of(view, {1}).group();
    for (const PeerId a : group) {
      const NcclPlan plan = NcclPlan::Of(view, a);
      std::set<int> met;
      for (uint64_t round = 10; round < 74; ++round) {
        for (const PeerId b : group) {
          if (plan.Colour(round, b)) met.insert(*plan.RankOf(b));
        }
      }
      const std::vector<int> partners = plan.Partners();
      for (const int rank : met) {
        EXPECT_THAT(partners, Contains(rank)) << graph;
      }
      for (const int rank : partners) {
        EXPECT_THAT(
            NcclPlan::Of(view, group[static_cast<size_t>(rank)]).Partners(),
            Contains(*plan.RankOf(a)))
            << graph << ": both meet, or neither";
      }
    }
  }
}

}  // namespace nccl_plan_test
}  // namespace gossamer
