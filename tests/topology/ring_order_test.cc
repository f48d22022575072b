#include "topology/ring_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "algorithms/base/rng.h"

namespace gossamer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAreArray;

std::vector<double> RandomCosts(int m, uint64_t seed) {
  std::vector<double> costs(static_cast<size_t>(m) * m);
  const RngKey key(seed);
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < i; ++j) {
      costs[i * m + j] = costs[j * m + i] = key.Fold(i).Uniform(j);
    }
  }
  return costs;
}

// Largest edge and sum of the best of all rings.
std::pair<double, double> BruteForce(int m, const std::vector<double>& costs) {
  std::vector<int> order(m);
  std::iota(order.begin(), order.end(), 0);
  std::pair<double, double> best(INFINITY, INFINITY);
  do {
    double largest = 0, sum = 0;
    for (int i = 0; i < m; ++i) {
      const double c = costs[order[i] * m + order[(i + 1) % m]];
      largest = std::max(largest, c);
      sum += c;
    }
    best = std::min(best, std::pair(largest, sum));
  } while (std::next_permutation(order.begin() + 1, order.end()));
  return best;
}

std::vector<int> Sorted(std::vector<int> order) {
  std::ranges::sort(order);
  return order;
}

TEST(RingOrder, IsAsGoodAsTryingAllRings) {
  for (int m = 3; m <= 8; ++m) {
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      const std::vector<double> costs = RandomCosts(m, seed);
      const auto ring = BestRingOrder(m, costs);
      ASSERT_TRUE(ring.ok()) << ring.status();
      const auto [largest, sum] = BruteForce(m, costs);
      EXPECT_EQ(ring->largest, largest) << m << " seed " << seed;
      EXPECT_NEAR(ring->sum, sum, 1e-12) << m << " seed " << seed;
      EXPECT_TRUE(ring->exact);
      EXPECT_EQ(ring->order[0], 0);
      EXPECT_LT(ring->order[1], ring->order.back());
    }
  }
}

TEST(RingOrder, GoesAroundTheSlowPair) {
  // 0-1 and 2-3 are far apart; the ring as numbered would use both.
  const std::vector<double> costs = {0, 9, 1, 2,  //
                                     9, 0, 2, 1,  //
                                     1, 2, 0, 9,  //
                                     2, 1, 9, 0};
  const auto ring = BestRingOrder(4, costs);
  ASSERT_TRUE(ring.ok());
  EXPECT_THAT(ring->order, ElementsAre(0, 2, 1, 3));
  EXPECT_EQ(ring->largest, 2);
  EXPECT_EQ(ring->sum, 6);
  EXPECT_EQ(RingEdges(ring->order), "0-2 2-1 1-3 3-0");
}

TEST(RingOrder, OfTwoIsOneEdge) {
  const auto ring = BestRingOrder(2, std::vector<double>{0, 3, 3, 0});
  ASSERT_TRUE(ring.ok());
  EXPECT_EQ(RingEdges(ring->order), "0-1");
  EXPECT_EQ(ring->sum, 3);
}

// Peers on a circle, numbered at random: the best ring is the circle.
TEST(RingOrder, FindsACircleOfMany) {
  for (int m : {13, 24, 48}) {
    const std::vector<int> place = RngKey(7).Permutation(m);
    std::vector<double> costs(static_cast<size_t>(m) * m);
    for (int i = 0; i < m; ++i) {
      for (int j = 0; j < m; ++j) {
        const int apart = std::abs(place[i] - place[j]);
        costs[i * m + j] = std::sin(M_PI * std::min(apart, m - apart) / m);
      }
    }
    const auto ring = BestRingOrder(m, costs);
    ASSERT_TRUE(ring.ok());
    EXPECT_FALSE(ring->exact);
    EXPECT_NEAR(ring->largest, std::sin(M_PI / m), 1e-12) << m;
  }
}

// Just above the exact limit, no worse by much than below it could be.
TEST(RingOrder, SearchIsARingAndBetterThanChance) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    constexpr int kPeers = 20;
    const std::vector<double> costs = RandomCosts(kPeers, seed);
    const auto ring = BestRingOrder(kPeers, costs);
    ASSERT_TRUE(ring.ok());
    std::vector<int> all(kPeers);
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(Sorted(ring->order), all);
    EXPECT_LT(ring->largest, 0.4);
    EXPECT_EQ(BestRingOrder(kPeers, costs)->order, ring->order);
  }
}

TEST(RingOrder, RefusesNonsenseWithItsPlace) {
  const auto message = [](int m, std::vector<double> costs) {
    return std::string(BestRingOrder(m, costs).status().message());
  };
  EXPECT_THAT(message(1, {0}), HasSubstr("2 to"));
  EXPECT_THAT(message(2, {0, 1, 1}), HasSubstr("4 costs, but 3"));
  EXPECT_THAT(message(2, {0, -1, -1, 0}), HasSubstr("from 0 to 1 is -1"));
  EXPECT_THAT(message(2, {0, NAN, 1, 0}), HasSubstr("from 0 to 1"));
  EXPECT_THAT(message(2, {0, 1, 2, 0}), HasSubstr("but back 2"));
}

}  // namespace
}  // namespace gossamer
