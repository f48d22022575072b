// Frames that wait for bodies: their order, and which body is whose.

#include "runtime/transport/nccl/held_frames.h"

#include <vector>

#include "gtest/gtest.h"

namespace gossamer {
namespace held_frames_test {

constexpr size_t kMaxBytes = 1 << 20;

SharedBytes Bytes(size_t size) {
  return SharedBytes::FromVector(std::vector<std::byte>(size));
}
Frame HeadOf(size_t size) {
  return {.head = Bytes(size), .body = SharedBytes()};
}
BodyFrame OfferOf(uint64_t exchange, uint32_t size) {
  return {.size = size, .exchange = exchange, .rest = Bytes(exchange)};
}

TEST(HeldFramesTest, FramesLeaveInTheOrderInWhichTheyCame) {
  HeldFrames held(kMaxBytes);
  held.Open(1);
  EXPECT_FALSE(held.Waits(1));
  EXPECT_TRUE(held.AddOffer(1, OfferOf(10, 100), {}));
  EXPECT_TRUE(held.Waits(1));
  held.Add(1, Channel::kState, HeadOf(3));
  EXPECT_TRUE(held.AddOffer(1, OfferOf(11, 200), {}));
  // The later body comes first.
  EXPECT_EQ(*held.Complete(11, Bytes(200)), 1u);
  EXPECT_FALSE(held.Take(1));
  EXPECT_EQ(*held.Complete(10, Bytes(100)), 1u);
  const auto first = held.Take(1), second = held.Take(1), third = held.Take(1);
  ASSERT_TRUE(first && second && third);
  EXPECT_EQ(first->frame.head.size(), 10u);
  EXPECT_EQ(first->frame.body.size(), 100u);
  EXPECT_EQ(second->channel, Channel::kState);
  EXPECT_EQ(third->exchange, 11u);
  EXPECT_FALSE(held.Waits(1));
  EXPECT_FALSE(held.Take(1));
}

TEST(HeldFramesTest, AnExchangeIsOfferedOnceOverAConnection) {
  HeldFrames held(kMaxBytes);
  held.Open(1);
  EXPECT_TRUE(held.AddOffer(1, OfferOf(10, 100), {}));
  EXPECT_FALSE(held.AddOffer(1, OfferOf(10, 100), {}));
  EXPECT_FALSE(held.AddOffer(1, OfferOf(9, 100), {}));
  held.Open(2);
  EXPECT_TRUE(held.AddOffer(2, OfferOf(10, 100), {}));
}

TEST(HeldFramesTest, ABodyByNcclIsThatOfOneConnectionAndOneAgreement) {
  HeldFrames held(kMaxBytes);
  held.Open(1);
  EXPECT_TRUE(held.AddOffer(1, OfferOf(10, 100), {}));
  held.CompleteAgreed(1, 10, Bytes(100));
  EXPECT_FALSE(held.Take(1)) << "not agreed on";
  held.Find(10)->agreed = true;
  held.CompleteAgreed(2, 10, Bytes(100));
  EXPECT_FALSE(held.Take(1)) << "agreed on over a connection that has gone";
  held.CompleteAgreed(1, 11, Bytes(100));
  EXPECT_FALSE(held.Take(1)) << "another exchange";
  held.CompleteAgreed(1, 10, Bytes(99));
  EXPECT_FALSE(held.Take(1)) << "another size";
  held.CompleteAgreed(1, 10, Bytes(100));
  EXPECT_TRUE(held.Take(1));
}

TEST(HeldFramesTest, ABodyThatIsThereAlreadyIsDropped) {
  HeldFrames held(kMaxBytes);
  held.Open(1);
  EXPECT_TRUE(held.AddOffer(1, OfferOf(10, 100), {}));
  EXPECT_FALSE(held.Complete(10, Bytes(99)).ok());
  EXPECT_TRUE(held.Complete(10, Bytes(100)).value());
  EXPECT_FALSE(held.Complete(10, Bytes(100)).value());
  EXPECT_EQ(held.Find(10), nullptr);
}

TEST(HeldFramesTest, GotIsOfTheNewestConnection) {
  HeldFrames held(kMaxBytes);
  held.Open(1);
  EXPECT_TRUE(held.AddOffer(1, OfferOf(10, 1), {}));
  EXPECT_TRUE(held.Complete(10, Bytes(1)).ok());
  EXPECT_EQ(held.ack(), 0u) << "it is still here";
  EXPECT_TRUE(held.Take(1));
  EXPECT_EQ(held.ack(), 10u);
  held.Open(2);
  EXPECT_EQ(held.ack(), 0u);
}

TEST(HeldFramesTest, FramesGoWithTheirConnectionAndHaveABound) {
  HeldFrames held(kMaxBytes);
  held.Open(1);
  held.Open(2);
  EXPECT_EQ(held.newest(), 2u);
  EXPECT_TRUE(held.AddOffer(1, OfferOf(10, 1), {}));
  for (size_t i = 1; i < HeldFrames::kMax; ++i) {
    EXPECT_FALSE(held.Full(1, 1));
    held.Add(1, Channel::kState, HeadOf(1));
  }
  EXPECT_TRUE(held.Full(1, 1));
  EXPECT_FALSE(held.Full(2, 1));
  held.Drop(1);
  EXPECT_FALSE(held.IsOpen(1));
  EXPECT_EQ(held.Find(10), nullptr);
  EXPECT_FALSE(held.Take(1));
}

TEST(HeldFramesTest, BytesThatWaitHaveABoundOffersIncluded) {
  HeldFrames held(100);
  held.Open(1);
  EXPECT_TRUE(held.AddOffer(1, OfferOf(10, 50), {}));  // and a head of ten
  EXPECT_FALSE(held.Full(1, 40));
  EXPECT_TRUE(held.Full(1, 41));
  held.Add(1, Channel::kState, HeadOf(30));
  EXPECT_TRUE(held.Full(1, 11));
  EXPECT_TRUE(held.Complete(10, Bytes(50)).value());
  EXPECT_TRUE(held.Full(1, 11)) << "the body takes what its offer did";
  EXPECT_TRUE(held.Take(1));
  EXPECT_FALSE(held.Full(1, 70));
  EXPECT_TRUE(held.Take(1));
  EXPECT_FALSE(held.Full(1, 1000)) << "nothing waits";
}

}  // namespace held_frames_test
}  // namespace gossamer
