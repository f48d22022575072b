// QSGD's quantizer: no bias, a bounded variance, the sizes of its payloads, and
// what it refuses.

#include "algorithms/compress/qsgd.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "algorithms/kernels/values.h"
#include "gmock/gmock.h"
#include "tests/algorithms/compress/distributions.h"
#include "tests/algorithms/compress/qsgd_testing.h"
#include "tests/algorithms/kernels/device_as_host.h"

namespace gossamer {
namespace qsgd_test {

constexpr const char* kQsgds[] = {
    "",        "levels=1,bucket=128",         "levels=127",
    "norm=l2", "levels=1,bucket=256,norm=l2", "levels=127,bucket=1024,norm=l2"};

// The largest E‖Q(v) − v‖² / ‖v‖² of any bucket of values v: a value a fraction
// t of a step above a level adds t(1−t) steps².  With the maximum norm these
// are one value of s steps and B of t = 1/(1 + √(1 + B/s²)) each; with the
// Euclidean one B of s/√B, or as many of 1/2 as make up the norm.
double OmegaOf(const QsgdOptions& options) {
  const double b = options.bucket, s = options.levels;
  if (options.norm == Coding::kMax) {
    return (std::sqrt(1 + b / (s * s)) - 1) / 2;
  }
  return 2 * s <= std::sqrt(b) ? std::sqrt(b) / s - 1 : b / (4 * s * s);
}

TEST(QsgdTest, IsUnbiasedAndItsVarianceBounded) {
  const ParameterLayout layout({{"g", Player::kGenerator, {2, 601}, {}}});
  const size_t n = layout.size();
  constexpr int kDraws = 200;
  for (const char* const options : kQsgds) {
    const QsgdCoder coder = MakeQsgd(options, layout);
    const double omega = OmegaOf(OptionsOfQsgd(options));
    for (const auto& [name, x] : Distributions(n)) {
      SCOPED_TRACE(std::string(options) + " of " + name);
      std::vector<double> sum(n), squares(n);
      for (int draw = 0; draw < kDraws; ++draw) {
        const Bytes payload = Coded(coder, x, draw);
        ASSERT_TRUE(coder.Validate(payload).ok());
        const auto y = Decoded(coder, payload, n);
        for (size_t i = 0; i < n; ++i) {
          const double error = static_cast<double>(y[i]) - x[i];
          sum[i] += error / kDraws, squares[i] += error * error / kDraws;
        }
      }
      if (name == "denormal" || name == "huge") continue;  // outside the range
      // Of K draws without bias, the mean error is 1/K of the variance; of
      // few values it strays.
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

// Lemma 3.1 (ii) of the QSGD paper, of n values per norm: E‖Q(v) − v‖² ≤
// min(n/s², √n/s)·‖v‖² with the Euclidean norm, whatever v is.
TEST(QsgdTest, VarianceIsWithinTheBoundOfThePaper) {
  constexpr int kDraws = 60;
  for (const int s : {1, 7, 127}) {
    for (const int n : {128, 512, 4096}) {
      const ParameterLayout layout({{"g", Player::kGenerator, {8, n}, {}}});
      const QsgdCoder coder = MakeQsgd("norm=l2,levels=" + std::to_string(s) +
                                           ",bucket=" + std::to_string(n),
                                       layout);
      const double bound = std::min(double(n) / (s * s), std::sqrt(n) / s);
      for (const auto& [name, x] : Distributions(layout.size())) {
        if (name == "denormal" || name == "huge") continue;  // out of range
        double variance = 0;
        for (int draw = 0; draw < kDraws; ++draw) {
          const auto y = Decoded(coder, Coded(coder, x, draw), x.size());
          variance += std::pow(Distance(x, y), 2) / kDraws;
        }
        EXPECT_LE(variance, bound * Norm(x) * Norm(x))
            << s << " levels, " << n << " values of " << name;
      }
    }
  }
}

// The bound on the variance is reached, by one value of s steps and others of a
// fraction of one, or by equal ones.
TEST(QsgdTest, HasNoSmallerBound) {
  for (const std::string options : {"", "norm=l2"}) {
    const ParameterLayout layout({{"g", Player::kGenerator, {64, 512}, {}}});
    const QsgdCoder coder = MakeQsgd(options, layout);
    std::vector<float> x(layout.size(), 0.99f);
    const double t = 1 / (1 + std::sqrt(1 + 512.0 / 49));
    for (size_t i = 0; i < x.size() && options.empty(); ++i) {
      x[i] = i % 512 == 0 ? 7.0f : static_cast<float>(t);
    }
    const auto y = Decoded(coder, Coded(coder, x), x.size());
    const double omega = OmegaOf(OptionsOfQsgd(options));
    EXPECT_NEAR(std::pow(Distance(x, y) / Norm(x), 2), omega, 0.05 * omega);
  }
}

TEST(QsgdTest, DrawsAreAFunctionOfTheKeyAndDifferFromPieceToPiece) {
  const ParameterLayout layout({{"g", Player::kGenerator, {2, 1024}, {}},
                                {"d", Player::kDiscriminator, {2, 1024}, {}}});
  const QsgdCoder coder = MakeQsgd("", layout);
  const std::vector<float> x(layout.size(), 0.3f);
  const auto decoded = [&](uint64_t key) {
    return Decoded(coder, Coded(coder, x, key), x.size());
  };
  const auto first = decoded(1);
  EXPECT_EQ(first, decoded(1));
  EXPECT_NE(first, decoded(2));
  EXPECT_FALSE(
      std::equal(first.begin(), first.begin() + 2048, first.begin() + 2048));
}

TEST(QsgdTest, NoiseIsThatOfTheTables) {
  const ParameterLayout layout({{"g", Player::kGenerator, {128, 1024}, {}}});
  const QsgdCoder coder = MakeQsgd("", layout);
  const auto x = Gaussian("large", layout.size());
  const auto y = Decoded(coder, Coded(coder, x), x.size());
  EXPECT_NEAR(std::pow(Distance(x, y) / Norm(x), 2), 0.035, 0.004);
}

TEST(QsgdTest, SizesFollowTheLayout) {
  // 33·41 values are 10 blocks and 73; 1152 are 9; 1024 are 8; 1025 are 8 and
  // 1.  Others are floats.
  const size_t raw = 4 * (41 + 2000 + 35);
  const size_t fours = (640 + 40) + 576 + 512 + (512 + 4);
  EXPECT_EQ(MakeQsgd("").size(), 2 * (3 + 3 + 2 + 3) + fours + raw);
  EXPECT_EQ(MakeQsgd("bucket=128").size(), 2 * (11 + 9 + 8 + 9) + fours + raw);
  const size_t twos = (320 + 24) + 288 + 256 + (256 + 8);
  EXPECT_EQ(MakeQsgd("levels=1").size(), 2 * (3 + 3 + 2 + 3) + twos + raw);
  const size_t bytes = (1280 + 76) + 1152 + 1024 + (1024 + 4);
  EXPECT_EQ(MakeQsgd("levels=127").size(), 2 * (3 + 3 + 2 + 3) + bytes + raw);
  EXPECT_EQ(MakeQsgd("", ParameterLayout()).size(), 0u);
  EXPECT_TRUE(MakeQsgd("", ParameterLayout()).Validate({}).ok());
}

TEST(QsgdTest, TablesGiveTheSameBytesAndBits) {
  const auto x = Gaussian("x", Layout().size());
  for (const char* const options : kQsgds) {
    const QsgdCoder host = MakeQsgd(options);
    const Bytes payload = Coded(host, x, 5);
    const auto decoded = Decoded(host, payload, x.size());
    auto tables = AvailableKernels();
    tables.push_back(&TestedDevice());
    for (const Kernels* kernels : tables) {
      const QsgdCoder coder = MakeQsgd(options, Layout(), *kernels);
      EXPECT_EQ(Coded(coder, x, 5), payload) << kernels->name;
      EXPECT_EQ(Decoded(coder, payload, x.size()), decoded) << kernels->name;
    }
  }
}

TEST(QsgdTest, BadScalesAreDataLoss) {
  const QsgdCoder coder = MakeQsgd("");
  const Bytes honest = Coded(coder, Gaussian("x", Layout().size()));
  const uint32_t largest =
      std::bit_cast<uint32_t>(BlockScale(kMaxMagnitude, 7)) >> 16;
  const auto with = [&](uint32_t bits, size_t scale) {
    Bytes payload = honest;
    const auto written = static_cast<uint16_t>(bits);
    std::memcpy(&payload[2 * scale], &written, sizeof(written));
    return coder.Validate(payload);
  };
  EXPECT_TRUE(with(largest, 0).ok());
  for (const uint32_t bits : {0x8000u, 0xbf80u, 0x7f80u, 0x7fc0u, 0xffffu,
                              0x0001u, 0x007fu, largest + 1}) {
    for (const size_t scale : {0, 1, 3}) {
      const absl::Status status = with(bits, scale);
      EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << bits;
      EXPECT_THAT(std::string(status.message()),
                  testing::AllOf(testing::HasSubstr("payload of qsgd"),
                                 testing::HasSubstr("scale")));
    }
  }
}

// The last word of d.out's codes holds one value.
TEST(QsgdTest, PaddingMustBeZero) {
  for (const char* const options : {"", "levels=1,bucket=128"}) {
    const QsgdCoder coder = MakeQsgd(options);
    Bytes payload = Coded(coder, Gaussian("x", Layout().size()));
    ASSERT_TRUE(coder.Validate(payload).ok());
    payload[payload.size() - 4 * (41 + 2000 + 35) - 1] |= std::byte{0x10};
    const absl::Status status = coder.Validate(payload);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr("padding"));
  }
}

}  // namespace qsgd_test
}  // namespace gossamer
