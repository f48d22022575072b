// The losses of codecs, as contraction, against the numbers of the literature.

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/base/rng.h"
#include "algorithms/compress/codec.h"
#include "gtest/gtest.h"
#include "tests/algorithms/compress/codec_testing.h"
#include "tests/algorithms/compress/distributions.h"

namespace gossamer {
namespace codec_loss_test {

// The loss of a format for each distribution, ‖v − C(v)‖² / ‖v‖²: at most this.
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
}

}  // namespace codec_loss_test
}  // namespace gossamer
