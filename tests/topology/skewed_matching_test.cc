// The locality-skewed schedule: it pairs peers in every round, spends its
// budget exactly, and contracts as its formula says.

#include "topology/skewed_matching.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "topology/mixing_matrix.h"
#include "topology/sites.h"

namespace gossamer {
namespace skewed_matching_test {

using ::testing::HasSubstr;

std::unique_ptr<SkewedMatching> Make(const std::vector<int>& sites,
                                     double budget, uint64_t seed = 1) {
  auto made = SkewedMatching::Create(sites, budget, seed);
  EXPECT_TRUE(made.ok()) << made.status();
  return std::move(made).value();
}

std::vector<int> SitesOfSizes(const std::vector<int>& sizes) {
  std::vector<int> sites;
  for (size_t s = 0; s < sizes.size(); ++s) {
    sites.insert(sites.end(), sizes[s], static_cast<int>(s));
  }
  return sites;
}

class EveryFleet : public testing::TestWithParam<std::vector<int>> {};

TEST_P(EveryFleet, PairsPeersInEveryRound) {
  const std::vector<int> sites = SitesOfSizes(GetParam());
  const auto size = static_cast<int>(sites.size());
  for (const double budget : {0.0, 1.0, 100.0}) {
    const auto schedule = Make(sites, budget);
    ASSERT_EQ(schedule->size(), size);
    for (uint64_t round = 1; round <= 100; ++round) {
      int resting = 0;
      for (int rank = 0; rank < size; ++rank) {
        const MixingRow row = schedule->Row(rank, round);
        if (row.neighbors.empty()) {
          ++resting;
          continue;
        }
        ASSERT_EQ(row.neighbors.size(), 1);
        const int partner = row.neighbors[0].rank;
        EXPECT_EQ(row.neighbors[0].weight, 0.5);
        // Both ends compute the pair without communication.
        EXPECT_EQ(schedule->Row(partner, round).neighbors,
                  (std::vector<Neighbor>{{.rank = rank, .weight = 0.5}}));
      }
      const auto odd = std::ranges::count_if(
          GetParam(), [](int count) { return count % 2 == 1; });
      if (GetParam().size() == 2 && odd == 0) {
        EXPECT_EQ(resting, 0);
      }
      EXPECT_LE(resting, static_cast<int>(GetParam().size()) + size % 2);
      const absl::Status ok =
          CheckMixingMatrix(MatrixOfRound(*schedule, round));
      EXPECT_TRUE(ok.ok()) << ok;
    }
  }
}

// Returns how often each pair meets, over many rounds.
std::vector<std::vector<double>> Frequencies(const MixingSchedule& schedule,
                                             int rounds) {
  const int m = schedule.size();
  std::vector<std::vector<double>> often(m, std::vector<double>(m));
  for (int k = 1; k <= rounds; ++k) {
    for (int i = 0; i < m; ++i) {
      for (const Neighbor& n : schedule.Row(i, k).neighbors) {
        often[i][n.rank] += 1.0 / rounds;
      }
    }
  }
  return often;
}

TEST_P(EveryFleet, FarPairsMeetExactlyAsOftenAsTheBudgetAllows) {
  const std::vector<int> sites = SitesOfSizes(GetParam());
  const auto m = static_cast<int>(sites.size());
  const auto schedule = Make(sites, 1);
  constexpr int kRounds = 20000;
  const auto often = Frequencies(*schedule, kRounds);
  const double wanted = schedule->kept() / (m % 2 == 1 ? m : m - 1);
  const double error = 5 * std::sqrt(wanted / kRounds);
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < m; ++j) {
      if (i == j) continue;
      if (sites[i] != sites[j]) {
        EXPECT_NEAR(often[i][j], wanted, error);
      } else {
        EXPECT_GT(often[i][j], wanted - error);
      }
    }
  }
}

