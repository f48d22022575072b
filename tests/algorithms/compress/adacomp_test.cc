// AdaComp against the paper's algorithm: the values it sends, the residual it
// keeps, and a rate that follows activity.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/algorithms/compress/gradient_fleet.h"
#include "tests/algorithms/golden_file.h"

namespace gossamer {
namespace adacomp_test {

ParameterLayout Dense(int64_t rows, int64_t columns) {
  return ParameterLayout({{"w", Player::kGenerator, {rows, columns}, {}}});
}

// Algorithm 2 of the paper for one layer and one rank, without the bounds that
// gossamer adds.
std::vector<float> PaperAdaComp(std::vector<float>& r,
                                const std::vector<float>& g, size_t bin) {
  const size_t n = r.size();
  std::vector<float> maxima((n + bin - 1) / bin);
  for (size_t i = 0; i < n; ++i) {
    r[i] += g[i];
    maxima[i / bin] = std::max(maxima[i / bin], std::abs(r[i]));
  }
  double sum = 0;
  for (const float m : maxima) sum += m;
  const auto scale =
      static_cast<float>(sum / static_cast<double>(maxima.size()));
  std::vector<float> sent(n);
  for (size_t i = 0; i < n; ++i) {
    if (std::abs(r[i] + g[i]) < maxima[i / bin]) continue;
    sent[i] = r[i] < 0 ? -scale : scale;
    r[i] -= sent[i];
  }
  return sent;
}

size_t Nonzero(const std::vector<float>& v) {
  return v.size() - static_cast<size_t>(std::count(v.begin(), v.end(), 0.0f));
}

TEST(AdaCompTest, IsAlgorithmTwoOfThePaper) {
  for (const size_t bin : {50, 100, 128}) {
    // The bins are Gaussian: their maxima are near each other and few values
    // are large, so that none of our bounds acts.
    const ParameterLayout layout = Dense(40, 100);
    GradientFleet fleet("adacomp:most=63,bin=" + std::to_string(bin), layout,
                        2);
    std::vector<float> r(layout.size());
    for (int step = 0; step < 12; ++step) {
      std::vector<float> g(layout.size());
      RngKey(step).FillGaussian(g);
      const auto mean = fleet.Step({g, g});
      const auto sent = PaperAdaComp(r, g, bin);
      EXPECT_EQ(mean, sent) << "step " << step << " bin " << bin;
      EXPECT_EQ(fleet.Residual(0), r) << "step " << step << " bin " << bin;
      if (HasFailure()) return;
    }
  }
}

// Returns a step's gradient.  A share of its values is as large as a bin's
// largest value gets.
std::vector<float> Active(size_t n, double share, RngKey key) {
  std::vector<float> g(n);
  for (size_t i = 0; i < n; ++i) {
    const bool active = key.Fold("active").Uniform(i) < share;
    g[i] =
        static_cast<float>((active ? 1 : 0.01) * (0.9 + 0.2 * key.Uniform(i)));
  }
  return g;
}

// Steady gradients pile up in the residual, so that a fresh one adds little and
// few reach their bin's largest; many do where all of a bin moves at once.
TEST(AdaCompTest, SendsMoreWhereMoreHappens) {
  const ParameterLayout layout = Dense(100, 100);
  const auto sent_of = [&](double share) {
    GradientFleet fleet("adacomp:bin=100", layout, 2);
    size_t sent = 0;
    for (int step = 0; step < 20; ++step) {
      const auto g = Active(layout.size(), share, RngKey(step));
      const auto mean = fleet.Step({g, g});
      sent += Nonzero(mean);
    }
    return static_cast<double>(sent) / 20 / static_cast<double>(layout.size());
  };
  const double quiet = sent_of(0.01), some = sent_of(0.05), busy = sent_of(0.2);
  EXPECT_LT(quiet, 0.02);
  EXPECT_GT(some, 2 * quiet);
  EXPECT_GT(busy, 2 * some);
}

// The bytes of a rank follow activity within a run, up while more of a bin
// moves and down again, though no rate is set.
TEST(AdaCompTest, TheRateFollowsActivityWithinARun) {
  const ParameterLayout layout = Dense(100, 100);
  GradientFleet fleet("adacomp:bin=100", layout, 2);
  constexpr int kPhase = 30;
  std::vector<double> sent;  // by phase: bytes of a step in its later half
  for (const double share : {0.01, 0.2, 0.01}) {
    size_t before = 0;
    for (int step = 0; step < kPhase; ++step) {
      if (step == kPhase / 2) before = fleet.bytes_sent(0);
      const auto g = Active(layout.size(), share, RngKey(5).Fold(fleet.step()));
      fleet.Step({g, g});
    }
    sent.push_back(static_cast<double>(fleet.bytes_sent(0) - before) /
                   (kPhase - kPhase / 2));
  }
  RecordProperty("bytes", testing::PrintToString(sent));
  EXPECT_GT(sent[1], 2 * sent[0]);
  EXPECT_LT(sent[2], sent[1] / 2);
}

// Much of a bin moves in one layer.  Little moves in the other, whose values
// are a thousand times smaller.  Each layer has its own rate, as if it were
// alone.
TEST(AdaCompTest, LayersOfDifferentActivitySendAtDifferentRates) {
  const ParameterLayout both(
      {{"quiet", Player::kGenerator, {100, 100}, {}},
       {"busy", Player::kDiscriminator, {100, 100}, {}}});
  const size_t n = both.size() / 2;
  GradientFleet fleet("adacomp:bin=100", both, 2);
  GradientFleet alone("adacomp:bin=100", Dense(100, 100), 2);
  size_t quiet = 0, busy = 0;
  for (int step = 0; step < 20; ++step) {
    auto g = Active(n, 0.01, RngKey(6).Fold(step));
    for (float& x : g) x *= 1e-3f;
    const auto mean_alone = alone.Step({g, g});
    const auto other = Active(n, 0.2, RngKey(7).Fold(step));
    g.insert(g.end(), other.begin(), other.end());
    const auto mean = fleet.Step({g, g});
    quiet += Nonzero(mean_alone);
    busy += Nonzero(mean) - Nonzero(mean_alone);
    EXPECT_TRUE(std::equal(mean_alone.begin(), mean_alone.end(), mean.begin()));
  }
  RecordProperty("sent", absl::StrCat(quiet, " ", busy));
  EXPECT_GT(quiet, 0u);
  EXPECT_GT(busy, 4 * quiet);
}

TEST(AdaCompTest, OfABinAtMostTheLargestAreSent) {
  const ParameterLayout layout = Dense(20, 60);
  GradientFleet fleet("adacomp:bin=60,most=4", layout, 2);
  // All values are sent: H = 2G.
  std::vector<float> g(layout.size());
  for (size_t i = 0; i < g.size(); ++i) {
    g[i] = (i % 2 == 0 ? 1.0f : -1.0f) *
           (1 + 0.5f * static_cast<float>(RngKey(1).Uniform(i)));
  }
  const auto mean = fleet.Step({g, g});
  for (size_t b = 0; b < 20; ++b) {
    const auto bin = std::span(g).subspan(60 * b, 60);
    std::vector<float> magnitudes;
    for (const float v : bin) magnitudes.push_back(std::abs(v));
    std::ranges::sort(magnitudes, std::greater<>());
    for (size_t i = 0; i < 60; ++i) {
      const bool largest = std::abs(bin[i]) >= magnitudes[3];
      EXPECT_EQ(mean[60 * b + i] != 0, largest);
      if (largest) {
        EXPECT_EQ(mean[60 * b + i] < 0, bin[i] < 0);
      } else {  // stays in the residual
        EXPECT_EQ(fleet.Residual(0)[60 * b + i], bin[i]);
      }
    }
  }
}

// The scale of a layer would be noise in a bin whose largest value is far below
// it.  Such a bin is halved, or it sends nothing until its residual has grown.
TEST(AdaCompTest, ASmallBinIsNotDrownedByTheScaleOfItsLayer) {
  const ParameterLayout layout = Dense(32, 64);
  GradientFleet fleet("adacomp:bin=64", layout, 2);
  std::vector<float> g(layout.size());
  RngKey(3).FillGaussian(g);
  for (size_t i = 0; i < g.size(); ++i) {
    g[i] *= std::ldexp(1.0f, -static_cast<int>(i / 64 / 4));
  }
  const auto mean = fleet.Step({g, g});
  const auto residual = fleet.Residual(0);
  size_t silent = 0;
  for (size_t b = 0; b < 32; ++b) {
    float largest = 0, left = 0, sent = 0;
    for (size_t i = 64 * b; i < 64 * b + 64; ++i) {
      largest = std::max(largest, std::abs(g[i]));
      left = std::max(left, std::abs(residual[i]));
      sent = std::max(sent, std::abs(mean[i]));
    }
    EXPECT_LE(left, 2 * largest) << b;
    EXPECT_LE(sent, 2 * largest) << b;
    silent += sent == 0;
  }
  EXPECT_GT(silent, 0u);
  EXPECT_LT(silent, 20u);
}

TEST(AdaCompTest, NothingComesOfNothing) {
  const ParameterLayout layout = Dense(32, 64);
  GradientFleet fleet("adacomp", layout, 3);
  for (int step = 0; step < 3; ++step) {
    const auto mean =
        fleet.Step(GradientFleet::Vectors(3, std::vector<float>(2048)));
    EXPECT_EQ(Nonzero(mean), 0u);
  }
}

// Layers with indices of one and of two bytes, a short last bin, and small
// segments.
SharedBytes GoldenPayload() {
  const ParameterLayout layout({{"c", Player::kGenerator, {16, 8, 3, 3}, {}},
                                {"c.b", Player::kGenerator, {16}, {}},
                                {"d", Player::kDiscriminator, {41, 33}, {}}});
  auto rank = *GradientCompressor::Create("adacomp", layout);
  std::vector<float> g(layout.size());
  SharedBytes payload;
  for (uint64_t step = 0; step < 3; ++step) {
    for (size_t i = 0; i < g.size(); ++i) {
      g[i] = static_cast<float>(RngKey(step).Below(4001, i)) / 64 - 31;
    }
    rank->Begin({step, 0, 2}, g);
    payload = rank->Contribute({}, {});
  }
  return payload;
}

TEST(AdaCompTest, PayloadsHaveTheBytesOfTheGoldenFile) {
  const SharedBytes payload = GoldenPayload();
  const auto bytes = payload.bytes();
  const std::string kept = GoldenBytes("gradients_adacomp", bytes);
  ASSERT_EQ(kept.size(), bytes.size());
  EXPECT_EQ(std::memcmp(kept.data(), bytes.data(), kept.size()), 0);
}

}  // namespace adacomp_test
}  // namespace gossamer
