// Bytes from outside are refused or harmless.

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/rng.h"
#include "tests/algorithms/codec_testing.h"

namespace gossamer {
namespace {

TEST(HostileBytesTest, WrongFormatsAndSizesAreDataLoss) {
  const auto codec = Make("innov-int4");
  std::vector<std::byte> bytes(1 << 16);
  for (const int format : {0, 5, 77, 255}) {
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
    EXPECT_TRUE(codec->Validate({format, std::span(bytes).first(size)}).ok())
        << "zeros are a valid payload of every format";
  }
}

TEST(HostileBytesTest, BadScalesAreDataLoss) {
  const auto codec = Make("innov-int4");
  Message message(*codec, WireFormat::kInt4, Gaussian("x", Layout().size()));
  for (const int bits : {0x8000, 0xbf80, 0x7f80, 0x7fc0, 0xffff, 0x7f7f, 0x7180,
                         0x0001, 0x007f}) {
    for (const size_t scale : {0, 17, 36}) {
      Message bad = message;
      bad.bytes()[2 * scale] = static_cast<std::byte>(bits & 0xff);
      bad.bytes()[2 * scale + 1] = static_cast<std::byte>(bits >> 8);
      const absl::Status status = codec->Validate(bad.encoded());
      EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << bits;
      EXPECT_THAT(std::string(status.message()), testing::HasSubstr("scale"));
    }
  }
}

TEST(HostileBytesTest, PaddingMustBeZero) {
  const auto codec = Make("innov-int4");
  for (const WireFormat format : {WireFormat::kInt8, WireFormat::kInt4}) {
    Message message(*codec, format, Gaussian("x", Layout().size()));
    // The last word of d.out's codes holds one value.
    const size_t raw = 2 * (41 + 2000 + 35);
    const size_t end = message.bytes().size() - raw;
    ASSERT_TRUE(codec->Validate(message.encoded()).ok());
    message.bytes()[end - 1] = std::byte{0x10};
    const absl::Status status = codec->Validate(message.encoded());
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr("padding"));
  }
}

TEST(HostileBytesTest, WhateverValidatesKeepsFiniteWhatIsFinite) {
  const size_t n = Layout().size();
  const auto codec = Make("innov-int4");
  const RngKey key(6);
  std::vector<float> difference = Gaussian("d", n), x = Gaussian("x", n);
  int accepted = 0, refused = 0;
  for (uint64_t trial = 0; trial < 400; ++trial) {
    const WireFormat format = kFormats[trial % 4];
    Message message(*codec, format, Gaussian("y", n));
    const RngKey draw = key.Fold(trial);
    const bool all = trial % 5 == 0;
    const size_t changes = all ? message.bytes().size() : 1 + draw.Below(4, 0);
    for (uint64_t k = 0; k < changes; ++k) {
      const size_t at =
          all ? k : draw.Fold("at").Below(message.bytes().size(), k);
      message.bytes()[at] =
          static_cast<std::byte>(draw.Fold("to").Below(256, k));
    }
    const Encoded encoded = message.encoded();
    if (!codec->Validate(encoded).ok()) {
      ++refused;
      continue;
    }
    ++accepted;
    codec->Complete(nullptr, &encoded, 1, difference, x);
    codec->Complete(&encoded, nullptr, 1, difference, x);
    codec->Complete(&encoded, &encoded, 1, difference, x);
    ASSERT_TRUE(HostKernels().all_finite(difference));
    ASSERT_TRUE(HostKernels().all_finite(x));
  }
  EXPECT_GT(accepted, 100);
  EXPECT_GT(refused, 100);
}

TEST(HostileBytesTest, ManyLargestPayloadsCannotOverflowTheDifference) {
  const size_t n = Layout().size();
  const auto codec = Make("innov-int4");
  const std::vector<float> largest(n, kMaxMagnitude);
  for (const WireFormat format : kFormats) {
    const Message message(*codec, format, largest);
    const Encoded encoded = message.encoded();
    ASSERT_TRUE(codec->Validate(encoded).ok());
    // Where the sum stalls, after more payloads than a test can send.
    std::vector<float> difference(n, 0x1p127f), x(n);
    for (int k = 0; k < 1000; ++k) {
      codec->Complete(nullptr, &encoded, 1, difference, x);
    }
    EXPECT_TRUE(HostKernels().all_finite(difference));
  }
}

}  // namespace
}  // namespace gossamer
