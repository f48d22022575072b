// Payloads that travel in fewer bytes: what is packed comes back to the bit, in
// no more bits than the literature says, and bytes from outside are refused or
// harmless.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "algorithms/base/rng.h"
#include "algorithms/compress/elias.h"
#include "algorithms/compress/packer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/algorithms/compress/codec_testing.h"
#include "tests/algorithms/golden_file.h"

namespace gossamer {
namespace {

constexpr const char* kPacked[] = {
    "qsgd:coding=gamma",
    "qsgd:coding=omega",
    "qsgd:levels=1,coding=gamma",
    "qsgd:levels=1,bucket=128,coding=omega",
    "qsgd:levels=1,norm=l2,coding=gamma",
    "qsgd:levels=1,norm=l2,coding=omega",
    "qsgd:norm=l2,coding=gamma",
    "qsgd:levels=127,bucket=16128,norm=l2,coding=gamma",
    "qsgd:levels=127,coding=omega",
    "innov-int4:zstd=1",
    "diff-int8:zstd=9",
    "qsgd:levels=1,zstd=3",
};

TEST(CodecPackingTest, WhatIsPackedComesBackToTheBitAndIsShorter) {
  int packed_ones = 0;
  for (const char* const name : kPacked) {
    const auto codec = Make(name);
    const auto packer = codec->MakePacker();
    ASSERT_NE(packer, nullptr);
    const size_t size = codec->EncodedSize(codec->format());
    for (const auto& x : Vectors(Layout().size())) {
      for (uint64_t key = 0; key < 3; ++key) {
        const Message message(*codec, codec->format(), x, {}, key);
        const Encoded payload = message.encoded();
        const Bytes packed = Packed(*packer, payload);
        if (packed.empty()) continue;
        ++packed_ones;
        ASSERT_LT(packed.size(), size);
        Bytes back(size, std::byte{0x5a});
        ASSERT_TRUE(packer->Unpack(codec->format(), packed, back)) << name;
        ASSERT_TRUE(std::ranges::equal(back, payload.bytes)) << name;
        EXPECT_TRUE(codec->Validate({codec->format(), back}).ok());
      }
    }
  }
  EXPECT_GT(packed_ones, 100);
}

TEST(CodecPackingTest, OnlyWhatBecomesShorterIsPacked) {
  const size_t n = Layout().size();
  // Levels up to 127 of a Gaussian's largest: too many for a universal code.
  const auto codec = Make("qsgd:levels=127,coding=gamma");
  const auto packer = codec->MakePacker();
  const Message message(*codec, codec->format(), Gaussian("x", n));
  EXPECT_TRUE(Packed(*packer, message.encoded()).empty());
  // Nor has zstd anything to gain from signs of a Gaussian.
  const auto sign = Make("innov-sign:zstd=1");
  const Message signs(*sign, WireFormat::kSign, Gaussian("x", n));
  const Bytes made = Packed(*sign->MakePacker(), signs.encoded());
  EXPECT_TRUE(made.empty() || made.size() < signs.encoded().bytes.size());
  // Other formats are not Elias's business.
  const Message dense(*codec, WireFormat::kInt8, std::vector<float>(n));
  EXPECT_TRUE(Packed(*packer, dense.encoded()).empty());
  EXPECT_EQ(Make("qsgd")->MakePacker(), nullptr);
  EXPECT_EQ(Make("qsgd:coding=fixed")->packing(), Packing::kNone);
  const auto empty = Make("qsgd:coding=gamma", ParameterLayout());
  EXPECT_TRUE(Packed(*empty->MakePacker(), {empty->format(), {}}).empty());
}

// Between two margins that must stay as they are.
struct Guarded {
  static constexpr size_t kMargin = 64;
  explicit Guarded(size_t size) : all(size + 2 * kMargin, std::byte{0x77}) {}
  std::span<std::byte> bytes() {
    return std::span(all).subspan(kMargin, all.size() - 2 * kMargin);
  }
  bool Whole() const {
    const auto same = [](std::byte b) { return b == std::byte{0x77}; };
    return std::ranges::all_of(std::span(all).first(kMargin), same) &&
           std::ranges::all_of(std::span(all).last(kMargin), same);
  }
  Bytes all;
};

TEST(CodecPackingTest, PartsAndBytesTooManyAreRefused) {
  for (const char* const name : kPacked) {
    const auto codec = Make(name);
    const auto packer = codec->MakePacker();
    for (const auto& x : Vectors(Layout().size())) {
      const Message message(*codec, codec->format(), x);
      Bytes packed = Packed(*packer, message.encoded());
      if (packed.empty()) continue;
      Guarded to(message.encoded().bytes.size());
      for (size_t size = 0; size < packed.size(); size += 1 + size / 64) {
        // In memory of its own, so that a read beyond it is noticed.
        const Bytes cut(packed.begin(),
                        packed.begin() + static_cast<ptrdiff_t>(size));
        ASSERT_FALSE(packer->Unpack(codec->format(), cut, to.bytes())) << size;
      }
      const auto last = std::span(packed).first(packed.size() - 1);
      EXPECT_FALSE(packer->Unpack(codec->format(), last, to.bytes()));
      packed.push_back({});
      EXPECT_FALSE(packer->Unpack(codec->format(), packed, to.bytes()));
      packed.pop_back();
      EXPECT_FALSE(
          packer->Unpack(codec->format(), packed, to.bytes().subspan(1)));
      EXPECT_TRUE(to.Whole());
    }
  }
}

// Bits of gamma's sparse code of levels, whose signs are those of `values`.
uint64_t SparseBits(const std::vector<float>& values, float step) {
  uint64_t bits = 1, next = 0;
  for (uint64_t i = 0; i < values.size(); ++i) {
    if (values[i] == 0) continue;
    const auto level = static_cast<uint64_t>(std::abs(values[i]) / step + 0.5);
    bits += EliasCode(Elias::kGamma, i + 1 - next).length + 1 +
            EliasCode(Elias::kGamma, level).length;
    next = i + 1;
  }
  return bits + EliasCode(Elias::kGamma, values.size() + 1 - next).length;
}

TEST(CodecPackingTest, PaddingMustBeZero) {
  const ParameterLayout layout({{"g", Player::kGenerator, {4, 512}, {}}});
  const auto codec = Make("qsgd:levels=1,norm=l2,coding=gamma", layout);
  const auto packer = codec->MakePacker();
  // One norm, so that a value is 0 or of one magnitude.
  const std::vector<float> x(layout.size(), 1.0f);
  int flipped = 0;
  for (uint64_t key = 0; key < 10; ++key) {
    const Message message(*codec, codec->format(), x, {}, key);
    Bytes packed = Packed(*packer, message.encoded());
    Bytes to(message.encoded().bytes.size());
    const auto y = Decoded(*codec, message, x.size());
    const uint64_t bits = SparseBits(y, *std::ranges::max_element(y));
    ASSERT_EQ(packed.size(), 4 * 2 + (bits + 7) / 8);
    for (uint64_t bit = 0; bit < 8 * ((bits + 7) / 8) - bits; ++bit) {
      packed.back() ^= static_cast<std::byte>(1 << bit);
      EXPECT_FALSE(packer->Unpack(codec->format(), packed, to));
      packed.back() ^= static_cast<std::byte>(1 << bit);
      ++flipped;
    }
    EXPECT_TRUE(packer->Unpack(codec->format(), packed, to));
  }
  EXPECT_GT(flipped, 10);
}

TEST(CodecPackingTest, WhateverUnpacksIsValidOrRefusedAndKeepsWhatIsFinite) {
  const size_t n = Layout().size();
  const auto vectors = Vectors(n);
  const RngKey key(6);
  int unpacked = 0, valid = 0, refused = 0;
  for (uint64_t trial = 0; trial < 2000; ++trial) {
    const auto codec = Make(kPacked[trial % std::size(kPacked)]);
    const auto packer = codec->MakePacker();
    const RngKey draw = key.Fold(trial);
    const Message message(*codec, codec->format(),
                          vectors[trial % vectors.size()]);
    Bytes bytes = Packed(*packer, message.encoded());
    if (bytes.empty() || trial % 7 == 0) {
      bytes.resize(4300 + draw.Below(1500, 0));
      for (size_t i = 0; i < bytes.size(); ++i) {
        bytes[i] = static_cast<std::byte>(draw.Fold("all").Below(256, i));
      }
    }
    for (uint64_t k = 0; k < 1 + draw.Below(3, 1); ++k) {
      bytes[draw.Fold("at").Below(bytes.size(), k)] ^=
          static_cast<std::byte>(1 << draw.Fold("bit").Below(8, k));
    }
    Guarded to(message.encoded().bytes.size());
    const bool filled = packer->Unpack(codec->format(), bytes, to.bytes());
    ASSERT_TRUE(to.Whole());
    if (!filled) {
      ++refused;
      continue;
    }
    ++unpacked;
    const Encoded payload{codec->format(), to.bytes()};
    if (!codec->Validate(payload).ok()) continue;
    ++valid;
    std::vector<float> difference(n), x(n);
    codec->Complete(nullptr, &payload, 1, difference, x);
    ASSERT_TRUE(HostKernels().all_finite(difference));
  }
  EXPECT_GT(refused, 500);
  EXPECT_GT(unpacked, 150);
  EXPECT_GT(valid, 150);
}

// A frame that says it holds far more than fits is refused before it is read,
// and a payload of zeros in a few bytes fills no more than its buffer.
TEST(CodecPackingTest, BombsOfZstdAreBoundedByTheLayout) {
  const auto codec = Make("innov-int4:zstd=1");
  const auto packer = codec->MakePacker();
  const size_t size = codec->EncodedSize(WireFormat::kInt4);
  const auto large = Make(
      "innov-int4:zstd=1",
      ParameterLayout({{"g", Player::kGenerator, {1 << 12, 1 << 12}, {}}}));
  const Bytes zeros(large->EncodedSize(WireFormat::kInt4));
  const Bytes bomb = Packed(*packer, {WireFormat::kInt4, zeros});
  ASSERT_FALSE(bomb.empty());
  EXPECT_LT(bomb.size(), 2000u);
  Guarded to(size);
  EXPECT_FALSE(packer->Unpack(WireFormat::kInt4, bomb, to.bytes()));
  EXPECT_TRUE(to.Whole());
  const Bytes small(size);
  const Bytes packed = Packed(*packer, {WireFormat::kInt4, small});
  EXPECT_TRUE(packer->Unpack(WireFormat::kInt4, packed, to.bytes()));
  EXPECT_TRUE(to.Whole());
  // Two frames, and one twice: longer than what is wanted.
  Bytes twice = packed;
  twice.insert(twice.end(), packed.begin(), packed.end());
  EXPECT_FALSE(packer->Unpack(WireFormat::kInt4, twice, to.bytes()));
  EXPECT_TRUE(to.Whole());
}

struct Golden {
  const char* file;
  const char* codec;
  bool same_bytes = true;  // else what is in the file need only unpack
};

class PackedGoldenTest : public testing::TestWithParam<Golden> {};

INSTANTIATE_TEST_SUITE_P(
    Packings, PackedGoldenTest,
    testing::Values(Golden{"gamma", "qsgd:coding=gamma"},
                    Golden{"omega", "qsgd:levels=1,coding=omega"},
                    Golden{"zstd", "innov-int4:zstd=1", false}),
    [](const auto& info) { return std::string(info.param.file); });

// As codec_golden_test.cc, of which a packed payload is the next step: written
// with GOSSAMER_WRITE_GOLDEN=1, in the root of the source tree.  What zstd
// writes is its own business, and changes with its version.
TEST_P(PackedGoldenTest, BytesAreThoseOfTheFile) {
  const auto codec = Make(GetParam().codec);
  const auto packer = codec->MakePacker();
  std::vector<float> x(Layout().size());
  const RngKey key = RngKey(2024).Fold("golden");
  // One large value in 16; exact arithmetic only.
  for (size_t i = 0; i < x.size(); ++i) {
    const auto integer = static_cast<int>(key.Below(2001, i)) - 1000;
    x[i] = std::ldexp(static_cast<float>(integer),
                      key.Fold("large").Below(16, i) == 0 ? -4 : -8);
  }
  const Message message(*codec, codec->format(), x, {}, 2);
  const Bytes bytes = Packed(*packer, message.encoded());
  ASSERT_FALSE(bytes.empty());
  const std::string kept =
      GoldenBytes(std::string("packed_") + GetParam().file, bytes);
  if (GetParam().same_bytes) {
    ASSERT_EQ(kept.size(), bytes.size());
    EXPECT_EQ(std::memcmp(kept.data(), bytes.data(), kept.size()), 0);
  }
  Bytes back(message.encoded().bytes.size());
  EXPECT_TRUE(
      packer->Unpack(codec->format(), std::as_bytes(std::span(kept)), back));
  EXPECT_TRUE(std::ranges::equal(back, message.encoded().bytes));
}

}  // namespace
}  // namespace gossamer
