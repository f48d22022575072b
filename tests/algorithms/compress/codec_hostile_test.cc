// Bytes from outside are refused or harmless.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "algorithms/base/rng.h"
#include "algorithms/kernels/values.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/algorithms/compress/codec_testing.h"

namespace gossamer {
namespace codec_hostile_test {

TEST(HostileBytesTest, WrongFormatsAndSizesAreDataLoss) {
  const auto codec = Make("innov-int4");
  std::vector<std::byte> bytes(1 << 16);
  for (const int format : {0, 8, 10, 11, 13, 14, 77, 255}) {
    EXPECT_EQ(codec->Validate({static_cast<WireFormat>(format), bytes}).code(),
              absl::StatusCode::kDataLoss);
    EXPECT_EQ(codec->EncodedSize(static_cast<WireFormat>(format)), 0u);
  }
  for (const WireFormat format : kFormats) {
    const size_t size = codec->EncodedSize(format);
    for (const size_t wrong : {size_t{0}, size_t{1}, size - 1, size + 1}) {
      EXPECT_EQ(codec->Validate({format, std::span(bytes).first(wrong)}).code(),
                absl::StatusCode::kDataLoss);
    }
    EXPECT_EQ(codec->Validate({format, std::span(bytes).first(size)}).ok(),
              format != WireFormat::kTopK)
        << "zeros are a valid payload of every format without indices";
  }
}

TEST(HostileBytesTest, BadScalesAreDataLoss) {
  const auto codec = Make("innov-int4");
  for (const WireFormat format : kFormats) {
    if (!HasScales(format)) continue;
    Message message(*codec, format, Gaussian("x", Layout().size()));
    // The last scale is 2^101, beyond that of every format.
    for (const int bits :
         {0x8000, 0xbf80, 0x7f80, 0x7fc0, 0xffff, 0x7f7f, 0x0001, 0x007f,  //
          0x7200}) {
      for (const size_t scale : {0, 1, 3}) {
        Message bad = message;
        bad.bytes()[2 * scale] = static_cast<std::byte>(bits & 0xff);
        bad.bytes()[2 * scale + 1] = static_cast<std::byte>(bits >> 8);
        const absl::Status status = codec->Validate(bad.encoded());
        EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << bits;
        EXPECT_THAT(std::string(status.message()), testing::HasSubstr("scale"));
      }
    }
  }
}

// The largest scale that is accepted times the largest code is 2^100, except
// for the rounding of the scale.
TEST(HostileBytesTest, ScalesAreBoundedByTheLargestCode) {
  const auto codec = Make("innov-int4");
  for (const auto& [format, levels] : {std::pair(WireFormat::kInt8, 127),
                                       {WireFormat::kInt4, 7},
                                       {WireFormat::kLm2, 10},
                                       {WireFormat::kSign, 1},
                                       {WireFormat::kTopK, 127}}) {
    Message message(*codec, format, Gaussian("x", Layout().size()));
    const float limit = BlockScale(kMaxMagnitude, static_cast<float>(levels));
    const uint32_t bits = std::bit_cast<uint32_t>(limit) >> 16;
    for (const uint32_t over : {0, 1}) {
      const uint16_t scale = static_cast<uint16_t>(bits + over);
      std::memcpy(message.bytes().data(), &scale, sizeof(scale));
      EXPECT_EQ(codec->Validate(message.encoded()).ok(), over == 0)
          << static_cast<int>(format);
    }
  }
}

TEST(HostileBytesTest, PaddingMustBeZero) {
  const auto codec = Make("innov-int4");
  for (const WireFormat format : kFormats) {
    if (format <= WireFormat::kDenseBf16) continue;
    Message message(*codec, format, Gaussian("x", Layout().size()));
    // The last word of d.out's codes holds one value, of top-k the last byte
    // half an index.
    const size_t raw = 2 * (41 + 2000 + 35);
    const size_t end = message.bytes().size() - raw;
    ASSERT_TRUE(codec->Validate(message.encoded()).ok());
    message.bytes()[end - 1] |= std::byte{0x10};
    const absl::Status status = codec->Validate(message.encoded());
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss)
        << static_cast<int>(format);
    EXPECT_THAT(
        std::string(status.message()),
        testing::HasSubstr(format == WireFormat::kTopK ? "index" : "padding"));
  }
}

TEST(HostileBytesTest, IndicesMustRiseAndLieInside) {
  // A chunk of 4096 with 64 kept, and one of 904 with 15.
  const ParameterLayout layout({{"g", Player::kGenerator, {2, 2500}, {}}});
  const auto codec = Make("innov-topk", layout);
  const size_t first = 2 * 2 + 64, second = first + 96 + 15;
  const auto with = [&](size_t at, size_t i, size_t index) {
    Message message(*codec, WireFormat::kTopK,
                    std::vector<float>(layout.size()));
    std::byte* const pair = &message.bytes()[at + i / 2 * 3];
    uint32_t bits = 0;
    const size_t bytes = i % 2 == 0 ? 2 : 3;
    std::memcpy(&bits, pair, bytes);
    const size_t shift = i % 2 * 12;
    bits = (bits & ~(0xfffu << shift)) | static_cast<uint32_t>(index) << shift;
    std::memcpy(pair, &bits, bytes);
    return codec->Validate(message.encoded());
  };
  // Among equal magnitudes the first of a chunk are kept: 0 to 63 and 0 to 14.
  EXPECT_TRUE(with(first, 63, 63).ok());
  EXPECT_TRUE(with(first, 63, 4095).ok());
  EXPECT_TRUE(with(second, 14, 903).ok());
  for (const absl::Status& status :
       {with(first, 63, 62), with(first, 63, 0), with(first, 0, 1),
        with(first, 0, 4095), with(second, 14, 904), with(second, 14, 4095),
        with(second, 14, 13), with(second, 3, 903)}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr("index"));
  }
}

