// What codecs are and what they lose.

#include "algorithms/codec/codec.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/rng.h"
#include "tests/algorithms/codec_testing.h"

namespace gossamer {
namespace {

TEST(CodecTest, PoliciesAreThoseOfTheDesign) {
  const auto expect = [](const char* name, bool replica, WireFormat format,
                         WireFormat first, WireFormat resync) {
    const auto codec = Make(name);
    EXPECT_EQ(codec->name(), name);
    EXPECT_EQ(codec->needs_replica(), replica) << name;
    EXPECT_EQ(codec->gamma(), 1) << name;
    EXPECT_EQ(codec->format(), format) << name;
    EXPECT_EQ(codec->first_format(), first) << name;
    EXPECT_EQ(codec->resync_format(), resync) << name;
  };
  using enum WireFormat;
  expect("dense-f32", false, kDenseF32, kDenseF32, kDenseF32);
  expect("dense-bf16", false, kDenseBf16, kDenseBf16, kDenseBf16);
  expect("diff-int8", false, kInt8, kInt8, kInt8);
  expect("innov-int8", true, kInt8, kInt8, kDenseF32);
  expect("innov-int4", true, kInt4, kInt8, kDenseF32);
  EXPECT_EQ(Codec::Names().size(), 5u);
  const auto unknown = Codec::Create("zip", Layout());
  EXPECT_EQ(unknown.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(unknown.status().message()),
              testing::AllOf(testing::HasSubstr("zip"),
                             testing::HasSubstr("diff-int8, innov-int8")));
}

TEST(CodecTest, SizesFollowTheLayout) {
  const auto codec = Make("innov-int4");
  // 33·41 = 10 blocks and 73; 1152 = 9 blocks; 1024 = 8; 1025 = 8 and 1.
  const size_t scales = 2 * (11 + 9 + 8 + 9);
  const size_t raw = 2 * (41 + 2000 + 35);
  const size_t values = 1353 + 1152 + 1024 + 1025 + raw / 2;
  EXPECT_EQ(codec->EncodedSize(WireFormat::kDenseF32), 4 * values);
  EXPECT_EQ(codec->EncodedSize(WireFormat::kDenseBf16), 2 * values);
  EXPECT_EQ(codec->EncodedSize(WireFormat::kInt8),
            scales + (1280 + 76) + 1152 + 1024 + (1024 + 4) + raw);
  EXPECT_EQ(codec->EncodedSize(WireFormat::kInt4),
            scales + (640 + 40) + 576 + 512 + (512 + 4) + raw);
}

TEST(CodecTest, EmptyLayoutAndSingleParameterWork) {
  for (const std::string_view name : Codec::Names()) {
    const auto empty = Make(name, ParameterLayout());
    EXPECT_EQ(empty->EncodedSize(empty->format()), 0u);
    EXPECT_TRUE(empty->Validate({empty->format(), {}}).ok());
    const auto scalar =
        Make(name, ParameterLayout({{"g", Player::kGenerator, {}, {}}}));
    const Message message(*scalar, scalar->format(), std::vector{0.5f});
    EXPECT_EQ(Decoded(*scalar, message, 1)[0], 0.5f);
  }
}

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

TEST(CodecTest, IsAContraction) {
  const size_t n = Layout().size();
  const auto codec = Make("diff-int8");
  for (const auto& [name, x] : Distributions(n)) {
    for (const WireFormat format : kFormats) {
      SCOPED_TRACE(name + " in format " +
                   std::to_string(static_cast<int>(format)));
      const Message message(*codec, format, x);
      EXPECT_TRUE(codec->Validate(message.encoded()).ok())
          << codec->Validate(message.encoded());
      const auto y = Decoded(*codec, message, n);
      ASSERT_TRUE(HostKernels().all_finite(y));
      const double lost = Distance(x, y), norm = Norm(x);
      if (name == "zero") {
        EXPECT_EQ(lost, 0);
      } else if (name == "denormal") {
        EXPECT_LE(lost, norm);  // quantized blocks below the range are zeros
      } else {
        EXPECT_LT(lost, norm);
      }
    }
  }
}

TEST(CodecTest, LosesNoMoreThanHalfAStepOfEachBlock) {
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

TEST(CodecTest, QuantizationNoiseIsThatOfTheTables) {
  const ParameterLayout layout({{"g", Player::kGenerator, {128, 1024}, {}}});
  const auto codec = Make("diff-int8", layout);
  const auto x = Gaussian("large", layout.size());
  const auto relative = [&](WireFormat format) {
    const auto y = Decoded(*codec, Message(*codec, format, x), layout.size());
    return std::pow(Distance(x, y) / Norm(x), 2);
  };
  EXPECT_NEAR(relative(WireFormat::kInt8), 4.5e-5, 0.6e-5);
  EXPECT_NEAR(relative(WireFormat::kInt4), 1.45e-2, 0.15e-2);
}

TEST(CodecTest, SmallAndOneDimensionalSegmentsAreBf16InQuantizedFormats) {
  const ParameterLayout layout = Layout();
  const auto codec = Make("diff-int8", layout);
  const auto x = Gaussian("x", layout.size());
  for (const WireFormat format : {WireFormat::kInt8, WireFormat::kInt4}) {
    const auto y = Decoded(*codec, Message(*codec, format, x), layout.size());
    for (const Segment& segment : layout.segments()) {
      const bool raw = segment.shape.size() < 2 || segment.extent.size < 1024;
      bool bf16 = true;
      for (size_t i = 0; i < segment.extent.size; ++i) {
        const float a = x[segment.extent.offset + i];
        const float b = y[segment.extent.offset + i];
        bf16 &= std::abs(a - b) <= std::abs(a) * 0x1p-8f;
      }
      EXPECT_EQ(bf16, raw) << segment.name;
    }
  }
}

TEST(CodecTest, TablesGiveTheSameBytesAndBits) {
  const size_t n = Layout().size();
  for (const WireFormat format : kFormats) {
    std::vector<std::vector<std::byte>> payloads;
    std::vector<std::vector<float>> results;
    for (const Kernels* kernels : AvailableKernels()) {
      const auto codec = Make("innov-int4", Layout(), *kernels);
      std::vector<float> replica(n), difference(n);
      auto x = Gaussian("x", n);
      for (int round = 0; round < 3; ++round) {
        Message mine(*codec, format, x, replica);
        const Message theirs(*codec, WireFormat::kInt4,
                             Gaussian("y" + std::to_string(round), n));
        const Encoded m = mine.encoded(), t = theirs.encoded();
        codec->Complete(&m, &t, 0.3f, difference, x);
        if (round == 2) {
          payloads.emplace_back(m.bytes.begin(), m.bytes.end());
        }
      }
      results.push_back(x);
      EXPECT_EQ(payloads.front(), payloads.back()) << kernels->name;
      EXPECT_EQ(results.front(), results.back()) << kernels->name;
    }
  }
}

}  // namespace
}  // namespace gossamer
