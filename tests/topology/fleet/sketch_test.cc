// Sketches of parameters estimate norms and distances within their known error.

#include "topology/fleet/sketch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "algorithms/base/rng.h"

namespace gossamer {
namespace {

std::vector<float> Gaussian(size_t n, uint64_t seed) {
  std::vector<float> x(n);
  RngKey(seed).FillGaussian(x);
  return x;
}

// Of one player.
std::vector<double> Sketch(const std::vector<float>& x, uint64_t seed) {
  const auto size = static_cast<int64_t>(x.size());
  const ParameterLayout layout({{"x", Player::kGenerator, {size}, {}}},
                               {"one"});
  return SketchPlayers(DeviceQueue::Host(), x, layout, seed);
}

double SquaredNorm(const std::vector<double>& v) {
  double sum = 0;
  for (double x : v) sum += x * x;
  return sum;
}

TEST(SketchTest, EstimatesSquaredNormsWithinNinePercentRms) {
  const std::vector<float> x = Gaussian(5003, 1);
  double truth = 0;
  for (float v : x) truth += static_cast<double>(v) * v;
  constexpr int kSeeds = 400;
  double bias = 0;
  double squares = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const double error = SquaredNorm(Sketch(x, seed)) / truth - 1;
    bias += error;
    squares += error * error;
  }
  const double rms = std::sqrt(squares / kSeeds);
  const double expected = std::sqrt(2.0 / kSketchBuckets);  // 0.0884
  EXPECT_NEAR(rms, expected, 4 * expected / std::sqrt(2.0 * kSeeds));
  EXPECT_NEAR(bias / kSeeds, 0, 4 * expected / std::sqrt(kSeeds));
}

TEST(SketchTest, OneCoordinateIsKeptExactly) {
  // The tolerance includes the tails of a draw.
  for (size_t at : {0, 1, 2, 3, 4, 5, 6}) {
    std::vector<float> x(7);
    x[at] = -3;
    EXPECT_EQ(SquaredNorm(Sketch(x, 9)), 9) << at;
  }
}

TEST(SketchTest, BucketsAndSignsAreUniform) {
  // A row's values meet in no bucket, so one of each row is looked at.
  constexpr size_t kRows = 1024;
  std::vector<int> count(kSketchBuckets);
  int positive = 0;
  std::vector<float> x(kRows * kSketchBuckets);
  for (size_t row = 0; row < kRows; ++row) {
    const size_t i = row * kSketchBuckets + row * 7 % kSketchBuckets;
    x[i] = 1;
    const std::vector<double> s = Sketch(x, 4);
    x[i] = 0;
    for (size_t b = 0; b < kSketchBuckets; ++b) {
      count[b] += s[b] != 0;
      positive += s[b] > 0;
    }
  }
  double chi2 = 0;
  for (int c : count) chi2 += (c - 4.0) * (c - 4.0) / 4.0;
  EXPECT_NEAR(chi2, 255, 4 * std::sqrt(2.0 * 255));
  EXPECT_NEAR(positive, 512, 4 * 16);
}

TEST(SketchTest, IsLinear) {
  const std::vector<float> a = Gaussian(1000, 1);
  const std::vector<float> b = Gaussian(1000, 2);
  std::vector<float> difference(1000);
  for (size_t i = 0; i < a.size(); ++i) difference[i] = a[i] - b[i];
  const auto sa = Sketch(a, 3);
  const auto sb = Sketch(b, 3);
  const auto sd = Sketch(difference, 3);
  for (size_t i = 0; i < kSketchBuckets; ++i) {
    EXPECT_NEAR(sd[i], sa[i] - sb[i], 1e-4);
  }
}

TEST(SketchTest, ConsensusDistanceOfPeersAroundAMean) {
  // Peers differ little around a large common vector.
  constexpr int kPeers = 8;
  constexpr size_t kSize = 20000;
  const std::vector<float> common = Gaussian(kSize, 100);
  std::vector<std::vector<float>> x(kPeers, common);
  for (int p = 0; p < kPeers; ++p) {
    const std::vector<float> own = Gaussian(kSize, p);
    for (size_t i = 0; i < kSize; ++i) x[p][i] += 0.01f * own[i];
  }
  double truth = 0;
  for (size_t i = 0; i < kSize; ++i) {
    double mean = 0;
    for (int p = 0; p < kPeers; ++p) mean += x[p][i];
    mean /= kPeers;
    for (int p = 0; p < kPeers; ++p) {
      truth += (x[p][i] - mean) * (x[p][i] - mean) / kPeers;
    }
  }
  std::vector<std::vector<double>> sketches;
  for (const auto& v : x) sketches.push_back(Sketch(v, 7));
  ASSERT_EQ(ConsensusDistances(sketches).size(), 1u);
  EXPECT_NEAR(ConsensusDistances(sketches)[0] / truth, 1, 0.25);
  EXPECT_TRUE(ConsensusDistances({}).empty());
}

TEST(SketchTest, PlayersAreSketchedApart) {
  const auto segment = [](const char* name, int player, int64_t size) {
    return Segment{name, static_cast<Player>(player), {size}, {}};
  };
  const ParameterLayout layout(
      {segment("s", 0, 500), segment("f", 1, 70), segment("d", 2, 900)},
      {"student", "fake score", "discriminator"});
  std::vector<std::vector<double>> sketches;
  std::vector<float> x = Gaussian(layout.size(), 1);
  sketches.push_back(SketchPlayers(DeviceQueue::Host(), x, layout, 5));
  ASSERT_EQ(sketches[0].size(), 3u * kSketchBuckets);
  // Two values of the fake score differ by 6 and the rest is alike.
  x[500] += 6;
  x[569] -= 6;
  sketches.push_back(SketchPlayers(DeviceQueue::Host(), x, layout, 5));
  const std::vector<double> apart = ConsensusDistances(sketches);
  ASSERT_EQ(apart.size(), 3u);
  EXPECT_EQ(apart[0], 0);
  EXPECT_NEAR(apart[1], 18, 1e-5);
  EXPECT_EQ(apart[2], 0);
}

}  // namespace
}  // namespace gossamer
