// The compositions that `gossamer plan` rehearses, and the order of their
// results.

#include "runtime/cli/plan_candidates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

namespace gossamer {
namespace plan_candidates_test {

using ::testing::Contains;
using ::testing::ElementsAre;

RunConfig Of(uint32_t peers, const std::string& algorithm = "dp-oadam") {
  RunConfig config;
  config.set_peers(peers);
  config.set_algorithm(algorithm);
  return config;
}

bool Has(const std::vector<PlanCandidate>& candidates,
         const std::string& mixing) {
  return std::ranges::any_of(candidates, [&](const PlanCandidate& c) {
    return c.name == mixing + " innov-int8 overlap auto";
  });
}

TEST(PlanCandidatesTest, GraphsFitTheNumberOfPeers) {
  const auto of_two = DefaultCandidates(Of(2), "");
  EXPECT_TRUE(Has(of_two, "ring"));
  EXPECT_FALSE(Has(of_two, "permuted-ring"));
  EXPECT_EQ(of_two.size(), 4u * 3 + 1);
  EXPECT_FALSE(Has(DefaultCandidates(Of(4), ""), "torus")) << "a ring of four";
  EXPECT_TRUE(Has(DefaultCandidates(Of(6), ""), "torus"));
  EXPECT_FALSE(Has(DefaultCandidates(Of(7), ""), "torus")) << "a prime";
  EXPECT_FALSE(Has(DefaultCandidates(Of(6), ""), "locality-skewed"));
  const auto of_sites = DefaultCandidates(Of(6), "a:1-3 b:4-6");
  EXPECT_TRUE(Has(of_sites, "locality-skewed"));
  EXPECT_EQ(of_sites.size(), 5u * 4 * 3 + 1);
  EXPECT_EQ(std::ranges::count(of_sites, true, &PlanCandidate::baseline), 1);
}

TEST(PlanCandidatesTest, ABaselineIsComparedWithGossip) {
  for (const PlanCandidate& c : DefaultCandidates(Of(4, "cp-oadam"), "")) {
    EXPECT_FALSE(c.baseline);
    EXPECT_THAT(c.changes, Contains("algorithm=dp-oadam"));
  }
}

TEST(PlanCandidatesTest, CommasWithinAValueAreKept) {
  EXPECT_THAT(
      ParseCandidate("mixing.graph=torus,mixing.codec=innov-int8").changes,
      ElementsAre("mixing.graph=torus", "mixing.codec=innov-int8"));
  EXPECT_THAT(
      ParseCandidate("mixing.sites=a:1,3 b:2,4,algorithm=dposg").changes,
      ElementsAre("mixing.sites=a:1,3 b:2,4", "algorithm=dposg"));
  EXPECT_THAT(
      ParseCandidate("mixing.codec=innov-topk:k=9,least=16,seed=3").changes,
      ElementsAre("mixing.codec=innov-topk:k=9,least=16", "seed=3"));
  EXPECT_THAT(ParseCandidate("").changes, ElementsAre(""));
}

TEST(PlanCandidatesTest, RegionsOfAScenarioBecomeSites) {
  Scenario scenario;
  scenario.hosts = {{"a-0", "a"}, {"a-1", "a"}, {"b-0", "b"}, {"b-1", "b"}};
  EXPECT_EQ(SitesOfRegions(scenario, 4), "a:1-2 b:3-4");
  EXPECT_EQ(SitesOfRegions(scenario, 3), "a:1-2 b:3");
  EXPECT_EQ(SitesOfRegions(scenario, 2), "") << "one region";
  scenario.hosts = {{"a-0", "a"}, {"b-0", "b"}};
  EXPECT_EQ(SitesOfRegions(scenario, 2), "") << "no two at one place";
  scenario.hosts = {{"host-0", ""}, {"host-1", ""}};
  EXPECT_EQ(SitesOfRegions(scenario, 2), "");
}

PlanFigures Figures(double rounds, double bytes, double distance) {
  return {.rounds_per_second = rounds,
          .bytes_per_round = bytes,
          .consensus_distance = distance};
}

TEST(PlanCandidatesTest, CandidatesThatAreAlikeAreRankedByTheNextFigure) {
  const std::vector<PlanFigures> figures = {
      Figures(10, 5, 9), Figures(20, 9, 4), Figures(19.9, 3, 4.05),
      Figures(19.8, 1, 8), Figures(5, 1, 1)};
  // The three fastest are alike, and two of them are equally close together.
  EXPECT_THAT(RankFigures(figures, PlanGoal::kRounds),
              ElementsAre(2, 1, 3, 0, 4));
  EXPECT_THAT(RankFigures(figures, PlanGoal::kBytes),
              ElementsAre(3, 4, 2, 0, 1));
  EXPECT_THAT(RankFigures(figures, PlanGoal::kConsensus),
              ElementsAre(4, 2, 1, 3, 0));
}

TEST(PlanCandidatesTest, ACandidateWithoutAFigureIsLast) {
  PlanFigures broken = Figures(20, 1, std::numeric_limits<double>::quiet_NaN());
  PlanFigures scored = Figures(10, 1, 1);
  scored.score = 3;
  const std::vector<PlanFigures> figures = {broken, scored};
  EXPECT_THAT(RankFigures(figures, PlanGoal::kConsensus), ElementsAre(1, 0));
  EXPECT_THAT(RankFigures(figures, PlanGoal::kScore), ElementsAre(1, 0));
  EXPECT_THAT(RankFigures({}, PlanGoal::kRounds), ElementsAre());
  for (const std::string& name : PlanGoalNames()) {
    EXPECT_TRUE(PlanGoalOf(name)) << name;
  }
  EXPECT_FALSE(PlanGoalOf("speed"));
}

}  // namespace plan_candidates_test
}  // namespace gossamer
