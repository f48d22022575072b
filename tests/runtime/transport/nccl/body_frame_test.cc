#include "runtime/transport/nccl/body_frame.h"

#include <algorithm>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/transport/nccl/nccl_api.h"

namespace gossamer {
namespace body_frame_test {

SharedBytes Bytes(size_t n) {
  return SharedBytes::FromVector(std::vector<std::byte>(n, std::byte{7}));
}

BodyFrame Sample() {
  return {.kind = BodyKind::kOffer,
          .channel = Channel::kEdge,
          .size = 4'000'000'000,
          .key = ~uint64_t{0},
          .exchange = uint64_t{9} << 8 | 1,
          .ack = uint64_t{8} << 8,
          .rest = Bytes(64)};
}

absl::StatusOr<BodyFrame> Decoded(const BodyFrame& frame) {
  return DecodeBodyFrame(SharedBytes::FromVector(EncodeBodyFrame(frame)));
}

TEST(BodyFrameTest, KeepsEverything) {
  const auto back = Decoded(Sample());
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->kind, Sample().kind);
  EXPECT_EQ(back->channel, Sample().channel);
  EXPECT_EQ(back->size, Sample().size);
  EXPECT_EQ(back->key, Sample().key);
  EXPECT_EQ(back->exchange, Sample().exchange);
  EXPECT_EQ(back->ack, Sample().ack);
  EXPECT_TRUE(std::ranges::equal(back->rest.bytes(), Sample().rest.bytes()));
}

TEST(BodyFrameTest, RefusesWhatIsNone) {
  for (size_t n = 0; n < kBodyFrameBytes; ++n) {
    EXPECT_FALSE(DecodeBodyFrame(Bytes(n)).ok()) << n;
  }
  BodyFrame frame = Sample();
  frame.kind = static_cast<BodyKind>(0);
  EXPECT_FALSE(Decoded(frame).ok());
  frame.kind = static_cast<BodyKind>(7);
  EXPECT_FALSE(Decoded(frame).ok());
  frame = Sample();
  frame.size = 0;
  EXPECT_FALSE(Decoded(frame).ok());
  frame = Sample();
  frame.exchange = 0;
  EXPECT_FALSE(Decoded(frame).ok());
  frame = Sample();
  frame.channel = Channel::kState;
  EXPECT_FALSE(Decoded(frame).ok());
  frame = {.kind = BodyKind::kId, .rest = Bytes(NcclUniqueId().size() - 1)};
  EXPECT_FALSE(Decoded(frame).ok());
  frame.rest = Bytes(NcclUniqueId().size());
  EXPECT_TRUE(Decoded(frame).ok());
}

}  // namespace body_frame_test
}  // namespace gossamer
