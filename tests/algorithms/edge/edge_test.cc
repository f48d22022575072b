// One edge, event by event: agreement on its options, refusals, reconnection,
// and incarnations.

#include "algorithms/edge/edge.h"

#include <array>
#include <cmath>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/algorithms/edge/edge_pair.h"
#include "tests/algorithms/edge/edge_testing.h"

namespace gossamer {
namespace edge_test {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(EdgeTest, ExchangesCorrectBothEndsOppositely) {
  for (const std::string_view codec :
       {"dense-f32", "diff-int8", "innov-int4"}) {
    EdgePair pair = MakePair(codec);
    pair.Connect(1);
    const auto start = pair.x;
    for (uint64_t round = 1; round <= 60; ++round) {
      pair.Mix(MakeExchangeId(round), kC);
    }
    for (int e : {0, 1}) {
      EXPECT_EQ(pair.edge[e]->corrections(), 60u);
      EXPECT_TRUE(pair.edge[e]->settled());
    }
    for (size_t i = 0; i < start[0].size(); ++i) {
      const double mean = 0.5 * (double{start[0][i]} + start[1][i]);
      EXPECT_NEAR(pair.x[0][i] + double{pair.x[1][i]}, 2 * mean, 4e-6);
      EXPECT_NEAR(pair.x[0][i], mean, codec == "diff-int8" ? 0.05 : 1e-4);
    }
  }
}

TEST(EdgeTest, ParametersThatAreNotFiniteAreNotSent) {
  EdgePair pair = MakePair("innov-int4");
  pair.Connect(1);
  EXPECT_FALSE(pair.edge[0]->Emit(MakeExchangeId(1), kC, false));
  EXPECT_TRUE(pair.edge[1]->Emit(MakeExchangeId(1), kC, true));
  pair.Pump();
  for (auto& edge : pair.edge) edge->Complete(MakeExchangeId(2));
  pair.Pump();
  for (auto& edge : pair.edge) {
    EXPECT_EQ(edge->corrections(), 0u);
    EXPECT_TRUE(edge->settled());
  }
}

TEST(EdgeTest, ARefusalOfAnotherRunLayoutOrCodecNamesBoth) {
  const auto refusal = [](std::array<std::shared_ptr<const Codec>, 2> codecs,
                          const std::function<void(EdgeOptions&)>& change) {
    std::array<EdgeOptions, 2> options = {PairOptions(0), PairOptions(1)};
    change(options[0]);
    EdgePair here(codecs[0], Start(), options);
    EdgePair there(codecs[1], Start(), options);
    here.edge[0]->ConnectionUp(1);
    there.edge[1]->ConnectionUp(1);
    const std::string before = StateOf(*there.edge[1]);
    const Edge::OutFrame hello = here.edge[0]->TakeFrames().at(0);
    const absl::Status status =
        there.edge[1]->OnFrame(1, hello.head, hello.body);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(StateOf(*there.edge[1]), before);
    return std::string(status.message());
  };
  const auto int4 = PairCodec("innov-int4"), int8 = PairCodec("diff-int8");
  EXPECT_THAT(refusal({int4, int4}, [](auto& o) { o.run_id = "other"; }),
              AllOf(HasSubstr("'other'"), HasSubstr("'run'")));
  EXPECT_THAT(
      refusal({int4, int4}, [](auto& o) { o.layout = 0xabc; }),
      AllOf(
          HasSubstr("00000abc"),
          HasSubstr(absl::StrCat(absl::Hex(
              FoldFingerprint(PairLayout().fingerprint()), absl::kZeroPad8)))));
  EXPECT_THAT(refusal({int8, int4}, [](auto&) {}),
              AllOf(HasSubstr("without"), HasSubstr("innov-int4")));
  EXPECT_THAT(refusal({int4, int8}, [](auto&) {}),
              AllOf(HasSubstr("with replicas"), HasSubstr("diff-int8")));
}

// Ends that lack the memory for replicas on all edges, so that one end
// switches to the other's codec.
class OtherCodecTest : public testing::Test {
 protected:
  // Returns the answer to the first hello of an end with `codec`, at an end of
  // another kind.
  static absl::Status Heard(Edge& end, Edge& from) {
    for (Edge* e : {&end, &from}) e->ConnectionUp(1);
    const Edge::OutFrame hello = from.TakeFrames().at(0);
    const std::string before = StateOf(end);
    const absl::Status status = end.OnFrame(1, hello.head, hello.body);
    EXPECT_EQ(StateOf(end), before);
    return status;
  }
  static EdgePair Switching(std::string_view codec) {
    std::array<EdgeOptions, 2> options = {PairOptions(0), PairOptions(1)};
    for (EdgeOptions& o : options) o.may_switch_codec = true;
    return EdgePair(PairCodec(codec), Start(), options);
  }
  // A pair with replicas and one without; edge[0] has the lower id.
  EdgePair with_ = Switching("innov-int4"), without_ = Switching("diff-int8");
};

TEST_F(OtherCodecTest, OfTwoNewEndsTheOneOfTheHigherIdGivesWay) {
  EXPECT_TRUE(absl::IsAborted(Heard(*with_.edge[1], *without_.edge[0])));
  EXPECT_EQ(Heard(*without_.edge[0], *with_.edge[1]), absl::OkStatus());
}

TEST_F(OtherCodecTest, ANewEndGivesWayToAnEndThatHasMixed) {
  for (int e : {0, 1}) {
    EdgePair mixed = Switching("innov-int4");
    mixed.Connect(1);
    mixed.Mix(MakeExchangeId(1), kC);
    mixed.Disconnect();
    EdgePair fresh = Switching("diff-int8");
    EXPECT_TRUE(absl::IsAborted(Heard(*fresh.edge[1 - e], *mixed.edge[e])));
    EXPECT_EQ(Heard(*mixed.edge[e], *fresh.edge[1 - e]), absl::OkStatus());
  }
}

TEST_F(OtherCodecTest, AnEndThatHasMixedRefusesAnotherThatHasMixed) {
  for (EdgePair* pair : {&with_, &without_}) {
    pair->Connect(1);
    pair->Mix(MakeExchangeId(1), kC);
    pair->Disconnect();
  }
  EXPECT_EQ(Heard(*with_.edge[0], *without_.edge[1]).code(),
            absl::StatusCode::kFailedPrecondition);
}

// Records every correction as it was added.
class Increments final : public CorrectionObserver {
 public:
  void OnCorrection(const Correction& correction) override {
    EXPECT_EQ(correction.c, 1);
    const std::span<const float> host = HostSpan(correction.difference);
    all.emplace_back(host.begin(), host.end());
  }
  std::vector<std::vector<float>> all;
};

double RootMeanSquare(std::span<const float> v) {
  double sum = 0;
  for (const float x : v) sum += double{x} * x;
  return std::sqrt(sum / static_cast<double>(v.size()));
}

TEST(EdgeTest, ClippedCorrectionsAreShortAndOppositeToTheBit) {
  constexpr double kRadius = 0.3;
  for (const std::string_view codec :
       {"dense-f32", "diff-int8", "innov-int4", "innov-sign",
        "innov-int4:fragments=3", "power-gossip",
        "innov-int8; discriminator=innov-int4 every 2"}) {
    SCOPED_TRACE(codec);
    std::array<EdgeOptions, 2> options = {PairOptions(0), PairOptions(1)};
    for (EdgeOptions& o : options) o.limits.clip_radius = kRadius;
    EdgePair pair(PairCodec(codec), Start(), options);
    std::array<Increments, 2> increments;
    for (int e : {0, 1}) pair.edge[e]->add_observer(&increments[e]);
    pair.Connect(1);
    for (uint64_t round = 1; round <= 60; ++round) {
      pair.Mix(MakeExchangeId(round), kC);
    }
    ASSERT_GE(increments[0].all.size(), 60u);
    for (size_t i = 0; i < 60; ++i) {
      const std::vector<float>& here = increments[0].all[i];
      const std::vector<float>& there = increments[1].all[i];
      EXPECT_LE(RootMeanSquare(here), (1 + 1e-6) * kC * kRadius);
      ASSERT_EQ(here.size(), there.size());
      for (size_t k = 0; k < here.size(); ++k) ASSERT_EQ(here[k], -there[k]);
    }
    const Clipping& seen = pair.edge[0]->codec_state().clipping();
    EXPECT_GT(seen.clipped, 0u);
    EXPECT_EQ(seen.clipped, pair.edge[1]->codec_state().clipping().clipped);
    EXPECT_EQ(seen.longest, pair.edge[1]->codec_state().clipping().longest);
    EXPECT_GT(pair.edge[0]->TakeLongest(), kRadius);
    EXPECT_EQ(pair.edge[0]->codec_state().clipping().longest, 0);
  }
}

// Of all players one round in four: the other rounds carry no payload.
TEST(EdgeTest, ARoundInWhichNoPartIsDueIsASkip) {
  const auto codec = PairCodec("innov-int8 every 4");
  EdgePair pair = MakePair("innov-int8 every 4");
  pair.Connect(1);
  for (uint64_t round = 1; round < 80; ++round) {
    const EdgePair::Vectors before = pair.x;
    pair.Mix(MakeExchangeId(round), 0.25f);
    EXPECT_EQ(pair.x == before, codec->Due(round).empty()) << round;
  }
  EXPECT_EQ(pair.edge[0]->corrections(), 2 * 20u);
  EXPECT_TRUE(pair.edge[0]->settled());
}

TEST(EdgeTest, ADisconnectLosesNothing) {
  EdgePair pair = MakePair("innov-int4");
  pair.Connect(1);
  for (uint64_t round = 1; round <= 30; ++round) {
    const ExchangeId id = MakeExchangeId(round);
    for (auto& edge : pair.edge) edge->Emit(id, kC, true);
    if (round % 3 == 0) {
      pair.edge[round % 2]->TakeFrames();  // the frames are lost
      pair.Disconnect();
      pair.Connect(round);
    }
    pair.Pump();
    for (auto& edge : pair.edge) edge->Complete(id + 1);
    pair.Pump();
  }
  for (auto& edge : pair.edge) {
    EXPECT_EQ(edge->corrections(), 30u);
    EXPECT_TRUE(edge->settled());
  }
}

// Each restart of the other end costs this end two passes over all parameters,
// and the other end nothing.
TEST(EdgeTest, AnEndThatKeepsRestartingOnOneConnectionIsRefused) {
  EdgePair pair = MakePair("innov-int4");
  Edge& edge = *pair.edge[0];
  pair.Connect(1);
  edge.ConnectionUp(5);
  EdgeHeader hello = HelloOf(*pair.edge[1]);
  int heard = 0;
  for (; heard < 100; ++heard) {
    hello.epoch += kEpochLevel;
    if (!edge.OnFrame(5, EncodeHeader(hello), {}).ok()) break;
  }
  EXPECT_GE(heard, 4);
  EXPECT_LT(heard, 20);
  edge.ConnectionUp(6);
  EXPECT_TRUE(edge.OnFrame(6, EncodeHeader(hello), {}).ok());
}

TEST(EdgeTest, SendsOnlyOnceAHelloWasHeardOnTheNewestConnection) {
  EdgePair pair = MakePair("diff-int8");
  Edge& edge = *pair.edge[0];
  edge.Emit(MakeExchangeId(1), kC, true);
  EXPECT_TRUE(edge.TakeFrames().empty());
  pair.Connect(1);
  edge.ConnectionUp(5);
  EXPECT_EQ(HeaderOf(edge.TakeFrames().at(0)).kind, FrameKind::kHello);
  edge.Emit(MakeExchangeId(2), kC, true);
  EXPECT_TRUE(edge.TakeFrames().empty()) << "not ready yet";
  const EdgeHeader hello = HelloOf(*pair.edge[1]);
  EXPECT_TRUE(edge.OnFrame(1, EncodeHeader(hello), {}).ok());
  EXPECT_TRUE(edge.TakeFrames().empty()) << "not the newest";
  EXPECT_TRUE(edge.OnFrame(5, EncodeHeader(hello), {}).ok());
  const auto frames = edge.TakeFrames();
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(HeaderOf(frames[0]).kind, FrameKind::kPayload);
  EXPECT_EQ(HeaderOf(frames[1]).kind, FrameKind::kSkip);
}

// The two ends take different connections for the newest.  When the one on
// which an end sends breaks, the other end sends no second hello.
TEST(EdgeTest, FallsBackToAnOlderConnectionWhoseHelloItHasHeard) {
  EdgePair pair = MakePair("innov-int4");
  Edge &a = *pair.edge[0], &b = *pair.edge[1];
  const auto move = [](Edge& from, Edge& to, uint64_t connection) {
    for (const Edge::OutFrame& f : from.TakeFrames()) {
      EXPECT_TRUE(to.OnFrame(connection, f.head, f.body).ok());
    }
  };
  // Connection P is 1 at a and 2 at b; connection Q is the other way round.
  a.ConnectionUp(1);
  b.ConnectionUp(1);
  move(a, b, 2);
  move(b, a, 2);
  a.ConnectionUp(2);
  b.ConnectionUp(2);
  move(a, b, 1);
  move(b, a, 1);
  // Q breaks; a falls back to P, on which b has been sending all along.
  a.ConnectionDown(2);
  b.ConnectionDown(1);
  for (int i = 0; i < 3; ++i) {
    move(a, b, 2);
    move(b, a, 1);
  }
  EXPECT_TRUE(a.state().ready);
  EXPECT_TRUE(b.state().ready);
  for (Edge* edge : {&a, &b}) edge->Emit(MakeExchangeId(1), kC, true);
  move(a, b, 2);
  move(b, a, 1);
  for (Edge* edge : {&a, &b}) {
    edge->Complete(MakeExchangeId(2));
    EXPECT_EQ(edge->corrections(), 1u);
  }
}

TEST(EdgeTest, UnsentFramesAreBoundedWhileTheOtherEndIsSilent) {
  for (const int window : {1, 2, kMaxEdgeWindow}) {
    EdgePair pair = MakePair("diff-int8", window);
    pair.Connect(1);
    size_t payloads = 0;
    for (uint64_t round = 1; round <= 500; ++round) {
      pair.edge[0]->Emit(MakeExchangeId(round), kC, true);
      pair.edge[0]->Complete(MakeExchangeId(round + 1));
      for (const auto& f : pair.edge[0]->TakeFrames()) {
        payloads += HeaderOf(f).kind == FrameKind::kPayload;
      }
    }
    EXPECT_EQ(payloads, static_cast<size_t>(window));
    EXPECT_EQ(pair.edge[0]->state().mine.size(), window);
  }
}

TEST(EdgeTest, ARestartedEndStartsAtZeroAndMixesOn) {
  EdgePair pair = MakePair("innov-int4");
  pair.Connect(1);
  for (uint64_t round = 1; round <= 5; ++round) {
    pair.Mix(MakeExchangeId(round), kC);
  }
  EdgeOptions options = PairOptions(1);
  options.epoch += kEpochLevel;
  options.frontier = MakeExchangeId(6);
  pair.Disconnect();
  pair.edge[1] =
      std::make_unique<Edge>(options, PairCodec("innov-int4"), pair.x[1],
                             std::make_shared<SnapshotCache>());
  pair.Connect(2);
  for (uint64_t round = 6; round <= 9; ++round) {
    pair.Mix(MakeExchangeId(round), kC);
  }
  EXPECT_EQ(pair.edge[0]->corrections(), 9u);
  EXPECT_EQ(pair.edge[1]->corrections(), 4u);
  const auto d = pair.edge[0]->codec_state().Save().difference;
  const auto e = pair.edge[1]->codec_state().Save().difference;
  for (size_t i = 0; i < d.size(); ++i) ASSERT_EQ(d[i], -e[i]);
}

TEST(EdgeTest, AnExchangePerhapsAppliedAtOneEndOnlyIsReported) {
  EdgePair pair = MakePair("innov-int4");
  pair.Connect(1);
  pair.Mix(MakeExchangeId(1), kC);
  // The exchange is complete at the other end, which does not say so again.
  for (auto& edge : pair.edge) edge->Emit(MakeExchangeId(2), kC, true);
  pair.Pump();
  pair.edge[1]->Complete(MakeExchangeId(3));
  pair.Disconnect();
  EXPECT_TRUE(pair.edge[0]->TakeLost().empty());
  EdgeOptions options = PairOptions(1);
  options.epoch += kEpochLevel;
  pair.edge[1] =
      std::make_unique<Edge>(options, PairCodec("innov-int4"), pair.x[1],
                             std::make_shared<SnapshotCache>());
  pair.Connect(2);
  EXPECT_THAT(pair.edge[0]->TakeLost(), ElementsAre(MakeExchangeId(2)));
  EXPECT_TRUE(pair.edge[0]->TakeLost().empty());
  EXPECT_TRUE(pair.edge[1]->TakeLost().empty());
}

TEST(EdgeTest, ALosslessResetForgetsReplicasAndNoCorrection) {
  EdgePair pair = MakePair("innov-int4");
  pair.Connect(1);
  pair.Mix(MakeExchangeId(1), kC);
  pair.edge[0]->Emit(MakeExchangeId(2), kC, true);
  EXPECT_FALSE(pair.edge[0]->MayReset());
  pair.edge[1]->Emit(MakeExchangeId(2), kC, true);
  pair.Pump();
  for (auto& edge : pair.edge) edge->Complete(MakeExchangeId(3));
  pair.Pump();
  ASSERT_TRUE(pair.edge[0]->MayReset());
  pair.edge[0]->LosslessReset();
  pair.Pump();
  for (auto& edge : pair.edge) {
    for (const float v : edge->codec_state().Save().replica) ASSERT_EQ(v, 0.0f);
    EXPECT_EQ(edge->corrections(), 2u);
  }
  pair.Mix(MakeExchangeId(3), kC);
  for (auto& edge : pair.edge) EXPECT_EQ(edge->corrections(), 3u);
}

}  // namespace edge_test
}  // namespace gossamer
