// Headers of frames come back as they were, and a damaged or foreign one is
// refused.

#include "algorithms/edge/frame.h"

#include <string>
#include <vector>

#include "algorithms/base/rng.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gossamer {
namespace frame_test {

using testing::AllOf;
using testing::HasSubstr;

EdgeHeader Hello() {
  EdgeHeader h;
  h.kind = FrameKind::kHello;
  h.epoch = 0x1122334455667788;
  h.peer_epoch = 0x99aabbccddeeff00;
  h.to = 77;
  h.ack = 66;
  h.basis = 0xfedcba9876543210;
  h.replica = true;
  h.window = 8;
  h.run_id = "night-run";
  return h;
}

EdgeHeader SharedBytes() {
  EdgeHeader h;
  h.kind = FrameKind::kPayload;
  h.format = WireFormat::kInt4;
  h.epoch = 5;
  h.peer_epoch = 6;
  h.prev = 0x0102030405060708;
  h.to = 0x1112131415161718;
  h.ack = 9;
  h.c = 0.375f;
  h.payload_bytes = 123456;
  h.layout = 0xdeadbeef;
  return h;
}

std::vector<EdgeHeader> OneOfEach() {
  EdgeHeader skip = SharedBytes();
  skip.kind = FrameKind::kSkip;
  skip.payload_bytes = 0;
  return {Hello(), SharedBytes(), skip};
}

TEST(FrameTest, RoundTrips) {
  for (const EdgeHeader& h : OneOfEach()) {
    const auto decoded = DecodeHeader(EncodeHeader(h));
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(decoded->kind, h.kind);
    EXPECT_EQ(decoded->format, h.format);
    EXPECT_EQ(decoded->epoch, h.epoch);
    EXPECT_EQ(decoded->peer_epoch, h.peer_epoch);
    EXPECT_EQ(decoded->prev, h.prev);
    EXPECT_EQ(decoded->to, h.to);
    EXPECT_EQ(decoded->ack, h.ack);
    EXPECT_EQ(decoded->c, h.c);
    EXPECT_EQ(decoded->payload_bytes, h.payload_bytes);
    EXPECT_EQ(decoded->layout, h.layout);
    EXPECT_EQ(decoded->basis, h.basis);
    EXPECT_EQ(decoded->replica, h.replica);
    EXPECT_EQ(decoded->window, h.window);
    EXPECT_EQ(decoded->run_id, h.run_id);
  }
}

TEST(FrameTest, KeepsRunIdsOfAnyLengthUpToTheLimit) {
  for (const size_t n : {size_t{0}, size_t{1}, kMaxRunIdBytes}) {
    EdgeHeader h = Hello();
    h.run_id = std::string(n, 'r');
    const auto decoded = DecodeHeader(EncodeHeader(h));
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(decoded->run_id, h.run_id);
  }
  EdgeHeader h = Hello();
  h.run_id = std::string(kMaxRunIdBytes + 1, 'r');
  EXPECT_EQ(DecodeHeader(EncodeHeader(h)).status().code(),
            absl::StatusCode::kDataLoss);
}

TEST(FrameTest, RefusesEveryFlippedBit) {
  for (const EdgeHeader& h : OneOfEach()) {
    const auto bytes = EncodeHeader(h);
    for (size_t i = 0; i < bytes.size() * 8; ++i) {
      auto broken = bytes;
      broken[i / 8] ^= std::byte(1 << i % 8);
      EXPECT_FALSE(DecodeHeader(broken).ok()) << "bit " << i;
    }
  }
}

TEST(FrameTest, RefusesReservedBitsOfTheFormat) {
  for (EdgeHeader h : OneOfEach()) {
    for (const int bits : {0x20, 0x40, 0x80, 0xe0}) {
      EdgeHeader other = h;
      other.format = static_cast<WireFormat>(static_cast<int>(h.format) | bits);
      const absl::Status refused = DecodeHeader(EncodeHeader(other)).status();
      EXPECT_EQ(refused.code(), absl::StatusCode::kDataLoss);
      EXPECT_THAT(std::string(refused.message()), HasSubstr("reserved bits"));
    }
  }
}

TEST(FrameTest, RefusesEveryOtherLength) {
  for (const EdgeHeader& h : OneOfEach()) {
    auto bytes = EncodeHeader(h);
    for (size_t n = 0; n < bytes.size(); ++n) {
      EXPECT_EQ(DecodeHeader(std::span(bytes).first(n)).status().code(),
                absl::StatusCode::kDataLoss)
          << n;
    }
    bytes.push_back(std::byte{0});
    EXPECT_EQ(DecodeHeader(bytes).status().code(), absl::StatusCode::kDataLoss);
  }
}

TEST(FrameTest, RefusesNoise) {
  const RngKey key(9);
  for (uint64_t i = 0; i < 2000; ++i) {
    std::vector<std::byte> bytes(key.Fold(i).Below(200, 0));
    for (size_t k = 0; k < bytes.size(); ++k) {
      bytes[k] = static_cast<std::byte>(key.Fold(i).Bits(k + 1));
    }
    EXPECT_FALSE(DecodeHeader(bytes).ok());
  }
}

TEST(FrameTest, NamesBothVersions) {
  auto bytes = EncodeHeader(SharedBytes());
  bytes[4] = std::byte{7};
  const absl::Status status = DecodeHeader(bytes).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("7 there"), HasSubstr("1 here")));
}

TEST(FrameTest, FoldsBothHalvesOfAFingerprint) {
  EXPECT_NE(FoldFingerprint(0x100000000), FoldFingerprint(0));
  EXPECT_NE(FoldFingerprint(1), FoldFingerprint(0));
}

}  // namespace frame_test
}  // namespace gossamer