TEST(HostileBytesTest, ADamagedPayloadIsRefusedOrKeepsValuesFinite) {
  const size_t n = Layout().size();
  const auto codec = Make("innov-int4");
  const RngKey key(6);
  // Values around the spans must stay as they are.
  constexpr size_t kMargin = 4096;
  std::vector<float> around_d(n + 2 * kMargin, 3.0f), around_x = around_d;
  const std::span<float> difference = std::span(around_d).subspan(kMargin, n);
  const std::span<float> x = std::span(around_x).subspan(kMargin, n);
  int accepted[kLastWireFormat + 1] = {}, refused = 0;
  for (uint64_t trial = 0; trial < 1600; ++trial) {
    const WireFormat format = kFormats[trial % std::size(kFormats)];
    Message message(*codec, format, Gaussian("y", n));
    const RngKey draw = key.Fold(trial);
    const bool all = trial / std::size(kFormats) % 5 == 0;
    const size_t changes = all ? message.bytes().size() : 1 + draw.Below(4, 0);
    for (uint64_t k = 0; k < changes; ++k) {
      const size_t at =
          all ? k : draw.Fold("at").Below(message.bytes().size(), k);
      message.bytes()[at] =
          static_cast<std::byte>(draw.Fold("to").Below(256, k));
    }
    const Encoded encoded = message.encoded();
    for (const size_t cut : {size_t{1}, size_t{1} + draw.Below(500, 1)}) {
      ASSERT_EQ(codec
                    ->Validate({format, encoded.bytes.first(
                                            encoded.bytes.size() - cut)})
                    .code(),
                absl::StatusCode::kDataLoss);
    }
    const absl::Status status = codec->Validate(encoded);
    if (!status.ok()) {
      ASSERT_EQ(status.code(), absl::StatusCode::kDataLoss);
      ++refused;
      continue;
    }
    ++accepted[static_cast<int>(format)];
    codec->Complete(nullptr, &encoded, 1, difference, x);
    codec->Complete(&encoded, nullptr, 1, difference, x);
    codec->Complete(&encoded, &encoded, 1, difference, x);
    ASSERT_TRUE(HostKernels().all_finite(difference));
    ASSERT_TRUE(HostKernels().all_finite(x));
  }
  for (const WireFormat format : kFormats) {
    EXPECT_GT(accepted[static_cast<int>(format)], 25)
        << static_cast<int>(format);
  }
  EXPECT_GT(refused, 300);
  for (const auto& around : {around_d, around_x}) {
    EXPECT_THAT(std::span(around).first(kMargin), testing::Each(3.0f));
    EXPECT_THAT(std::span(around).last(kMargin), testing::Each(3.0f));
  }
}

// An edge calls MagnitudeBound before it applies values (CorrectionLimits).
TEST(HostileBytesTest, NoDecodedValueExceedsTheBoundOfItsPayload) {
  const size_t n = Layout().size();
  const auto codec = Make("innov-int4");
  for (const float size : {1e-3f, 1.0f, 1e6f}) {
    std::vector<float> x = Gaussian("x", n);
    for (float& v : x) v *= size;
    for (const WireFormat format : kFormats) {
      SCOPED_TRACE(absl::StrCat(static_cast<int>(format), ", ", size));
      const Message message(*codec, format, x);
      float largest = 0;
      for (const float v : Decoded(*codec, message, n)) {
        largest = std::max(largest, std::abs(v));
      }
      const float bound = codec->MagnitudeBound(message.encoded(), 2 * largest);
      EXPECT_LE(largest, bound);
      EXPECT_TRUE(std::isfinite(bound));
      // Parts without scales are read, and the result is no more than the
      // limit.
      EXPECT_LE(largest, codec->MagnitudeBound(message.encoded(), largest / 2));
      if (!HasScales(format) && format < WireFormat::kUnit) {
        EXPECT_EQ(bound, 2 * largest);
        EXPECT_EQ(codec->MagnitudeBound(message.encoded(), largest / 2),
                  std::numeric_limits<float>::infinity());
      }
    }
  }
}

TEST(HostileBytesTest, ManyLargestPayloadsCannotOverflowTheDifference) {
  const size_t n = Layout().size();
  const auto codec = Make("innov-int4");
  const std::vector<float> largest(n, kMaxMagnitude);
  for (const WireFormat format : kFormats) {
    const Message message(*codec, format, largest);
    const Encoded encoded = message.encoded();
    ASSERT_TRUE(codec->Validate(encoded).ok());
    // The sum stalls here, after more payloads than a test can send.
    std::vector<float> difference(n, 0x1p127f), x(n);
    for (int k = 0; k < 1000; ++k) {
      codec->Complete(nullptr, &encoded, 1, difference, x);
    }
    EXPECT_TRUE(HostKernels().all_finite(difference));
  }
}

}  // namespace codec_hostile_test
}  // namespace gossamer
