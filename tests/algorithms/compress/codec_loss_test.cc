// The losses of codecs, as contraction and bias, against the numbers of the
// literature.

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/base/rng.h"
#include "algorithms/compress/codec.h"
#include "gtest/gtest.h"
#include "tests/algorithms/compress/codec_testing.h"

namespace gossamer {
namespace {

// Distributions that quantizers find easy and hard.
std::vector<std::pair<std::string, std::vector<float>>> Distributions(
    size_t n) {
  constexpr float kHuge = std::numeric_limits<float>::max();
  const RngKey key(2);
  std::vector<float> gaussian = Gaussian("gaussian", n), laplace(n), spike(n),
                     tiny(n), denormal(n), huge(n), mixed = gaussian;
  for (size_t i = 0; i < n; ++i) {
    const double u = key.Uniform(i) - 0.5;
    laplace[i] = static_cast<float>(
        std::copysign(-std::log(1 - 2 * std::abs(u) + 1e-12), u));
    tiny[i] = gaussian[i] * 1e-30f;
    denormal[i] = gaussian[i] * 1e-40f;
    huge[i] = gaussian[i] > 0 ? kHuge : -kHuge;
    mixed[i] = gaussian[i] *
               static_cast<float>(std::pow(10, 60 * key.Uniform(i / 128) - 30));
  }
  spike[n / 2] = -3;
  spike[7] = 1e-3f;
  return {{"gaussian", gaussian}, {"laplace", laplace},
          {"spike", spike},       {"zero", std::vector<float>(n)},
          {"tiny", tiny},         {"denormal", denormal},
          {"huge", huge},         {"mixed", mixed}};
}

// The largest loss of a format for each distribution, ‖v − C(v)‖² / ‖v‖².
struct Loss {
  WireFormat format;
  double gaussian, laplace, spike, mixed;
};
constexpr Loss kLosses[] = {
    {WireFormat::kDenseF32, 0, 0, 0, 0},
    {WireFormat::kDenseBf16, 3e-6, 3e-6, 1e-5, 3e-6},
    {WireFormat::kInt8, 5.5e-5, 1.1e-4, 1e-4, 1e-4},
    {WireFormat::kInt4, 0.018, 0.036, 1e-4, 0.03},
    {WireFormat::kLm2, 0.125, 0.24, 0.93, 0.2},
    {WireFormat::kSign, 0.37, 0.51, 0.993, 0.45},
    {WireFormat::kTopK, 0.89, 0.79, 1e-4, 0.1},
};

TEST(CodecLossTest, IsAContraction) {
  const ParameterLayout layout({{"g", Player::kGenerator, {9, 1001}, {}}});
  const size_t n = layout.size();
  const auto codec = Make("diff-int8", layout);
  for (const auto& [name, x] : Distributions(n)) {
    for (const Loss& loss : kLosses) {
      SCOPED_TRACE(name + " in format " +
                   std::to_string(static_cast<int>(loss.format)));
      const Message message(*codec, loss.format, x);
      EXPECT_TRUE(codec->Validate(message.encoded()).ok())
          << codec->Validate(message.encoded());
      const auto y = Decoded(*codec, message, n);
      ASSERT_TRUE(HostKernels().all_finite(y));
      const double lost = Distance(x, y), norm = Norm(x);
      const double limit = name == "gaussian" || name == "tiny" ? loss.gaussian
                           : name == "laplace"                  ? loss.laplace
                           : name == "spike"                    ? loss.spike
                                                                : loss.mixed;
      if (name == "zero") {
        EXPECT_EQ(lost, 0);
      } else if (name == "denormal") {
        EXPECT_LE(lost, norm);  // quantized blocks below the range are zeros
      } else if (name == "huge") {
        EXPECT_LT(lost, norm);  // clipped to 2^100
      } else {
        EXPECT_LE(lost * lost, limit * norm * norm)
            << lost * lost / norm / norm;
      }
    }
  }
}

constexpr const char* kQsgds[] = {"qsgd",
                                  "qsgd:levels=1,bucket=128",
                                  "qsgd:levels=127",
                                  "qsgd:norm=l2",
                                  "qsgd:levels=1,bucket=256,norm=l2",
                                  "qsgd:levels=127,bucket=1024,norm=l2"};

TEST(CodecLossTest, QsgdIsUnbiasedAndItsVarianceBounded) {
  const ParameterLayout layout({{"g", Player::kGenerator, {2, 601}, {}}});
  const size_t n = layout.size();
  constexpr int kDraws = 200;
  for (const char* const qsgd : kQsgds) {
    const auto codec = Make(qsgd, layout);
    const double omega = 1 / codec->gamma() - 1;
    for (const auto& [name, x] : Distributions(n)) {
      SCOPED_TRACE(std::string(qsgd) + " of " + name);
      std::vector<double> sum(n), squares(n);
      for (int draw = 0; draw < kDraws; ++draw) {
        const Message message(*codec, codec->format(), x, {}, draw);
        ASSERT_TRUE(codec->Validate(message.encoded()).ok());
        const auto y = Decoded(*codec, message, n);
        for (size_t i = 0; i < n; ++i) {
          const double error = static_cast<double>(y[i]) - x[i];
          sum[i] += error / kDraws, squares[i] += error * error / kDraws;
        }
      }
      if (name == "denormal" || name == "huge") continue;  // outside the range
      // The mean error of K unbiased draws is 1/K of the variance; over few
      // values it strays.
      double variance = 0, mean = 0;
      for (size_t i = 0; i < n; ++i) {
        variance += squares[i];
        mean += sum[i] * sum[i];
      }
      const bool many = name == "gaussian" || name == "laplace";
      EXPECT_LE(mean, (many ? 1.3 : 9) * variance / kDraws);
      EXPECT_LE(variance, 1.1 * omega * Norm(x) * Norm(x));
    }
  }
}

// Lemma 3.1 (ii) of the QSGD paper for n values per norm: E‖Q(v) − v‖² ≤
// min(n/s², √n/s)·‖v‖² with the Euclidean norm, for every v.
TEST(CodecLossTest, VarianceOfQsgdIsWithinTheBoundOfThePaper) {
  constexpr int kDraws = 60;
  for (const int s : {1, 7, 127}) {
    for (const int n : {128, 512, 4096}) {
      const ParameterLayout layout({{"g", Player::kGenerator, {8, n}, {}}});
      const auto codec = Make("qsgd:norm=l2,levels=" + std::to_string(s) +
                                  ",bucket=" + std::to_string(n),
                              layout);
      const double bound = std::min(double(n) / (s * s), std::sqrt(n) / s);
      for (const auto& [name, x] : Distributions(layout.size())) {
        if (name == "denormal" || name == "huge") continue;  // out of range
        double variance = 0;
        for (int draw = 0; draw < kDraws; ++draw) {
          const Message message(*codec, codec->format(), x, {}, draw);
          variance +=
              std::pow(Distance(x, Decoded(*codec, message, x.size())), 2) /
              kDraws;
        }
        EXPECT_LE(variance, bound * Norm(x) * Norm(x))
            << s << " levels, " << n << " values of " << name;
      }
    }
  }
}

// Some vectors reach the bound on which γ rests: one value of s steps beside
// fractions of a step, or equal values.
TEST(CodecLossTest, QsgdHasNoSmallerBoundThanThatOfItsGamma) {
  for (const char* const qsgd : {"qsgd", "qsgd:norm=l2"}) {
    const ParameterLayout layout({{"g", Player::kGenerator, {64, 512}, {}}});
    const auto codec = Make(qsgd, layout);
    const bool l2 = qsgd != std::string("qsgd");
    std::vector<float> x(layout.size(), 0.99f);
    const double t = 1 / (1 + std::sqrt(1 + 512.0 / 49));
    for (size_t i = 0; i < x.size() && !l2; ++i) {
      x[i] = i % 512 == 0 ? 7.0f : static_cast<float>(t);
    }
    const auto y =
        Decoded(*codec, Message(*codec, codec->format(), x), x.size());
    const double omega = 1 / codec->gamma() - 1;
    EXPECT_NEAR(std::pow(Distance(x, y) / Norm(x), 2), omega, 0.05 * omega);
  }
}

TEST(CodecLossTest, DrawsAreAFunctionOfTheKeyAndDifferFromPieceToPiece) {
  const ParameterLayout layout({{"g", Player::kGenerator, {2, 1024}, {}},
                                {"d", Player::kDiscriminator, {2, 1024}, {}}});
  const auto codec = Make("qsgd", layout);
  const std::vector<float> x(layout.size(), 0.3f);
  const auto decoded = [&](uint64_t key) {
    const Message message(*codec, codec->format(), x, {}, key);
    return Decoded(*codec, message, x.size());
  };
  const auto first = decoded(1);
  EXPECT_EQ(first, decoded(1));
  EXPECT_NE(first, decoded(2));
  EXPECT_FALSE(
      std::equal(first.begin(), first.begin() + 2048, first.begin() + 2048));
}

TEST(CodecLossTest, TopKKeepsTheLargestOfEachChunkAndOfEqualOnesTheFirst) {
  const ParameterLayout layout({{"g", Player::kGenerator, {2, 2500}, {}}});
  const size_t n = layout.size();
  const auto codec = Make("innov-topk:k=100", layout);
  std::vector<float> x = Gaussian("x", n);
  for (size_t i = 0; i < n; i += 7) x[i] = i % 2 ? -2.5f : 2.5f;
  const auto y = Decoded(*codec, Message(*codec, WireFormat::kTopK, x), n);
  size_t start = 0;
  for (const auto& [size, kept] : {std::pair<size_t, size_t>(4096, 100),
                                   std::pair<size_t, size_t>(904, 23)}) {
    std::vector<size_t> order(size);
    for (size_t i = 0; i < size; ++i) order[i] = start + i;
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return std::abs(x[a]) > std::abs(x[b]);
    });
    const float step = std::abs(x[order[0]]) / 127;
    for (size_t r = 0; r < size; ++r) {
      const size_t i = order[r];
      ASSERT_NEAR(y[i], r < kept ? x[i] : 0, r < kept ? 0.51f * step : 0) << i;
    }
    start += size;
  }
}

