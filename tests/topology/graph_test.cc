// Every family of graphs is simple and connected and has its known sizes;
// impossible ones are refused.

#include "topology/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "topology/graph_layout.h"
#include "topology/mixing_schedule.h"

namespace gossamer {
namespace graph_test {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

ScheduleSpec Named(const std::string& graph) {
  ScheduleSpec spec;
  spec.graph = graph;
  return spec;
}

Graph Make(const ScheduleSpec& spec, int size, uint64_t seed = 1) {
  auto graph = MakeGraph(spec, size, seed);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return graph.ok() ? *graph : Graph{};
}

std::string Refusal(const ScheduleSpec& spec, int size) {
  auto graph = MakeGraph(spec, size, 1);
  EXPECT_EQ(graph.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(graph.status().message());
}

void ExpectSimple(const Graph& graph) {
  std::set<std::pair<int, int>> seen;
  for (const GraphEdge& e : graph.edges) {
    EXPECT_LT(e.a, e.b);
    EXPECT_GE(e.a, 0);
    EXPECT_LT(e.b, graph.size);
    EXPECT_TRUE(seen.emplace(e.a, e.b).second) << e.a << "-" << e.b;
  }
}

TEST(GraphTest, EveryFamilyIsSimpleAndConnected) {
  for (const std::string_view name : GraphNames()) {
    // The edges of the others depend on the round.
    if (IsTimeVarying(name) && name != "one-peer-exponential") continue;
    for (int size : {2, 4, 8, 16, 64}) {
      ScheduleSpec spec = Named(std::string(name));
      spec.degree = std::min(3, size - 1);
      for (int rank = 1; rank < size; ++rank) {
        absl::StrAppend(&spec.edges, " ", rank - 1, "-", rank);
      }
      SCOPED_TRACE(testing::Message() << name << " of " << size);
      const Graph graph = Make(spec, size);
      EXPECT_EQ(graph.size, size);
      ExpectSimple(graph);
      EXPECT_TRUE(CheckConnected(graph).ok());
    }
  }
}

TEST(GraphTest, SmallRings) {
  EXPECT_TRUE(Make(Named("ring"), 1).edges.empty());
  EXPECT_EQ(Make(Named("ring"), 2).edges.size(), 1);
  EXPECT_EQ(Make(Named("ring"), 3).edges.size(), 3);
  EXPECT_THAT(Degrees(Make(Named("ring"), 9)), Each(2));
}

TEST(GraphTest, TorusIsAsSquareAsItCanBe) {
  EXPECT_EQ(TorusShape(16), std::pair(4, 4));
  EXPECT_EQ(TorusShape(12), std::pair(3, 4));
  EXPECT_EQ(TorusShape(10), std::pair(2, 5));
  EXPECT_EQ(TorusShape(7), std::pair(1, 7));
  EXPECT_THAT(Degrees(Make(Named("torus"), 16)), Each(4));
}

TEST(GraphTest, TorusWithASideOfTwoHasNoDoubleEdges) {
  const Graph graph = Make(Named("torus"), 6);  // 2 x 3
  ExpectSimple(graph);
  EXPECT_THAT(Degrees(graph), Each(3));
  EXPECT_THAT(Degrees(Make(Named("torus"), 4)), Each(2));
}

TEST(GraphTest, TorusOfAPrimeIsARing) {
  EXPECT_EQ(Make(Named("torus"), 7).edges, Make(Named("ring"), 7).edges);
}

TEST(GraphTest, TorusOfOneIsRefused) {
  EXPECT_THAT(Refusal(Named("torus"), 1), HasSubstr("at least 2"));
}

TEST(GraphTest, RandomRegularHasItsDegreeAndDependsOnTheSeed) {
  for (int degree : {2, 3, 4, 7, 11}) {
    ScheduleSpec spec = Named("random-regular");
    spec.degree = degree;
    const Graph one = Make(spec, 12, 1);
    ExpectSimple(one);
    EXPECT_THAT(Degrees(one), Each(degree));
    EXPECT_EQ(one.edges, Make(spec, 12, 1).edges);
    // There is one graph of degree 11 on 12 peers.
    EXPECT_EQ(one.edges == Make(spec, 12, 2).edges, degree == 11);
  }
}

TEST(GraphTest, ImpossibleRandomRegularIsRefused) {
  ScheduleSpec spec = Named("random-regular");
  EXPECT_THAT(Refusal(spec, 9), HasSubstr("make one of them even"));
  EXPECT_THAT(Refusal(spec, 3), HasSubstr("below their number"));
  spec.degree = -2;
  EXPECT_THAT(Refusal(spec, 4), HasSubstr("degree -2"));
  spec.degree = 1;
  EXPECT_THAT(Refusal(spec, 4), HasSubstr("no connected graph"));
}

TEST(GraphTest, ErdosRenyiKeepsItsDensity) {
  ScheduleSpec spec = Named("erdos-renyi");
  spec.edge_probability = 0.3;
  double edges = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    edges += static_cast<double>(Make(spec, 64, seed).edges.size());
  }
  // Of 20 * 2016 draws at 0.3 the standard error is 0.0023.
  EXPECT_NEAR(edges / (20 * 2016), 0.3, 0.01);
}

TEST(GraphTest, HopelessErdosRenyiSaysWhichProbabilityWouldDo) {
  ScheduleSpec spec = Named("erdos-renyi");
  spec.edge_probability = 0.01;
  EXPECT_THAT(Refusal(spec, 64), HasSubstr("take at least 0.13"));
  spec.edge_probability = 1.5;
  EXPECT_THAT(Refusal(spec, 64), HasSubstr("not between 0 and 1"));
  spec.edge_probability = std::nan("");
  EXPECT_THAT(Refusal(spec, 64), HasSubstr("not between 0 and 1"));
}

TEST(GraphTest, HypercubeNeedsAPowerOfTwo) {
  EXPECT_THAT(Degrees(Make(Named("hypercube"), 32)), Each(5));
  EXPECT_THAT(Refusal(Named("hypercube"), 12), HasSubstr("use 8 or 16"));
}

TEST(GraphTest, UnknownNamesAndSizesAreRefused) {
  EXPECT_THAT(Refusal(Named("rign"), 4), HasSubstr("\"rign\""));
  EXPECT_THAT(Refusal(Named("ring"), 0), HasSubstr("not 0"));
  EXPECT_THAT(Refusal(Named("ring"), kMaxPeers + 1), HasSubstr("1 to 16384"));
}

TEST(GraphTest, LargeOnesHaveABoundOnTheirEdges) {
  EXPECT_EQ(Make(Named("complete"), 1024).edges.size(), 523'776u);
  EXPECT_THAT(Refusal(Named("complete"), 2000), HasSubstr("1999000 edges"));
  ScheduleSpec spec = Named("random-regular");
  spec.degree = 4;
  const Graph graph = Make(spec, 10'000, 1);
  EXPECT_THAT(Degrees(graph), Each(4));
  spec.degree = 300;
  EXPECT_THAT(Refusal(spec, 10'000), HasSubstr("random-regular of degree 4"));
}

TEST(EdgeListTest, ReadsWeightsAndAnySeparator) {
  const auto graph = ParseEdgeList(" 1-0, 1-2:0.25\n2-3 ", 4);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_THAT(graph->edges,
              ElementsAre(GraphEdge{0, 1, 0}, GraphEdge{1, 2, 0.25},
                          GraphEdge{2, 3, 0}));
}

TEST(EdgeListTest, FaultsNameTheirPosition) {
  const struct {
    const char* text;
    const char* position;
    const char* fault;
  } kCases[] = {
      {"0-1 1_2", "character 5", "is not A-B"},
      {"0-1 1-x", "character 5", "whole numbers"},
      {"-1-2", "character 1", "whole numbers"},
      {"0-1 1-4", "character 5", "not there"},
      {"0-1  2-2", "character 6", "to itself"},
      {"0-1 2-3 1-0", "character 9", "twice"},
      {"0-1:0", "character 1", "weight"},
      {"0-1:1.5", "character 1", "weight"},
      {"0-1:nan", "character 1", "weight"},
      {"0-1:", "character 1", "weight"},
      {"0-99999999999", "character 1", "whole numbers"},
  };
  for (const auto& c : kCases) {
    const auto graph = ParseEdgeList(c.text, 4);
    EXPECT_THAT(std::string(graph.status().message()),
                testing::AllOf(HasSubstr(c.position), HasSubstr(c.fault)))
        << c.text;
  }
}

TEST(EdgeListTest, DisconnectedListIsRefused) {
  ScheduleSpec spec = Named("edge-list");
  spec.edges = "0-1 2-3";
  EXPECT_THAT(Refusal(spec, 4), HasSubstr("peer 2 cannot be reached"));
}

TEST(GraphLayoutTest, PlacesEveryRankOnceInsideTheFrame) {
  for (const char* name : {"ring", "torus", "star", "complete"}) {
    for (int size : {1, 2, 7, 12, 64}) {
      MixingMatrix w(size);
      const GraphLayout layout = LayOut(name, w);
      std::set<std::pair<double, double>> places;
      for (const Point& p : layout.nodes) {
        EXPECT_GE(std::min(p.x, p.y), 0) << name << size;
        EXPECT_LE(std::max(p.x, p.y), 1) << name << size;
        places.emplace(p.x, p.y);
      }
      EXPECT_EQ(places.size(), size) << name;
    }
  }
}

}  // namespace graph_test
}  // namespace gossamer
