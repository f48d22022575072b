// The agreement of two ends about a body: when they agree, when one declines,
// and that each body goes by one way.

#include "runtime/transport/nccl/peer_bodies.h"

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gossamer {
namespace peer_bodies_test {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint64_t kKey = 7;
constexpr absl::Duration kOfferTimeout = absl::Milliseconds(50);
constexpr absl::Duration kDeadline = absl::Seconds(1);
constexpr ConnectionId kConnection = 3;

SharedBytes Bytes(size_t size) {
  return SharedBytes::FromVector(std::vector<std::byte>(size));
}

// One end of the two, whose frames wait in `out`.
struct End {
  End(PeerId self, PeerId to)
      : options{.self = self,
                .deadline = kDeadline,
                .offer_timeout = kOfferTimeout,
                .max_body_bytes = 1000,
                .max_held_bytes = 10'000'000,
                .send =
                    [this](PeerId, Frame frame) {
                      if (connected) out.push_back(std::move(frame));
                      return connected;
                    },
                .ready = [this](uint64_t key) { return ready && key == kKey; },
                .on_agreed = [this] { ++agreed; },
                .on_declined = [this] { ++declined; }},
        other(to),
        bodies(to, &queue, &options) {
    bodies.Open(kConnection);
  }
  bool Offer(uint64_t exchange, uint64_t key = kKey) {
    return bodies.Offer(
        {.position = {exchange, 0, other}, .key = key},
        {.head = Bytes(4), .body = Bytes(100 + options.self.value)}, now);
  }
  // Takes in all that the other end has sent; returns its kinds.
  std::vector<BodyKind> Hear(End& from) {
    std::vector<BodyKind> kinds;
    while (!from.out.empty()) {
      const Frame frame = std::move(from.out.front());
      from.out.pop_front();
      BodyFrame body = *DecodeBodyFrame(frame.head);
      kinds.push_back(body.kind);
      bodies.OnAck(body.ack);
      if (body.kind == BodyKind::kOffer) {
        EXPECT_TRUE(bodies.OnOffer(kConnection, std::move(body), now).ok());
      } else if (body.kind == BodyKind::kAgree) {
        bodies.OnAgree(body.exchange, body.size);
      } else if (body.kind == BodyKind::kDecline) {
        bodies.OnDecline(body.exchange);
      } else {
        EXPECT_TRUE(bodies.held().Complete(body.exchange, frame.body).ok());
      }
    }
    return kinds;
  }
  // The size of the body of the next frame that can be given to the listener.
  std::optional<size_t> Came() {
    const auto held = bodies.held().Take(kConnection);
    if (!held) return std::nullopt;
    return held->frame.body.size();
  }

  bool connected = true;
  bool ready = true;
  int agreed = 0, declined = 0;
  absl::Time now = absl::UnixEpoch();
  std::deque<Frame> out;
  LaunchQueue queue;
  PeerBodiesOptions options;
  PeerId other;
  PeerBodies bodies;
};

// Peer 1 leads.
struct PeerBodiesTest : ::testing::Test {
  void BothHaveTheBodies() {
    EXPECT_EQ(one.Came(), 102u);
    EXPECT_EQ(two.Came(), 101u);
    EXPECT_EQ(one.queue.Next(), nullptr);
    EXPECT_EQ(two.queue.Next(), nullptr);
  }
  End one{{1}, {2}};
  End two{{2}, {1}};
};

TEST_F(PeerBodiesTest, TheSmallerIdAgreesOnceBothHaveOffered) {
  ASSERT_TRUE(one.Offer(256));
  ASSERT_TRUE(two.Offer(256));
  EXPECT_THAT(two.Hear(one), ElementsAre(BodyKind::kOffer));
  EXPECT_EQ(two.agreed, 0);
  EXPECT_THAT(one.Hear(two), ElementsAre(BodyKind::kOffer));
  EXPECT_EQ(one.agreed, 1);
  EXPECT_THAT(two.Hear(one), ElementsAre(BodyKind::kAgree));
  EXPECT_EQ(two.agreed, 1);
  ASSERT_NE(one.queue.Next(), nullptr);
  ASSERT_NE(two.queue.Next(), nullptr);
  const NcclPair& a = *one.queue.Next();
  const NcclPair& b = *two.queue.Next();
  EXPECT_EQ(a.terms->name, b.terms->name);
  EXPECT_EQ(a.terms->size, b.terms->body.size());
  EXPECT_EQ(b.terms->size, a.terms->body.size());
  one.bodies.Complete(a, b.terms->body);
  two.bodies.Complete(b, a.terms->body);
  EXPECT_EQ(one.Came(), 102u);
  EXPECT_EQ(two.Came(), 101u);
}

TEST_F(PeerBodiesTest, EndsThatNameDifferentGroupsUseTheCarrier) {
  ASSERT_TRUE(one.Offer(256));
  ASSERT_TRUE(two.Offer(256, kKey + 1));
  EXPECT_THAT(one.Hear(two), ElementsAre(BodyKind::kOffer));
  EXPECT_EQ(one.declined, 1);
  EXPECT_THAT(two.Hear(one), ElementsAre(BodyKind::kOffer, BodyKind::kDecline,
                                         BodyKind::kBody));
  EXPECT_THAT(one.Hear(two), ElementsAre(BodyKind::kBody));
  BothHaveTheBodies();
}

TEST_F(PeerBodiesTest, ACommunicatorThatIsNotReadyAtTheLeaderIsNotUsed) {
  one.ready = false;
  ASSERT_TRUE(one.Offer(256));
  ASSERT_TRUE(two.Offer(256));
  one.Hear(two);
  two.Hear(one);
  one.Hear(two);
  BothHaveTheBodies();
}

// Either end may have decided an exchange without a body for NCCL; it says so
// whether the offer comes before the decision or after it.
TEST_F(PeerBodiesTest, AnEndThatHasDecidedDeclinesAtOnce) {
  ASSERT_TRUE(one.Offer(256));
  two.bodies.Decide(256 + 1);
  EXPECT_THAT(two.out, IsEmpty());
  two.Hear(one);
  EXPECT_THAT(one.Hear(two), ElementsAre(BodyKind::kDecline));
  EXPECT_THAT(two.Hear(one), ElementsAre(BodyKind::kBody));
  EXPECT_EQ(two.Came(), 101u);
  EXPECT_FALSE(two.bodies.MayOffer(256)) << "it would meet nobody's";

  ASSERT_TRUE(one.Offer(512));
  two.Hear(one);
  two.bodies.Decide(512);
  EXPECT_THAT(two.out, IsEmpty()) << "the exchange itself is open";
  two.bodies.Decide(512 + 1);
  EXPECT_THAT(one.Hear(two), ElementsAre(BodyKind::kDecline));
}

TEST_F(PeerBodiesTest, OnlyTheLeaderDecidesByTime) {
  ASSERT_TRUE(one.Offer(256));
  ASSERT_TRUE(two.Offer(512));
  const absl::Time unmatched_at = one.now + kOfferTimeout;
  EXPECT_EQ(one.bodies.NextPoll(), unmatched_at);
  EXPECT_EQ(two.bodies.NextPoll(), two.now + kDeadline);
  EXPECT_THAT(one.bodies.UnmatchedOffers(unmatched_at - absl::Nanoseconds(1)),
              IsEmpty());
  EXPECT_THAT(one.bodies.UnmatchedOffers(unmatched_at), ElementsAre(256));
  one.Hear(two);
  EXPECT_THAT(one.bodies.UnmatchedOffers(unmatched_at), ElementsAre(256, 512));
  EXPECT_THAT(two.bodies.UnmatchedOffers(unmatched_at), IsEmpty());
  EXPECT_THAT(one.bodies.Unanswered(one.now + 2 * kDeadline), IsEmpty());
  EXPECT_THAT(two.bodies.Unanswered(two.now + kDeadline), ElementsAre(kKey));
  one.bodies.Decline(512);
  two.Hear(one);
  EXPECT_THAT(two.bodies.Unanswered(two.now + kDeadline), IsEmpty());
}

TEST_F(PeerBodiesTest, ABodyThatDoesNotComeEndsItsConnection) {
  ASSERT_TRUE(one.Offer(256));
  two.Hear(one);
  EXPECT_THAT(two.bodies.MissingBodies(two.now + 2 * kDeadline), IsEmpty());
  const auto missing = two.bodies.MissingBodies(two.now + 3 * kDeadline);
  ASSERT_EQ(missing.size(), 1u);
  EXPECT_EQ(missing[0].connection, kConnection);
  two.bodies.Drop(kConnection);
  EXPECT_THAT(two.bodies.MissingBodies(two.now + 3 * kDeadline), IsEmpty());
}

// An end keeps a body until the other one says that it has it.
TEST_F(PeerBodiesTest, AfterAnEndOfTheCommunicatorBodiesGoByTheCarrierOnce) {
  for (const uint64_t exchange : {256, 512}) {
    ASSERT_TRUE(one.Offer(exchange));
    ASSERT_TRUE(two.Offer(exchange));
  }
  one.Hear(two);
  two.Hear(one);
  // The first pair lands, at peer 2 alone.
  two.bodies.Complete(*two.queue.Next(), Bytes(101));
  EXPECT_EQ(two.Came(), 101u);
  EXPECT_EQ(one.bodies.SendAgain(kKey + 1), 0u);
  EXPECT_EQ(one.bodies.SendAgain(kKey), 2u);
  EXPECT_EQ(two.bodies.SendAgain(kKey), 2u);
  two.Hear(one);
  one.Hear(two);
  EXPECT_EQ(two.Came(), 101u);
  EXPECT_EQ(two.Came(), std::nullopt) << "each body once";
  EXPECT_EQ(one.Came(), 102u);
  EXPECT_EQ(one.Came(), 102u);
  EXPECT_EQ(one.bodies.SendAgain(kKey), 0u);
}

TEST_F(PeerBodiesTest, ABodyIsForgottenOnceTheOtherEndHasIt) {
  ASSERT_TRUE(one.Offer(256));
  ASSERT_TRUE(two.Offer(256));
  one.Hear(two);
  two.Hear(one);
  one.bodies.Complete(*one.queue.Next(), Bytes(102));
  two.bodies.Complete(*two.queue.Next(), Bytes(101));
  EXPECT_EQ(two.Came(), 101u);
  ASSERT_TRUE(two.Offer(512));  // any frame says what has come
  one.Hear(two);
  EXPECT_EQ(one.bodies.SendAgain(kKey), 0u);
  EXPECT_EQ(two.bodies.SendAgain(kKey), 2u) << "peer 1 has said nothing yet";
}

TEST_F(PeerBodiesTest, AnOfferGoesWithItsConnectionUnlessAgreedOn) {
  ASSERT_TRUE(one.Offer(256));
  ASSERT_TRUE(one.Offer(512));
  ASSERT_TRUE(two.Offer(256));
  one.Hear(two);
  one.bodies.Drop(kConnection);
  EXPECT_FALSE(one.bodies.MayOffer(768)) << "no connection is open";
  EXPECT_EQ(one.bodies.SendAgain(kKey), 0u);
  ASSERT_NE(one.queue.Next(), nullptr) << "the other end waits for the pair";
  EXPECT_EQ(one.queue.Next()->position.exchange, 256u);
  one.queue.Skip();
  EXPECT_TRUE(one.queue.MayEnter(512, 0));
  one.bodies.Open(kConnection + 1);
  EXPECT_TRUE(one.bodies.MayOffer(768));
  EXPECT_FALSE(one.bodies.MayOffer(512)) << "a body is offered once";
}

TEST_F(PeerBodiesTest, AnOfferThatCannotBeSentLeavesNothing) {
  one.connected = false;
  EXPECT_FALSE(one.Offer(256));
  EXPECT_TRUE(one.bodies.MayOffer(256));
  EXPECT_TRUE(one.queue.MayEnter(256, 0));
  EXPECT_EQ(one.bodies.NextPoll(), absl::InfiniteFuture());
}

TEST_F(PeerBodiesTest, OffersHaveBounds) {
  BodyFrame offer{.kind = BodyKind::kOffer, .size = 1001, .exchange = 256};
  EXPECT_FALSE(two.bodies.OnOffer(kConnection, offer, two.now).ok());
  EXPECT_TRUE(two.bodies.OnOffer(kConnection + 1, offer, two.now).ok())
      << "its connection has gone";
  offer.size = 1000;
  for (size_t i = 0; i < HeldFrames::kMax; ++i, ++offer.exchange) {
    ASSERT_TRUE(two.bodies.OnOffer(kConnection, offer, two.now).ok());
  }
  EXPECT_FALSE(two.bodies.OnOffer(kConnection, offer, two.now).ok());
}

}  // namespace peer_bodies_test
}  // namespace gossamer
