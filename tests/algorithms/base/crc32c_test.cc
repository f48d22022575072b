// The checksum against published values, and every implementation against the
// others.

#include "algorithms/base/crc32c.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "algorithms/base/rng.h"
#include "gtest/gtest.h"

namespace gossamer {
namespace {

using Extend = uint32_t (*)(uint32_t, std::span<const std::byte>);

std::vector<Extend> Implementations() {
  std::vector<Extend> all = {ExtendCrc32c, ExtendCrc32cWithTables};
  if (HasCrc32cInstruction()) all.push_back(ExtendCrc32cWithInstruction);
  return all;
}

std::vector<std::byte> Bytes(size_t n, uint64_t seed) {
  std::vector<std::byte> bytes(n);
  for (size_t i = 0; i < n; ++i) {
    bytes[i] = static_cast<std::byte>(RngKey(seed).Bits(i));
  }
  return bytes;
}

// Values of RFC 3720, appendix B.4, and the check value of the CRC catalogue.
TEST(Crc32cTest, KnownAnswers) {
  std::vector<std::byte> up(32);
  std::vector<std::byte> down(32);
  for (size_t i = 0; i < 32; ++i) {
    up[i] = static_cast<std::byte>(i);
    down[i] = static_cast<std::byte>(31 - i);
  }
  for (Extend extend : Implementations()) {
    EXPECT_EQ(extend(0, {}), 0u);
    EXPECT_EQ(extend(0, std::vector<std::byte>(32, std::byte{0})), 0x8a9136aau);
    EXPECT_EQ(extend(0, std::vector<std::byte>(32, std::byte{0xff})),
              0x62a8ab43u);
    EXPECT_EQ(extend(0, up), 0x46dd794eu);
    EXPECT_EQ(extend(0, down), 0x113fdb5cu);
    EXPECT_EQ(
        extend(0, std::as_bytes(std::span(std::string_view("123456789")))),
        0xe3069283u);
  }
}

TEST(Crc32cTest, ImplementationsAgreeAtEveryLengthAndAlignment) {
  const std::vector<std::byte> bytes = Bytes(10'000, 1);
  for (size_t n = 0; n < bytes.size(); n += n < 100 ? 1 : 61) {
    const auto part = std::span(bytes).subspan(n % 9, n - n % 9);
    const uint32_t expected = ExtendCrc32cWithTables(7, part);
    for (Extend extend : Implementations()) {
      ASSERT_EQ(extend(7, part), expected) << "length " << part.size();
    }
  }
}

TEST(Crc32cTest, ExtendsOverAnySplit) {
  const std::vector<std::byte> bytes = Bytes(7000, 2);
  for (size_t split : {0u, 1u, 8u, 1024u, 3072u, 3073u, 6999u, 7000u}) {
    const auto head = std::span(bytes).first(split);
    const auto tail = std::span(bytes).subspan(split);
    EXPECT_EQ(ExtendCrc32c(Crc32c(head), tail), Crc32c(bytes)) << split;
  }
}

TEST(Crc32cTest, EveryFlippedBitShows) {
  std::vector<std::byte> bytes = Bytes(100, 3);
  const uint32_t crc = Crc32c(bytes);
  for (size_t bit = 0; bit < 800; ++bit) {
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_NE(Crc32c(bytes), crc) << bit;
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
  }
}

}  // namespace
}  // namespace gossamer
