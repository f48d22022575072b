#include "topology/site_clusters.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "algorithms/base/rng.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "topology/sites.h"

namespace gossamer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<double> Symmetric(int size, const auto& cost) {
  std::vector<double> costs(static_cast<size_t>(size) * size);
  for (int a = 0; a < size; ++a) {
    for (int b = 0; b < size; ++b) {
      if (a != b) costs[a * size + b] = cost(std::min(a, b), std::max(a, b));
    }
  }
  return costs;
}

// Peers dealt to `sites` in turn; `draw` jitters every cost by a fifth.
std::vector<double> Dealt(int size, int sites, double near, double far,
                          RngKey draw = RngKey(1)) {
  return Symmetric(size, [&](int a, int b) {
    const double jitter = 0.9 + 0.2 * draw.Fold(a).Uniform(b);
    return jitter * (a % sites == b % sites ? near : far);
  });
}

TEST(SiteClustersTest, FindsTheSitesThatPeersWereDealtTo) {
  for (const int sites : {2, 3, 5}) {
    for (uint64_t seed = 0; seed < 20; ++seed) {
      const int size = 4 * sites + static_cast<int>(seed % 3);
      const auto found =
          FindSites(size, Dealt(size, sites, 0.6, 90, RngKey(seed)));
      ASSERT_TRUE(found.ok()) << found.status();
      ASSERT_EQ(found->sites, sites);
      for (int r = 0; r < size; ++r) EXPECT_EQ(found->site[r], r % sites);
      EXPECT_LE(found->near, 0.66);
      EXPECT_GE(found->far, 81);
      EXPECT_TRUE(Sites::Parse(SitesText(*found)).ok());
    }
  }
}

TEST(SiteClustersTest, ContinentsAreSitesWhateverIsBetweenThem) {
  // Two each in Virginia, Frankfurt and Tokyo, round trips in ms.
  const double between[3][3] = {
      {0.6, 90, 148}, {90, 0.6, 228}, {148, 228, 0.6}};
  const auto found = FindSites(
      6, Symmetric(6, [&](int a, int b) { return between[a / 2][b / 2]; }));
  ASSERT_TRUE(found.ok());
  EXPECT_THAT(found->site, ElementsAre(0, 0, 1, 1, 2, 2));
  EXPECT_EQ(SitesText(*found), "site-1:1-2 site-2:3-4 site-3:5-6");
  EXPECT_EQ(found->near, 0.6);
  EXPECT_EQ(found->far, 90);
}

// As single linkage has it: near is who a chain of near ones leads to.
TEST(SiteClustersTest, AChainIsOneSite) {
  const auto found =
      FindSites(7, Symmetric(7, [](int a, int b) {
                  return (a < 5) == (b < 5) ? 1.0 * (b - a) : 60.0;
                }));
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(SitesText(*found), "site-1:1-5 site-2:6-7");
}

TEST(SiteClustersTest, APeerByItselfIsASite) {
  const auto found = FindSites(4, Symmetric(4, [](int a, int b) {
                                 return a == 1 || b == 1 ? 80.0 : 2.0;
                               }));
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(SitesText(*found), "site-1:1,3-4 site-2:2");
}

TEST(SiteClustersTest, CostsThatAreAlikeShowNone) {
  for (const auto& costs :
       {Dealt(8, 2, 50, 50), Dealt(8, 2, 40, 80),
        Symmetric(8, [](int, int) { return 0.0; }),
        // All far from all.
        Symmetric(8, [](int a, int b) { return 100.0 + a + b; })}) {
    const auto found = FindSites(8, costs);
    ASSERT_TRUE(found.ok());
    EXPECT_THAT(found->site, IsEmpty());
    EXPECT_EQ(SitesText(*found), "");
  }
  EXPECT_EQ(FindSites(1, std::vector<double>(1))->sites, 0);
  EXPECT_EQ(FindSites(2, std::vector<double>{0, 9, 9, 0})->sites, 0);
  // Of no cost at all is near, too.
  EXPECT_EQ(FindSites(4, Dealt(4, 2, 0, 10))->sites, 2);
}

TEST(SiteClustersTest, RefusesWhatIsNoMatrix) {
  const auto why = [](int size, std::vector<double> costs) {
    const auto found = FindSites(size, costs);
    EXPECT_EQ(found.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(found.status().message());
  };
  EXPECT_THAT(why(2, {0, 1, 1}), HasSubstr("4 costs, but 3"));
  EXPECT_THAT(why(2, {0, 1, 2, 0}), HasSubstr("but back 2"));
  EXPECT_THAT(why(2, {0, -1, -1, 0}), HasSubstr("from 0 to 1 is -1"));
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(why(2, {0, kNan, kNan, 0}), HasSubstr("from 0 to 1"));
}

}  // namespace
}  // namespace gossamer
