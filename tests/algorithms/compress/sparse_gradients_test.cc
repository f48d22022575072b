// ScaleCom and top-k: the values they choose, remember and send.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <vector>

#include "algorithms/compress/chunk_choice.h"
#include "gmock/gmock.h"
#include "tests/algorithms/compress/gradient_fleet.h"

namespace gossamer {
namespace sparse_gradients_test {

ParameterLayout OneSegment(int64_t rows, int64_t columns) {
  return ParameterLayout({{"g", Player::kGenerator, {rows, columns}, {}}});
}

// Returns small whole numbers, of which every sum is exact.
GradientFleet::Vectors WholeNumbers(int size, size_t n, RngKey key) {
  GradientFleet::Vectors g(size, std::vector<float>(n));
  for (int r = 0; r < size; ++r) {
    for (size_t i = 0; i < n; ++i) {
      g[r][i] = static_cast<float>(key.Fold(r).Below(2001, i)) - 1000;
    }
  }
  return g;
}

size_t Nonzero(const std::vector<float>& v) {
  return v.size() - static_cast<size_t>(std::count(v.begin(), v.end(), 0.0f));
}

// Algorithm 1 of the paper as written, with the memories p = m + g of all ranks
// at hand.
struct PaperScaleCom {
  PaperScaleCom(int size, size_t n, size_t rate, float beta)
      : rate(rate), beta(beta), m(size, std::vector<float>(n)) {}

  std::vector<float> Step(const GradientFleet::Vectors& g) {
    const size_t n = m[0].size();
    const auto leader = step++ % m.size();
    std::vector<bool> chosen(n);
    for (size_t at = 0; at < n; at += rate) {
      size_t best = at;
      for (size_t i = at; i < std::min(n, at + rate); ++i) {
        const auto p = [&](size_t k) {
          return std::abs(m[leader][k] + g[leader][k]);
        };
        if (p(i) > p(best)) best = i;
      }
      chosen[best] = true;
    }
    std::vector<float> mean(n);
    for (size_t r = 0; r < m.size(); ++r) {
      for (size_t i = 0; i < n; ++i) {
        const float p = m[r][i] + g[r][i];
        const float q = chosen[i] ? p : 0.0f;
        mean[i] += q / static_cast<float>(m.size());
        m[r][i] = (1 - beta) * m[r][i] + beta * (p - q);
      }
    }
    return mean;
  }