TEST_P(EveryFleet, ContractsAsTheFormulaSays) {
  const std::vector<int> sites = SitesOfSizes(GetParam());
  const auto m = static_cast<int>(sites.size());
  const auto schedule = Make(sites, 1);
  constexpr int kRounds = 20000;
  const auto often = Frequencies(*schedule, kRounds);
  MixingMatrix mean(m);
  for (int i = 0; i < m; ++i) {
    mean(i, i) = 1;
    for (int j = 0; j < m; ++j) {
      if (i == j) continue;
      mean(i, j) = often[i][j] / 2;
      mean(i, i) -= often[i][j] / 2;
    }
  }
  EXPECT_NEAR(Analyze(mean).eigenvalues[1], *schedule->expected_contraction(),
              0.01);
}

INSTANTIATE_TEST_SUITE_P(Sites, EveryFleet,
                         testing::Values(std::vector{8, 8},
                                         std::vector{2, 2, 2},
                                         std::vector{3, 3}, std::vector{5, 2},
                                         std::vector{6, 1, 1},
                                         std::vector{4, 3, 5}),
                         [](const auto& info) {
                           std::string name = "sizes";
                           for (int size : info.param)
                             name += "_" + std::to_string(size);
                           return name;
                         });

// Peers of one site are alike and sites differ: nothing decays more slowly.  W
// of a matching is a projection, so the mean of |W x|^2 is that of x W x.
TEST(SkewedMatchingTest, TenThousandPeersInEightSitesContractAsTheFormulaSays) {
  const std::vector<int> sites = SitesOfSizes(std::vector<int>(8, 1250));
  const auto schedule = Make(sites, 1);
  const auto x = [&](int rank) { return sites[rank] < 4 ? 1.0 : -1.0; };
  // A row draws the pairs of all peers, so every hundredth is looked at.  The
  // standard error is 0.004.
  constexpr int kRounds = 100, kStep = 100;
  double left = 0;
  for (uint64_t round = 1; round <= kRounds; ++round) {
    for (int rank = 0; rank < schedule->size(); rank += kStep) {
      double mixed = x(rank);
      for (const Neighbor& n : schedule->Row(rank, round).neighbors) {
        mixed += n.weight * (x(n.rank) - x(rank));
      }
      left += mixed * mixed * kStep / kRounds / schedule->size();
    }
  }
  EXPECT_NEAR(left, *schedule->expected_contraction(), 0.012);
}

// The variance of a drawn partner is at most (1 + D) times that of a uniform
// draw, and exactly that if sites are equal.
TEST(SkewedMatchingTest, UsesTheBudgetUp) {
  for (const double budget : {0.0, 0.5, 1.0, 4.0}) {
    const auto equal = Make(SitesOfSizes({8, 8}), budget);
    const double near = 7.0 / 15, far = 8.0 / 15;
    const double drawn_far = equal->kept() * far;
    EXPECT_NEAR(near * near / (1 - drawn_far) + far * far / drawn_far,
                1 + budget, 1e-9);
    // With sites of different sizes no site exceeds it.
    const auto unequal = Make(SitesOfSizes({12, 3}), budget);
    double worst = 0;
    for (const double others : {11.0, 2.0}) {
      const double l = others / 14, r = 1 - l;
      const double q = unequal->kept() * r;
      worst = std::max(worst, l * l / (1 - q) + r * r / q);
    }
    EXPECT_NEAR(worst, 1 + budget, 1e-9);
  }
}

// A worked example: half of a peer's partners are near, and D = 1.  The skew is
// 3 + 2 sqrt(2), so 0.1464 of its draws are far.
TEST(SkewedMatchingTest, GivesTheKnownFigure) {
  const auto schedule = Make(SitesOfSizes({3, 1, 1}), 1);
  EXPECT_NEAR(schedule->kept(), 1 / (2 + std::sqrt(2.0)), 1e-12);
}

TEST(SkewedMatchingTest, RefusesABudgetThatCannotBe) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  for (const double budget : {-0.01, kNan, HUGE_VAL}) {
    const auto made = SkewedMatching::Create({0, 0, 1, 1}, budget, 1);
    EXPECT_EQ(made.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(made.status().message()), HasSubstr("budget"));
  }
}

TEST(SkewedMatchingTest, ABudgetOfOneSavesThreeQuartersOfWhatIsFar) {
  const auto schedule = Make(SitesOfSizes({8, 8}), 1);
  EXPECT_GT(1 / schedule->kept(), 3);
  EXPECT_EQ(Make(SitesOfSizes({8, 8}), 0)->kept(), 1);
}