TEST(CodecLossTest, LosesNoMoreThanHalfAStepOfEachBlock) {
  const size_t n = 128 * 32 + 77;
  const ParameterLayout layout({{"g", Player::kGenerator, {1, 4173}, {}}});
  ASSERT_EQ(layout.size(), n);
  const auto codec = Make("diff-int8", layout);
  for (const auto& [name, x] : Distributions(n)) {
    if (name == "huge" || name == "denormal") continue;
    for (const auto& [format, levels] :
         {std::pair(WireFormat::kInt8, 127), std::pair(WireFormat::kInt4, 7)}) {
      const auto y = Decoded(*codec, Message(*codec, format, x), n);
      for (size_t b = 0; b < n; b += kBlockSize) {
        const size_t end = std::min(b + kBlockSize, n);
        float absmax = 0;
        for (size_t i = b; i < end; ++i) {
          absmax = std::max(absmax, std::abs(x[i]));
        }
        // The scale is rounded up to 8 bits.
        const double step = absmax / levels * (1 + 0x1p-7) + 0x1p-126;
        for (size_t i = b; i < end; ++i) {
          ASSERT_LE(std::abs(static_cast<double>(x[i]) - y[i]),
                    step * (0.5 + 1e-4))
              << name << " " << i;
        }
      }
    }
    const auto dense =
        Decoded(*codec, Message(*codec, WireFormat::kDenseBf16, x), n);
    for (size_t i = 0; i < n; ++i) {
      ASSERT_LE(std::abs(x[i] - dense[i]), std::abs(x[i]) * 0x1p-8f) << i;
    }
    EXPECT_EQ(Decoded(*codec, Message(*codec, WireFormat::kDenseF32, x), n), x);
  }
}

TEST(CodecLossTest, QuantizationNoiseIsThatOfTheTables) {
  const ParameterLayout layout({{"g", Player::kGenerator, {128, 1024}, {}}});
  const auto codec = Make("diff-int8", layout);
  const auto x = Gaussian("large", layout.size());
  const auto relative = [&](WireFormat format) {
    const auto y = Decoded(*codec, Message(*codec, format, x), layout.size());
    return std::pow(Distance(x, y) / Norm(x), 2);
  };
  EXPECT_NEAR(relative(WireFormat::kInt8), 4.5e-5, 0.6e-5);
  EXPECT_NEAR(relative(WireFormat::kInt4), 1.45e-2, 0.15e-2);
  // Max's optimum for four levels is 0.1175; with a scale of its own for each
  // block the loss is a little less.  For two levels it is 1 − 2/π.
  EXPECT_NEAR(relative(WireFormat::kLm2), 0.117, 0.002);
  EXPECT_NEAR(relative(WireFormat::kSign), 0.362, 0.003);
  EXPECT_NEAR(relative(WireFormat::kTopK), 0.88, 0.01);
  EXPECT_NEAR(relative(WireFormat::kQsgd), 0.035, 0.004);
}

}  // namespace
}  // namespace gossamer
