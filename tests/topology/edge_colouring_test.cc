#include "topology/edge_colouring.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/base/rng.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "topology/mixing_schedule.h"

namespace gossamer {
namespace edge_colouring_test {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<RankPair> EdgesOf(const MixingSchedule& schedule, uint64_t round) {
  std::vector<RankPair> edges;
  for (int rank = 0; rank < schedule.size(); ++rank) {
    for (const Neighbor& n : schedule.Row(rank, round).neighbors) {
      if (rank < n.rank) edges.push_back({rank, n.rank});
    }
  }
  return edges;
}

int DegreeOf(const std::vector<RankPair>& edges) {
  std::map<int, int> degree;
  for (const RankPair& e : edges) ++degree[e.lower], ++degree[e.upper];
  int largest = 0;
  for (const auto& [rank, d] : degree) largest = std::max(largest, d);
  return largest;
}

void ExpectMatchings(const std::vector<RankPair>& edges) {
  const std::vector<int> colours = ColourEdges(edges);
  ASSERT_EQ(colours.size(), edges.size());
  std::set<std::pair<int, int>> taken;
  for (size_t i = 0; i < edges.size(); ++i) {
    EXPECT_TRUE(taken.insert({colours[i], edges[i].lower}).second);
    EXPECT_TRUE(taken.insert({colours[i], edges[i].upper}).second);
    EXPECT_LT(colours[i], std::max(1, 2 * DegreeOf(edges) - 1));
  }
}

TEST(EdgeColouringTest, NothingAndOneEdge) {
  EXPECT_THAT(ColourEdges({}), IsEmpty());
  EXPECT_THAT(ColourEdges(std::vector<RankPair>{{2, 5}}), ElementsAre(0));
}

TEST(EdgeColouringTest, MatchingsOfEveryGraph) {
  for (const std::string graph :
       {"ring", "torus", "complete", "star", "random-regular", "hypercube",
        "permuted-ring", "random-matching", "one-peer-exponential"}) {
    ScheduleSpec spec;
    spec.graph = graph;
    const auto schedule = MakeSchedule(spec, 16, 7);
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    for (uint64_t round = 1; round < 6; ++round) {
      SCOPED_TRACE(graph);
      ExpectMatchings(EdgesOf(**schedule, round));
    }
  }
}

TEST(EdgeColouringTest, CompleteGraphsOfAPowerOfTwoTakeTheLeastColours) {
  for (const int n : {2, 4, 8, 16}) {
    std::vector<RankPair> edges;
    for (int a = 0; a < n; ++a) {
      for (int b = a + 1; b < n; ++b) edges.push_back({a, b});
    }
    const std::vector<int> colours = ColourEdges(edges);
    EXPECT_EQ(*std::ranges::max_element(colours), n - 2);
  }
}

TEST(EdgeColouringTest, TheOrderOfTheListDoesNotMatter) {
  std::vector<RankPair> edges;
  const RngKey key(3);
  for (int a = 0; a < 12; ++a) {
    for (int b = a + 1; b < 12; ++b) {
      if (key.Uniform(static_cast<uint64_t>(a * 12 + b)) < 0.4) {
        edges.push_back({a, b});
      }
    }
  }
  std::map<RankPair, int> expected;
  const std::vector<int> colours = ColourEdges(edges);
  for (size_t i = 0; i < edges.size(); ++i) expected[edges[i]] = colours[i];
  std::ranges::reverse(edges);
  const std::vector<int> reversed = ColourEdges(edges);
  for (size_t i = 0; i < edges.size(); ++i) {
    EXPECT_EQ(reversed[i], expected[edges[i]]);
  }
}

}  // namespace edge_colouring_test
}  // namespace gossamer