  const size_t rate;
  const float beta;
  size_t step = 0;
  std::vector<std::vector<float>> m;
};

TEST(ScaleComTest, IsAlgorithmOneOfThePaper) {
  const ParameterLayout layout = OneSegment(40, 33);
  const size_t n = layout.size();
  constexpr int kSize = 4;
  for (const float beta : {1.0f, 0.3f, 0.1f}) {
    GradientFleet fleet("scalecom:rate=65,beta=" + std::to_string(beta), layout,
                        kSize);
    PaperScaleCom paper(kSize, n, 65, beta);
    for (int step = 0; step < 30; ++step) {
      GradientFleet::Vectors g(kSize, std::vector<float>(n));
      for (int r = 0; r < kSize; ++r) RngKey(step).Fold(r).FillGaussian(g[r]);
      const auto mean = fleet.Step(g), expected = paper.Step(g);
      for (size_t i = 0; i < n; ++i) {
        ASSERT_NEAR(mean[i], expected[i], 1e-5) << step << " " << i;
      }
      for (int r = 0; r < kSize; ++r) {
        const auto residual = fleet.Residual(r);
        for (size_t i = 0; i < n; ++i) {
          ASSERT_NEAR(residual[i], paper.m[r][i], 1e-5) << step << " " << i;
        }
      }
    }
  }
}

// A sent value keeps (1 − β)m, any other m + βg, to the bit.
TEST(ScaleComTest, ResidualOfASentIndexIsThatOfThePaper) {
  const ParameterLayout layout = OneSegment(2, 600);
  for (const float beta : {1.0f, 0.1f}) {
    GradientFleet fleet("scalecom:rate=100,beta=" + std::to_string(beta),
                        layout, 2);
    for (int step = 0; step < 3; ++step) {
      fleet.Step(WholeNumbers(2, 1200, RngKey(step)));
    }
    const auto before = fleet.Residual(1);
    const auto g = WholeNumbers(2, 1200, RngKey(9));
    const auto mean = fleet.Step(g);
    const auto after = fleet.Residual(1);
    size_t sent = 0;
    for (size_t i = 0; i < 1200; ++i) {
      const bool is_sent = mean[i] != 0;
      sent += is_sent;
      EXPECT_EQ(after[i],
                is_sent ? (1 - beta) * before[i] : before[i] + beta * g[1][i])
          << i;
    }
    EXPECT_EQ(sent, 12u);
  }
}

// The mean of the compressed vectors is the compressed mean, since all ranks
// use one set of indices.  With a set for each rank it is not.
TEST(ScaleComTest, CommutesWithAveragingAndTopKDoesNot) {
  const ParameterLayout layout = OneSegment(10, 200);
  const size_t n = layout.size();
  constexpr int kSize = 4;
  GradientFleet led("scalecom:rate=100", layout, kSize, "ring");
  GradientFleet own("top-k:rate=100", layout, kSize);
  for (int step = 0; step < 12; ++step) {
    const auto g = WholeNumbers(kSize, n, RngKey(30).Fold(step));
    std::vector<float> p_mean(n), p_leader;
    for (int r = 0; r < kSize; ++r) {
      const auto m = led.Residual(r);
      if (r == step % kSize) {
        p_leader.resize(n);
        for (size_t i = 0; i < n; ++i) p_leader[i] = m[i] + g[r][i];
      }
      for (size_t i = 0; i < n; ++i) p_mean[i] += (m[i] + g[r][i]) / kSize;
    }
    std::vector<float> compressed(n);
    for (size_t at = 0; at < n; at += 100) {
      const auto chunk = std::span(p_leader).subspan(at, 100);
      const auto best = std::ranges::max_element(
          chunk, {}, [](float v) { return std::abs(v); });
      const size_t i = at + static_cast<size_t>(best - chunk.begin());
      compressed[i] = p_mean[i];
    }
    EXPECT_EQ(led.Step(g), compressed);
    EXPECT_LE(Nonzero(compressed), 20u);
    EXPECT_GT(Nonzero(own.Step(g)), 40u);
  }
}

// The bytes that the state machines really send in a step; the leader's
// messages are shared by all, as each rank leads in turn.  With one set of
// indices they do not depend on the number of ranks, with a set for each rank
// they are proportional to it.
TEST(ScaleComTest, VolumeDoesNotGrowWithTheRanksWhileThatOfTopKDoes) {
  const ParameterLayout layout = OneSegment(400, 400);
  const auto per_step = [&](const char* method, const char* schedule,
                            int size) {
    GradientFleet fleet(method, layout, size, schedule);
    GradientFleet::Vectors g(size, std::vector<float>(layout.size()));
    for (int r = 0; r < size; ++r) RngKey(r).FillGaussian(g[r]);
    fleet.Step(g);
    size_t all = 0;
    for (int r = 0; r < size; ++r) all += fleet.bytes_sent(r);
    // Heads belong to the transport, not to the method.
    return static_cast<double>(all) / size;
  };
  const double k = 160000.0 / 100;
  // A leader message has 7 bits for each of k indices, once in M steps to M − 1
  // ranks; payloads have 2k(M − 1)/M floats.  The growth is of the heads, of
  // more and shorter messages.
  std::map<int, double> led, own;
  for (const int size : {4, 8, 16, 32, 64}) {
    const double share = (size - 1.0) / size;
    const double heads = 32 * (2 * (size - 1) + share);
    led[size] = per_step("scalecom:rate=100", "ring", size);
    own[size] = per_step("top-k:rate=100", "all-gather", size);
    EXPECT_NEAR(led[size], share * (8 * k + 7 * k / 8) + heads, 8) << size;
    EXPECT_NEAR(per_step("scalecom:rate=100", "mesh", size),
                share * (8 * k + 7 * k / 8) + heads, 8)
        << size;
    EXPECT_NEAR(own[size], (size - 1) * (4 * k + 7 * k / 8 + 32), 8) << size;
  }
  // The ratio counts all bytes of a peer, heads included: 10.9 kB and 18.0 kB.
  // Of the 1.66, 1.31 is (M - 1)/M, which floats have too; the rest is 4 kB of
  // heads, whatever k.
  EXPECT_NEAR(led[64] / led[4], 1.66, 0.01);
  EXPECT_NEAR(own[64] / own[4], 21, 0.01);
}

TEST(ScaleComTest, RatesAreThoseAskedFor) {
  const ParameterLayout layout = OneSegment(512, 512);
  const double dense = 4.0 * static_cast<double>(layout.size());
  for (const int rate : {65, 100, 200, 400}) {
    GradientFleet fleet("scalecom:rate=" + std::to_string(rate), layout, 2);
    GradientFleet::Vectors g(2, std::vector<float>(layout.size()));
    for (int r = 0; r < 2; ++r) RngKey(r).FillGaussian(g[r]);
    const auto mean = fleet.Step(g);
    const size_t k = (layout.size() + rate - 1) / rate;
    EXPECT_EQ(Nonzero(mean), k);
    EXPECT_NEAR(dense / (4.0 * static_cast<double>(k)), rate, 0.02 * rate);
    // The indices cost the leader fewer than 32 bits each.
    EXPECT_LT(static_cast<double>(fleet.bytes_sent(0)),
              dense / rate * (1 + 9.0 / 32) + 200);
  }
}

// Small and one-dimensional segments are averaged as they are.
TEST(ScaleComTest, SmallSegmentsTravelWhole) {
  const ParameterLayout layout({{"w", Player::kGenerator, {40, 40}, {}},
                                {"b", Player::kGenerator, {4000}, {}},
                                {"v", Player::kDiscriminator, {30, 34}, {}}});
  for (const char* const method : {"scalecom:rate=50", "top-k:rate=50"}) {
    GradientFleet fleet(method, layout, 2);
    for (int step = 0; step < 3; ++step) {
      const auto g = WholeNumbers(2, layout.size(), RngKey(step));
      const auto mean = fleet.Step(g);
      for (size_t i = 1600; i < layout.size(); ++i) {
        ASSERT_EQ(mean[i], (g[0][i] + g[1][i]) / 2);
        ASSERT_EQ(fleet.Residual(0)[i], 0);
      }
    }
  }
  GradientFleet flat("scalecom:rate=50,flat=1", layout, 2);
  const auto mean = flat.Step(WholeNumbers(2, layout.size(), RngKey(0)));
  EXPECT_LE(Nonzero(mean), (layout.size() + 49) / 50);
}

TEST(ChunkChoiceTest, RefusesWhatNoRankCanHaveChosen) {
  // 1,300 values in chunks of 100 are 13 indices of 7 bits; five bits of the
  // last byte belong to no index.
  const ChunkChoice choice(OneSegment(13, 100), 100, false);
  ASSERT_EQ(choice.bytes(), 12u);
  std::vector<uint32_t> indices(13), again(13);
  for (uint32_t i = 0; i < 13; ++i) indices[i] = 100 * i + 99;
  std::vector<std::byte> packed(choice.bytes());
  choice.Pack(indices, packed);
  ASSERT_TRUE(choice.Check(packed).ok());
  choice.Unpack(packed, again);
  EXPECT_EQ(again, indices);
  const auto refused = [&](std::vector<std::byte> bytes) {
    return choice.Check(bytes).code() == absl::StatusCode::kDataLoss;
  };
  EXPECT_TRUE(refused({}));
  for (const size_t size : {11, 13, 4000}) {
    std::vector<std::byte> wrong = packed;
    wrong.resize(size);
    EXPECT_TRUE(refused(wrong)) << size;
  }
  for (size_t i = 0; i < 13; ++i) {
    for (const uint32_t beyond : {100u, 127u}) {
      std::vector<uint32_t> bad = indices;
      bad[i] = 100 * static_cast<uint32_t>(i) + beyond;
      std::vector<std::byte> bytes(choice.bytes());
      choice.Pack(bad, bytes);
      EXPECT_TRUE(refused(bytes)) << i;
    }
  }
  std::vector<std::byte> padded = packed;
  padded.back() |= std::byte{0x80};
  EXPECT_TRUE(refused(padded));
}

// The last chunk of a segment is shorter, and an index may not be beyond it.
TEST(ChunkChoiceTest, KnowsWhereASegmentEnds) {
  const ChunkChoice choice(OneSegment(2, 525), 100, false);
  std::vector<uint32_t> indices(11, 0);
  for (uint32_t i = 0; i < 11; ++i) indices[i] = 100 * i;
  for (const uint32_t last : {1000u, 1049u, 1050u, 1099u}) {
    indices[10] = last;
    std::vector<std::byte> packed(choice.bytes());
    choice.Pack(indices, packed);
    EXPECT_EQ(choice.Check(packed).ok(), last < 1050) << last;
  }
}

}  // namespace sparse_gradients_test
}  // namespace gossamer
