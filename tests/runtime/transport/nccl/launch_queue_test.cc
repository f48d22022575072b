// The order of pairs at one peer: which may enter, which is next, and what
// becomes of a pair that is agreed on.

#include "runtime/transport/nccl/launch_queue.h"

#include "gtest/gtest.h"

namespace gossamer {
namespace launch_queue_test {

constexpr uint64_t kKey = 7, kOtherKey = 8;

NcclPair PairOf(uint64_t exchange, int colour, uint64_t peer,
                uint64_t key = kKey) {
  return {.position = {exchange, colour, {peer}}, .key = key};
}

TEST(LaunchQueueTest, TheOrderIsExchangeThenMatching) {
  LaunchQueue queue;
  queue.Enter(PairOf(2, 0, 2));
  queue.Enter(PairOf(1, 1, 3));
  queue.Enter(PairOf(1, 0, 4));
  for (const uint64_t peer : {2, 3, 4}) {
    EXPECT_TRUE(queue.Agree({peer}, peer == 2 ? 2 : 1, {}));
  }
  for (const uint64_t peer : {4, 3, 2}) {
    ASSERT_NE(queue.Next(), nullptr);
    EXPECT_EQ(queue.Next()->position.peer, PeerId{peer});
    queue.Begin();
    EXPECT_EQ(queue.Next(), nullptr) << "one at a time";
    EXPECT_EQ(queue.Finish().position.peer, PeerId{peer});
  }
  EXPECT_EQ(queue.Next(), nullptr);
}

// Its other end may be at an earlier pair of this peer's, too.
TEST(LaunchQueueTest, APairWaitsForAnEarlierOneThatIsNotAgreedOn) {
  LaunchQueue queue;
  queue.Enter(PairOf(1, 0, 2));
  queue.Enter(PairOf(1, 1, 3));
  EXPECT_TRUE(queue.Agree({3}, 1, {}));
  EXPECT_EQ(queue.Next(), nullptr);
  queue.Withdraw({2}, 1);
  ASSERT_NE(queue.Next(), nullptr);
  EXPECT_EQ(queue.Next()->position.peer, PeerId{3});
}

TEST(LaunchQueueTest, AMeetingComesAfterThePairsThatHaveEntered) {
  LaunchQueue queue;
  queue.Enter(PairOf(1, 0, 2));
  queue.EnterMeeting(kOtherKey);
  EXPECT_TRUE(queue.Expects({5}, kOtherKey));
  EXPECT_FALSE(queue.MayEnter(2, 0)) << "no pair comes between";
  EXPECT_TRUE(queue.Agree({2}, 1, {}));
  queue.Begin();
  EXPECT_EQ(queue.Meeting(), std::nullopt);
  queue.Finish();
  EXPECT_EQ(queue.Meeting(), kOtherKey);
  EXPECT_FALSE(queue.MayEnter(2, 0)) << "it may be under way";
  queue.FinishMeeting();
  EXPECT_TRUE(queue.MayEnter(2, 0));
  queue.EnterMeeting(kKey);
  queue.Drop(kOtherKey);
  EXPECT_EQ(queue.Meeting(), kKey);
  queue.Drop(kKey);
  EXPECT_EQ(queue.Meeting(), std::nullopt);
}

TEST(LaunchQueueTest, NoPairEntersBeforeTheOneUnderWayOrBesideAnother) {
  LaunchQueue queue;
  queue.Enter(PairOf(5, 1, 2));
  EXPECT_FALSE(queue.MayEnter(5, 1)) << "two pairs of one matching";
  EXPECT_TRUE(queue.MayEnter(4, 0)) << "nothing is under way";
  EXPECT_TRUE(queue.Agree({2}, 5, {}));
  queue.Begin();
  EXPECT_FALSE(queue.MayEnter(4, 3));
  EXPECT_FALSE(queue.MayEnter(5, 0));
  EXPECT_FALSE(queue.MayEnter(5, 1));
  EXPECT_TRUE(queue.MayEnter(5, 2));
  EXPECT_TRUE(queue.MayEnter(6, 0));
  queue.Finish();
  EXPECT_TRUE(queue.MayEnter(4, 3));
}

TEST(LaunchQueueTest, APairThatIsAgreedOnTakesPlace) {
  LaunchQueue queue;
  queue.Enter(PairOf(1, 0, 2));
  EXPECT_FALSE(queue.Agree({3}, 1, {})) << "no pair with that peer";
  EXPECT_FALSE(queue.Agree({2}, 2, {})) << "no pair of that exchange";
  EXPECT_TRUE(queue.Agree({2}, 1, {.connection = 4, .size = 9, .name = 11}));
  queue.Withdraw({2}, 1);
  EXPECT_TRUE(queue.Expects({2}, 11));
  EXPECT_FALSE(queue.Expects({3}, 11));
  EXPECT_FALSE(queue.Expects({2}, 12));
  queue.Begin();
  EXPECT_TRUE(queue.Expects({2}, 11)) << "it is under way";
  const NcclPair pair = queue.Finish();
  EXPECT_EQ(pair.terms->connection, 4u);
  EXPECT_EQ(pair.terms->size, 9u);
  EXPECT_FALSE(queue.Expects({2}, 11));
}

TEST(LaunchQueueTest, PairsGoWithTheirCommunicator) {
  LaunchQueue queue;
  queue.Enter(PairOf(1, 0, 2));
  queue.Enter(PairOf(2, 0, 2, kOtherKey));
  queue.Enter(PairOf(3, 0, 2));
  EXPECT_TRUE(queue.Agree({2}, 1, {}));
  EXPECT_TRUE(queue.Agree({2}, 2, {}));
  queue.Begin();
  ASSERT_NE(queue.under_way(), nullptr);
  queue.Drop(kKey);
  EXPECT_EQ(queue.under_way(), nullptr);
  ASSERT_NE(queue.Next(), nullptr);
  EXPECT_EQ(queue.Next()->key, kOtherKey);
  queue.Skip();
  EXPECT_TRUE(queue.MayEnter(1, 0));
  EXPECT_TRUE(queue.MayEnter(2, 0));
  EXPECT_TRUE(queue.MayEnter(3, 0));
}

}  // namespace launch_queue_test
}  // namespace gossamer
