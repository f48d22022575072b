// Frames that no honest end sends are refused, and change nothing.

#include <cstdint>
#include <functional>
#include <limits>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/edge/edge.h"
#include "gtest/gtest.h"
#include "tests/algorithms/edge/edge_pair.h"
#include "tests/algorithms/edge/edge_testing.h"

namespace gossamer {
namespace edge_violation_test {

// A change of an honest header that makes it a violation.
struct Violation {
  std::string name;
  std::function<void(EdgeHeader&)> change;
  friend std::ostream& operator<<(std::ostream& os, const Violation& v) {
    return os << v.name;
  }
};

class ViolationTest : public testing::TestWithParam<Violation> {};

TEST_P(ViolationTest, IsRefusedAndLeavesTheStateUntouched) {
  EdgePair pair = MakePair("innov-int4", 2);
  pair.Connect(1);
  pair.Mix(MakeExchangeId(1), kC);
  pair.edge[1]->Emit(MakeExchangeId(2), kC, true);
  const Edge::OutFrame frame = PayloadFrame(pair, MakeExchangeId(2));
  EdgeHeader h = HeaderOf(frame);
  GetParam().change(h);
  const std::string before = StateOf(*pair.edge[1]);
  const auto x = pair.x[1];
  const absl::Status status =
      pair.edge[1]->OnFrame(1, EncodeHeader(h), frame.body);
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(StateOf(*pair.edge[1]), before);
  EXPECT_EQ(pair.x[1], x);
  // The honest frame still counts afterwards.
  EXPECT_TRUE(pair.edge[1]->OnFrame(1, frame.head, frame.body).ok());
  EXPECT_NE(StateOf(*pair.edge[1]), before);
}

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

INSTANTIATE_TEST_SUITE_P(
    Edge, ViolationTest,
    testing::Values(
        Violation{"AckAboveWhatWasDecided",
                  [](auto& h) { h.ack = MakeExchangeId(2) + 2; }},
        Violation{"NothingDecided", [](auto& h) { h.to = h.prev; }},
        Violation{"PrevAboveTo", [](auto& h) { h.prev = h.to + 1; }},
        Violation{"UnknownFormat",
                  [](auto& h) {
                    h.format = static_cast<WireFormat>(kLastWireFormat + 1);
                  }},
        Violation{"FormatThatIsGone",
                  [](auto& h) { h.format = static_cast<WireFormat>(8); }},
        Violation{"ReservedBitsOfTheFormat",
                  [](auto& h) {
                    h.format = static_cast<WireFormat>(
                        static_cast<uint8_t>(h.format) | 0x60);
                  }},
        Violation{"FormatOfAnotherSize",
                  [](auto& h) { h.format = WireFormat::kInt8; }},
        Violation{"PayloadOfAnotherLength", [](auto& h) { --h.payload_bytes; }},
        Violation{"NoCoefficient", [](auto& h) { h.c = 0; }},
        Violation{"NegativeCoefficient", [](auto& h) { h.c = -0.5f; }},
        Violation{"LargeCoefficient", [](auto& h) { h.c = 1.5f; }},
        Violation{"NanCoefficient", [](auto& h) { h.c = kNan; }},
        Violation{"ExchangeZero", [](auto& h) { h.prev = 0, h.to = 1; }},
        Violation{"SkipWithPayload",
                  [](auto& h) { h.kind = FrameKind::kSkip; }},
        Violation{"HelloWithPayload",
                  [](auto& h) {
                    h.kind = FrameKind::kHello;
                    h.run_id = "run";
                    h.replica = true;
                  }},
        Violation{"ImpossibleId",
                  [](auto& h) { h.to = (uint64_t{1} << 62) + 1; }},
        Violation{"ImpossibleEpoch", [](auto& h) { h.epoch = kMaxEpoch; }},
        Violation{"EpochZero", [](auto& h) { h.epoch = 0; }},
        Violation{"AnotherLayout", [](auto& h) { h.layout ^= 1; }}),
    [](const testing::TestParamInfo<Violation>& info) {
      return info.param.name;
    });

TEST(EdgeViolationTest, MorePayloadsThanTheWindowAllowsAreRefused) {
  EdgePair pair = MakePair("diff-int8");
  pair.Connect(1);
  const Edge::OutFrame frame = PayloadFrame(pair, MakeExchangeId(1));
  EdgeHeader h = HeaderOf(frame);
  absl::Status status;
  std::string before;
  int accepted = -1;
  do {
    ++accepted;
    before = StateOf(*pair.edge[1]);
    status = pair.edge[1]->OnFrame(1, EncodeHeader(h), frame.body);
    h.prev = h.to - 1;
    h.to += 1;
  } while (status.ok() && accepted < 100);
  EXPECT_EQ(accepted, 2);  // the limit is 2W
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(StateOf(*pair.edge[1]), before);
}

TEST(EdgeViolationTest, GapsDuplicatesAndOtherIncarnationsAreDropped) {
  EdgePair pair = MakePair("diff-int8", 2);
  pair.Connect(1);
  const Edge::OutFrame first = PayloadFrame(pair, MakeExchangeId(1));
  const Edge::OutFrame second = PayloadFrame(pair, MakeExchangeId(2));
  Edge& edge = *pair.edge[1];
  std::string before = StateOf(edge);
  EXPECT_TRUE(edge.OnFrame(1, second.head, second.body).ok());
  EXPECT_EQ(StateOf(edge), before) << "a gap";
  EXPECT_TRUE(edge.OnFrame(1, first.head, first.body).ok());
  EXPECT_TRUE(edge.OnFrame(1, second.head, second.body).ok());
  EXPECT_EQ(edge.received(), MakeExchangeId(2) + 1);
  before = StateOf(edge);
  EXPECT_TRUE(edge.OnFrame(1, first.head, first.body).ok());
  EXPECT_EQ(StateOf(edge), before) << "a duplicate";
  EdgeHeader other = HeaderOf(second);
  other.prev = other.to - 1;
  other.to += 1;
  other.epoch -= 1;
  EXPECT_TRUE(edge.OnFrame(1, EncodeHeader(other), second.body).ok());
  EXPECT_EQ(StateOf(edge), before) << "another incarnation";
}

TEST(EdgeViolationTest, NoByteOfAFrameCanBeFlippedUnnoticed) {
  EdgePair pair = MakePair("diff-int8");
  pair.Connect(1);
  const Edge::OutFrame frame = PayloadFrame(pair, MakeExchangeId(1));
  const std::string before = StateOf(*pair.edge[1]);
  for (size_t i = 0; i < frame.head.size(); ++i) {
    auto head = frame.head;
    head[i] ^= std::byte{0x10};
    EXPECT_FALSE(pair.edge[1]->OnFrame(1, head, frame.body).ok()) << i;
    EXPECT_EQ(StateOf(*pair.edge[1]), before);
  }
}

TEST(EdgeViolationTest,
     AHelloThatRemembersALaterIncarnationRaisesTheEpochOncePerConnection) {
  EdgePair pair = MakePair("innov-int4");
  pair.Connect(1);
  pair.Mix(MakeExchangeId(1), kC);
  Edge& edge = *pair.edge[1];
  EdgeHeader h = HelloOf(*pair.edge[0]);
  h.peer_epoch = edge.state().epoch + 3 * kEpochLevel;
  EXPECT_TRUE(edge.OnFrame(1, EncodeHeader(h), {}).ok());
  const uint64_t risen = edge.state().epoch;
  EXPECT_GT(risen, h.peer_epoch);
  const std::string before = StateOf(edge);
  h.peer_epoch = risen + 1;
  EXPECT_EQ(edge.OnFrame(1, EncodeHeader(h), {}).code(),
            absl::StatusCode::kDataLoss);
  EXPECT_EQ(StateOf(edge), before);
  edge.ConnectionDown(1);
  edge.ConnectionUp(2);
  EXPECT_TRUE(edge.OnFrame(2, EncodeHeader(h), {}).ok());
  EXPECT_GT(edge.state().epoch, h.peer_epoch);
}

TEST(EdgeViolationTest, NoHelloRaisesTheEpochBeyondWhatAnotherEndAccepts) {
  for (const uint64_t below : {uint64_t{1}, kEpochLevel, 2 * kEpochLevel}) {
    EdgePair pair = MakePair("innov-int4");
    pair.Connect(1);
    EdgeHeader h = HelloOf(*pair.edge[0]);
    h.peer_epoch = kMaxEpoch - below;
    const bool accepted = pair.edge[1]->OnFrame(1, EncodeHeader(h), {}).ok();
    EXPECT_EQ(accepted, below == 2 * kEpochLevel);
    // The ends agree on the next connection, whatever the refused frame did.
    pair.Disconnect();
    pair.Connect(2);
    pair.Mix(MakeExchangeId(1), kC);
    EXPECT_EQ(pair.edge[0]->corrections(), 1u);
    EXPECT_EQ(pair.edge[1]->corrections(), 1u);
  }
}

}  // namespace edge_violation_test
}  // namespace gossamer
