// Elias's codes, and how long QSGD's levels are in them.

#include "algorithms/compress/elias.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "algorithms/base/rng.h"
#include "algorithms/kernels/coding.h"
#include "gtest/gtest.h"
#include "tests/algorithms/compress/qsgd_testing.h"

namespace gossamer {
namespace elias_test {

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

TEST(EliasTest, NumbersReadBackAndReadingPastThemFails) {
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

// The codes of an array of `n` values at `from`, as
// algorithms/kernels/README.md lays them out.
std::vector<int> CodesOf(size_t bits, size_t n, const std::byte* from) {
  std::vector<int> codes;
  for (size_t first = 0; first < n; first += kBlockSize) {
    const size_t here = std::min(kBlockSize, n - first);
    const size_t words = BlockWords(bits, here);
    std::vector<uint32_t> w(words);
    std::memcpy(w.data(), from, 4 * words);
    from += 4 * words;
    for (size_t k = 0; k < here; ++k) {
      if (bits == 2) {
        const auto bit = [&](size_t at) {
          return w[at + k / 32] >> k % 32 & 1;
        };
        codes.push_back(bit(words / 2) == 0 ? 0 : bit(0) != 0 ? -1 : 1);
      } else {
        const auto field =
            w[k % words] >> k / words * bits & ((1u << bits) - 1);
        codes.push_back(static_cast<int>(field) -
                        (field >> (bits - 1) != 0 ? 1 << bits : 0));
      }
    }
  }
  return codes;
}

// The shorter of the two regimes, value by value and bit by bit.
std::string ReferenceBits(Elias code, const std::vector<int>& codes) {
  const auto of = [&](size_t k) { return BitsOf(EliasCode(code, k)); };
  std::string sparse = "0", dense = "1";
  size_t next = 0;
  for (size_t k = 0; k < codes.size(); ++k) {
    const auto level = static_cast<size_t>(std::abs(codes[k]));
    const std::string sign = codes[k] < 0 ? "1" : "0";
    dense += of(level + 1) + (level == 0 ? "" : sign);
    if (level == 0) continue;
    sparse += of(k + 1 - next) + sign + of(level);
    next = k + 1;
  }
  sparse += of(codes.size() + 1 - next);
  return sparse.size() < dense.size() ? sparse : dense;
}

std::string BitsOf(std::span<const std::byte> bytes) {
  std::string bits;
  for (const std::byte b : bytes) {
    bits += BitsOf(BitCode{std::to_integer<uint64_t>(b), 8});
  }
  return bits;
}

struct Quantizer {
  const char* options;
  size_t bits;
};
constexpr Quantizer kQuantizers[] = {{"levels=1", 2},
                                     {"levels=1,norm=l2", 2},
                                     {"levels=1,bucket=128", 2},
                                     {"levels=7", 4},
                                     {"levels=7,norm=l2", 4},
                                     {"levels=127", 8},
                                     {"levels=127,norm=l2,bucket=16128", 8}};

// Tables, groups and regimes change nothing: the bits that travel are those of
// the paper, value by value.
TEST(EliasTest, APackedPayloadIsTheCodesOfItsValuesInOrder) {
  int sparse = 0, dense = 0, whole = 0;
  const auto check = [&](const Quantizer& q, Elias code, int64_t n) {
    const ParameterLayout layout({{"g", Player::kGenerator, {1, n}, {}}});
    const QsgdCoder coder = MakeQsgd(
        std::string(q.options) +
            (code == Elias::kGamma ? ",coding=gamma" : ",coding=omega"),
        layout);
    for (const auto& x : Vectors(layout.size())) {
      const Bytes payload = Coded(coder, x);
      const size_t words =
          layout.size() / kBlockSize * BlockWords(q.bits, 128) +
          BlockWords(q.bits, layout.size() % kBlockSize);
      const auto scales = std::span(payload).first(payload.size() - 4 * words);
      std::string expected = ReferenceBits(
          code, CodesOf(q.bits, layout.size(), payload.data() + scales.size()));
      const bool is_dense = expected[0] == '1';
      expected.resize((expected.size() + 7) / 8 * 8, '0');
      const Bytes packed = Packed(*coder.packer(), payload);
      if (expected.size() / 8 >= 4 * words) {
        ASSERT_TRUE(packed.empty()) << q.options << " " << n;
        ++whole;
        continue;
      }
      ASSERT_EQ(BitsOf(packed), BitsOf(scales) + expected)
          << q.options << " " << n;
      ++(is_dense ? dense : sparse);
    }
  };
  for (const Quantizer& q : kQuantizers) {
    for (const Elias code : {Elias::kGamma, Elias::kOmega}) {
      for (const int64_t n : {1024, 1027, 1100, 4095, 20000}) check(q, code, n);
    }
  }
  EXPECT_GT(sparse, 150);
  EXPECT_GT(dense, 10);
  EXPECT_GT(whole, 10);
}

// A code that does not fit makes a writer full, and the bytes behind stay as
// they are.
TEST(EliasTest, AWriterWritesNothingBeyondItsSpan) {
  for (size_t room = 0; room < 40; ++room) {
    Bytes bytes(64, std::byte{0x77});
    const std::span<std::byte> all(bytes);
    BitWriter writer(all.first(room));
    for (uint32_t i = 0; i < 40; ++i) {
      writer.Put({0, 8});
      EXPECT_EQ(writer.full(), i >= room) << room << " " << i;
    }
    EXPECT_LE(writer.Finish(), room);
    for (size_t i = room; i < bytes.size(); ++i) {
      ASSERT_EQ(bytes[i], std::byte{0x77});
    }
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
        const QsgdCoder coder =
            MakeQsgd("norm=l2,levels=" + std::to_string(s) +
                         ",bucket=" + std::to_string(n) + ",coding=" + coding,
                     layout);
        for (const auto& x : vectors) {
          double bits = 0, nonzero = 0;
          constexpr int kDraws = 8;
          for (int draw = 0; draw < kDraws; ++draw) {
            const Bytes payload = Coded(coder, x, draw);
            const Bytes packed = Packed(*coder.packer(), payload);
            ASSERT_FALSE(packed.empty());
            bits += 8.0 * static_cast<double>(packed.size()) / 4 / kDraws;
            for (const float v : Decoded(coder, payload, x.size())) {
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
TEST(EliasTest, DenseCodesTakeAtMostFourBitsAValue) {
  const ParameterLayout layout({{"g", Player::kGenerator, {4, 16128}, {}}});
  const QsgdCoder coder =
      MakeQsgd("levels=127,bucket=16128,norm=l2,coding=gamma", layout);
  double most = 0;
  for (const auto& x : Vectors(layout.size())) {
    const Bytes packed = Packed(*coder.packer(), Coded(coder, x));
    ASSERT_FALSE(packed.empty());
    const double bits = 8.0 * static_cast<double>(packed.size());
    most = std::max(most, bits / static_cast<double>(x.size()));
    EXPECT_LE(bits, 4.0 * static_cast<double>(x.size()) + 16 * 4 + 8);
  }
  RecordProperty("bits_a_value", std::to_string(most));
}

// A reader that looks ahead sees the same bits as one that has skipped to them.
TEST(BitReaderTest, LookingAheadShowsTheSameBitsAsSkippingThere) {
  std::vector<std::byte> bytes(40);
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>(RngKey(3).Below(256, i));
  }
  for (size_t from = 0; from < 8 * bytes.size() + 9; ++from) {
    BitReader reader(bytes);
    reader.Skip(from);
    const BitReader::Ahead ahead = reader.LookAhead();
    for (size_t used = from % 8; used < 64; ++used) {
      BitReader there(bytes);
      there.Skip(from - from % 8 + used);
      ASSERT_EQ(ahead.After(used) >> 7, there.Peek() >> 7) << from << used;
    }
  }
}

}  // namespace elias_test
}  // namespace gossamer
