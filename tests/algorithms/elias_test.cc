// Elias's codes, and how long QSGD's levels are in them.

#include "algorithms/codec/elias.h"

#include <cmath>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/base/rng.h"
#include "tests/algorithms/codec_testing.h"

namespace gossamer {
namespace {

std::string BitsOf(BitCode code) {
  std::string bits;
  for (uint32_t i = code.length; i-- > 0;) {
    bits += code.bits >> i & 1 ? '1' : '0';
  }
  return bits;
}

// The tables of Elias's paper.
TEST(EliasTest, CodesAreThoseOfThePaper) {
  const auto gamma = [](uint64_t k) {
    return BitsOf(EliasCode(Elias::kGamma, k));
  };
  const auto omega = [](uint64_t k) {
    return BitsOf(EliasCode(Elias::kOmega, k));
  };
  EXPECT_EQ(gamma(1), "1");
  EXPECT_EQ(gamma(2), "010");
  EXPECT_EQ(gamma(3), "011");
  EXPECT_EQ(gamma(8), "0001000");
  EXPECT_EQ(gamma(17), "000010001");
  EXPECT_EQ(omega(1), "0");
  EXPECT_EQ(omega(2), "100");
  EXPECT_EQ(omega(3), "110");
  EXPECT_EQ(omega(4), "101000");
  EXPECT_EQ(omega(7), "101110");
  EXPECT_EQ(omega(8), "1110000");
  EXPECT_EQ(omega(16), "10100100000");
  EXPECT_EQ(omega(32), "101011000000");
}

TEST(EliasTest, NumbersComeBackAndNothingAfterThem) {
  const RngKey key(1);
  for (const Elias code : {Elias::kGamma, Elias::kOmega}) {
    std::vector<uint64_t> numbers;
    for (uint64_t i = 0; i < 4000; ++i) {
      numbers.push_back(1 + (key.Bits(i) >> (32 + key.Fold("w").Below(32, i))));
      if (numbers.back() >> 32 != 0) numbers.back() = 0xffffffffu;
    }
    Bytes bytes(32000);
    BitWriter writer(bytes);
    for (const uint64_t k : numbers) writer.Put(EliasCode(code, k));
    bytes.resize(writer.Finish());
    BitReader reader(bytes);
    for (const uint64_t k : numbers) ASSERT_EQ(reader.Number(code), k);
    EXPECT_TRUE(reader.finished());
    reader.Number(code);
    EXPECT_FALSE(reader.ok());
    EXPECT_FALSE(reader.finished());
  }
}

// Lemma 3.1 (iii) and theorem 3.2 of the QSGD paper, of a bucket of n with s
// levels of its Euclidean norm, s² + √n·s well below n: at most s(s + √n)
// values that are not 0 and (3 + (3/2 + o(1)) log2(2(s² + n)/(s(s + √n))))·s(s
// + √n) bits and a norm.  Here o(1) is taken as 0.
TEST(EliasTest, ExpectedLengthIsWithinTheBoundOfThePaper) {
  for (const size_t n : {512, 4096, 16384}) {
    const ParameterLayout layout(
        {{"g", Player::kGenerator, {4, static_cast<int64_t>(n)}, {}}});
    const auto vectors = Vectors(layout.size());
    for (const int s : {1, 7}) {
      if (s * (s + std::sqrt(n)) > 0.1 * static_cast<double>(n)) continue;
      for (const char* const coding : {"gamma", "omega"}) {
        const auto codec =
            Make("qsgd:norm=l2,levels=" + std::to_string(s) +
                     ",bucket=" + std::to_string(n) + ",coding=" + coding,
                 layout);
        const auto packer = codec->MakePacker();
        for (const auto& x : vectors) {
          double bits = 0, nonzero = 0;
          constexpr int kDraws = 8;
          for (int draw = 0; draw < kDraws; ++draw) {
            const Message message(*codec, codec->format(), x, {}, draw);
            const Bytes packed = Packed(*packer, message.encoded());
            ASSERT_FALSE(packed.empty());
            bits += 8.0 * static_cast<double>(packed.size()) / 4 / kDraws;
            for (const float v : Decoded(*codec, message, x.size())) {
              nonzero += (v != 0) / 4.0 / kDraws;
            }
          }
          const double kept = s * (s + std::sqrt(n));
          // Five standard errors of a sum of rare events.
          EXPECT_LE(nonzero, kept + 5 * std::sqrt(kept / (4 * kDraws)));
          EXPECT_LE(bits,
                    (3 + 1.5 * std::log2(2 * (s * s + n) / kept)) * kept + 32)
              << n << " " << s << " " << coding;
        }
      }
    }
  }
}

// Of a bucket whose norm is √n levels a level has the mean 1 at most, so by
// Jensen's inequality gamma's 1 + 2 log2(1 + level) has 3, and a sign is one.
TEST(EliasTest, DenseCodesTakeAtMostFourBitsAValueWithAsManyLevelsAsTheRoot) {
  const ParameterLayout layout({{"g", Player::kGenerator, {4, 16128}, {}}});
  const auto codec =
      Make("qsgd:levels=127,bucket=16128,norm=l2,coding=gamma", layout);
  const auto packer = codec->MakePacker();
  for (const auto& x : Vectors(layout.size())) {
    const Message message(*codec, codec->format(), x);
    const Bytes packed = Packed(*packer, message.encoded());
    ASSERT_FALSE(packed.empty());
    EXPECT_LE(8.0 * static_cast<double>(packed.size()),
              4.0 * static_cast<double>(x.size()) + 16 * 4 + 8);
  }
}

}  // namespace
}  // namespace gossamer
