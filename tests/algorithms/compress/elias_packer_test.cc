// Payloads of QSGD that travel in fewer bytes: a packed one unpacks to the bit,
// and bytes from outside are refused or harmless.

#include "algorithms/compress/elias_packer.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <vector>

#include "algorithms/base/rng.h"
#include "algorithms/compress/elias.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/algorithms/compress/qsgd_testing.h"

namespace gossamer {
namespace elias_packer_test {

constexpr const char* kPacked[] = {
    "coding=gamma",
    "coding=omega",
    "levels=1,coding=gamma",
    "levels=1,bucket=128,coding=omega",
    "levels=1,norm=l2,coding=gamma",
    "levels=1,norm=l2,coding=omega",
    "norm=l2,coding=gamma",
    "levels=127,bucket=16128,norm=l2,coding=gamma",
    "levels=127,coding=omega",
};

TEST(EliasPackerTest, APackedPayloadIsShorterAndUnpacksToTheBit) {
  int packed_ones = 0;
  for (const char* const options : kPacked) {
    const QsgdCoder coder = MakeQsgd(options);
    const EliasPacker& packer = *coder.packer();
    for (const auto& x : Vectors(Layout().size())) {
      for (uint64_t key = 0; key < 3; ++key) {
        const Bytes payload = Coded(coder, x, key);
        const Bytes packed = Packed(packer, payload);
        if (packed.empty()) continue;
        ++packed_ones;
        ASSERT_LT(packed.size(), payload.size());
        Bytes back(payload.size(), std::byte{0x5a});
        ASSERT_TRUE(packer.Unpack(packed, back)) << options;
        ASSERT_EQ(back, payload) << options;
        EXPECT_TRUE(coder.Validate(back).ok());
      }
    }
  }
  EXPECT_GT(packed_ones, 75);
}

TEST(EliasPackerTest, APayloadThatWouldNotShrinkIsNotPacked) {
  // Levels up to 127 of a Gaussian's largest: too many for a universal code.
  const QsgdCoder coder = MakeQsgd("levels=127,coding=gamma");
  const Bytes payload = Coded(coder, Gaussian("x", Layout().size()));
  EXPECT_TRUE(Packed(*coder.packer(), payload).empty());
  EXPECT_EQ(MakeQsgd("").packer(), nullptr);
  EXPECT_EQ(MakeQsgd("coding=fixed").packer(), nullptr);
  const QsgdCoder empty = MakeQsgd("coding=gamma", ParameterLayout());
  EXPECT_TRUE(Packed(*empty.packer(), {}).empty());
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

TEST(EliasPackerTest, APackedPayloadCutShortOrTooLongIsRefused) {
  for (const char* const options : kPacked) {
    const QsgdCoder coder = MakeQsgd(options);
    const EliasPacker& packer = *coder.packer();
    for (const auto& x : Vectors(Layout().size())) {
      Bytes packed = Packed(packer, Coded(coder, x));
      if (packed.empty()) continue;
      Guarded to(coder.size());
      for (size_t size = 0; size < packed.size(); size += 1 + size / 64) {
        // In memory of its own, so that a read beyond it is noticed.
        const Bytes cut(packed.begin(),
                        packed.begin() + static_cast<ptrdiff_t>(size));
        ASSERT_FALSE(packer.Unpack(cut, to.bytes())) << size;
      }
      const auto last = std::span(packed).first(packed.size() - 1);
      EXPECT_FALSE(packer.Unpack(last, to.bytes()));
      packed.push_back({});
      EXPECT_FALSE(packer.Unpack(packed, to.bytes()));
      packed.pop_back();
      EXPECT_FALSE(packer.Unpack(packed, to.bytes().subspan(1)));
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

TEST(EliasPackerTest, PaddingMustBeZero) {
  const ParameterLayout layout({{"g", Player::kGenerator, {4, 512}, {}}});
  const QsgdCoder coder = MakeQsgd("levels=1,norm=l2,coding=gamma", layout);
  const EliasPacker& packer = *coder.packer();
  // One norm, so that a value is 0 or of one magnitude.
  const std::vector<float> x(layout.size(), 1.0f);
  int flipped = 0;
  for (uint64_t key = 0; key < 10; ++key) {
    const Bytes payload = Coded(coder, x, key);
    Bytes packed = Packed(packer, payload);
    Bytes to(payload.size());
    const auto y = Decoded(coder, payload, x.size());
    const uint64_t bits = SparseBits(y, *std::ranges::max_element(y));
    ASSERT_EQ(packed.size(), 4 * 2 + (bits + 7) / 8);
    for (uint64_t bit = 0; bit < 8 * ((bits + 7) / 8) - bits; ++bit) {
      packed.back() ^= static_cast<std::byte>(1 << bit);
      EXPECT_FALSE(packer.Unpack(packed, to));
      packed.back() ^= static_cast<std::byte>(1 << bit);
      ++flipped;
    }
    EXPECT_TRUE(packer.Unpack(packed, to));
  }
  EXPECT_GT(flipped, 10);
}

TEST(EliasPackerTest, DamagedBytesAreRefusedOrUnpackToFiniteValues) {
  const size_t n = Layout().size();
  const auto vectors = Vectors(n);
  const RngKey key(6);
  int unpacked = 0, valid = 0, refused = 0;
  for (uint64_t trial = 0; trial < 2000; ++trial) {
    const QsgdCoder coder = MakeQsgd(kPacked[trial % std::size(kPacked)]);
    const EliasPacker& packer = *coder.packer();
    const RngKey draw = key.Fold(trial);
    Bytes bytes = Packed(packer, Coded(coder, vectors[trial % vectors.size()]));
    if (bytes.empty() || trial % 7 == 0) {
      bytes.resize(8500 + draw.Below(1500, 0));
      for (size_t i = 0; i < bytes.size(); ++i) {
        bytes[i] = static_cast<std::byte>(draw.Fold("all").Below(256, i));
      }
    }
    for (uint64_t k = 0; k < 1 + draw.Below(3, 1); ++k) {
      bytes[draw.Fold("at").Below(bytes.size(), k)] ^=
          static_cast<std::byte>(1 << draw.Fold("bit").Below(8, k));
    }
    Guarded to(coder.size());
    const bool filled = packer.Unpack(bytes, to.bytes());
    ASSERT_TRUE(to.Whole());
    if (!filled) {
      ++refused;
      continue;
    }
    ++unpacked;
    if (!coder.Validate(to.bytes()).ok()) continue;
    ++valid;
    ASSERT_TRUE(HostKernels().all_finite(Decoded(coder, to.bytes(), n)));
  }
  EXPECT_GT(refused, 500);
  EXPECT_GT(unpacked, 150);
  EXPECT_GT(valid, 150);
}

}  // namespace elias_packer_test
}  // namespace gossamer