// The rest of a fleet may all be at one site, or each at its own.
TEST(SkewedMatchingTest, WithoutNearAndFarItIsAPlainMatching) {
  for (const std::vector<int>& sites :
       {std::vector{0, 0, 0, 0}, std::vector{0, 1, 2, 3}, std::vector{0, 1},
        std::vector{0}, std::vector{5, 5}}) {
    const auto schedule = Make(sites, 1);
    EXPECT_EQ(schedule->kept(), 1);
    if (sites.size() == 1) continue;
    for (uint64_t round = 1; round < 20; ++round) {
      for (size_t rank = 0; rank < sites.size(); ++rank) {
        EXPECT_FALSE(
            schedule->Row(static_cast<int>(rank), round).neighbors.empty());
      }
    }
  }
}

TEST(SkewedMatchingTest, AnEmptyFirstRoundDoesNotMakeAnyStepStable) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    const auto schedule = Make({0, 0, 1}, 50, seed);
    EXPECT_NEAR(StableStepSize(*schedule, 1), 1, 1e-9) << seed;
  }
}

TEST(SkewedMatchingTest, IsAScheduleByName) {
  ScheduleSpec spec;
  spec.graph = "locality-skewed";
  spec.sites = "paris:1-2 sydney:3-4";
  spec.variance_budget = 1;
  const auto founders = MakeSchedule(spec, 4, 7);
  ASSERT_TRUE(founders.ok()) << founders.status();
  const auto by_hand = Make({0, 0, 1, 1}, 1, 7);
  // Peer 1 has left and 9 has come: sites go by ids, not by ranks.
  const std::vector<PeerId> members = {{2}, {3}, {4}, {9}};
  const auto later = MakeSchedule(spec, members, 7);
  ASSERT_TRUE(later.ok()) << later.status();
  const auto later_by_hand = Make({0, 1, 1, 2}, 1, 7);
  for (uint64_t round = 1; round < 50; ++round) {
    for (int rank = 0; rank < 4; ++rank) {
      EXPECT_EQ((*founders)->Row(rank, round).neighbors,
                by_hand->Row(rank, round).neighbors);
      EXPECT_EQ((*later)->Row(rank, round).neighbors,
                later_by_hand->Row(rank, round).neighbors);
    }
  }
  spec.variance_budget = -1;
  EXPECT_THAT(std::string(MakeSchedule(spec, 4, 7).status().message()),
              HasSubstr("budget"));
}

TEST(SitesTest, ReadsNamesAndIds) {
  const auto sites = Sites::Parse("  paris:1-3,7 sydney:4-6\n");
  ASSERT_TRUE(sites.ok()) << sites.status();
  EXPECT_EQ(sites->names(), (std::vector<std::string>{"paris", "sydney"}));
  const std::vector<PeerId> ids = {{1}, {4}, {7}, {8}, {9}};
  EXPECT_EQ(sites->Of(ids), (std::vector{0, 1, 0, 2, 3}));
  EXPECT_TRUE(sites->Has({3}));
  EXPECT_FALSE(sites->Has({8}));
}

TEST(SitesTest, RefusesWithThePlace) {
  const auto refusal = [](const std::string& text) {
    return std::string(Sites::Parse(text).status().message());
  };
  EXPECT_THAT(refusal("paris:1-8"), HasSubstr("one site"));
  EXPECT_THAT(refusal(""), HasSubstr("no site"));
  EXPECT_THAT(refusal("a:1 b"), HasSubstr("\"b\" at character 5"));
  EXPECT_THAT(refusal("a:1 a:2"), HasSubstr("twice"));
  EXPECT_THAT(refusal("a:1-3 b:3"), HasSubstr("a peer that is there twice"));
  for (const char* ids : {"0", "3-1", "x", "", "1-", "-1", "1,", "1-2-3",
                          "1-99999999999999999999", "1-1000000"}) {
    EXPECT_THAT(refusal(std::string("a:1 b:") + ids), HasSubstr("1-8")) << ids;
  }
}

}  // namespace skewed_matching_test
}  // namespace gossamer
