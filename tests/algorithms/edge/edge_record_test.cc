// Sealed records of an edge in a checkpoint, and what resumes from them.

#include <algorithm>
#include <array>
#include <cctype>
#include <memory>
#include <utility>
#include <vector>

#include "algorithms/base/rng.h"
#include "algorithms/edge/edge.h"
#include "gtest/gtest.h"
#include "tests/algorithms/edge/edge_pair.h"

namespace gossamer {
namespace edge_record_test {

constexpr float kC = 0.2f;
constexpr uint64_t kCutRound = 20;
constexpr ExchangeId kCut = MakeExchangeId(kCutRound);

EdgePair::Vectors Start() {
  EdgePair::Vectors x;
  for (int e : {0, 1}) {
    x[e].resize(PairLayout().size());
    RngKey(40 + e).FillGaussian(x[e]);
  }
  return x;
}

// Runs a round at h = `window`: the exchange of `round` is emitted, that of
// round − h + 1 is due after a local step.
void Round(EdgePair& pair, uint64_t round, int window) {
  for (auto& edge : pair.edge) edge->Emit(MakeExchangeId(round), kC, true);
  pair.Pump();
  for (int e : {0, 1}) {
    const RngKey key = RngKey(50 + e).Fold(round);
    for (size_t i = 0; i < pair.x[e].size(); ++i) {
      pair.x[e][i] += 0.01f * static_cast<float>(key.Gaussian(i));
    }
    pair.edge[e]->Complete(MakeExchangeId(round + 2 - window));
  }
  pair.Pump();
}

// The parameters and the saved edges of both ends at a cut.
struct Cut {
  EdgePair::Vectors x;
  std::array<SavedEdge, 2> saved;
};

// Runs to the cut, where the exchanges of the last window − 1 rounds are
// pending.
Cut RunToCut(EdgePair& pair, int window) {
  pair.Connect(1);
  for (uint64_t round = 1; round < kCutRound; ++round) {
    Round(pair, round, window);
  }
  Cut cut;
  cut.x = pair.x;
  for (auto& edge : pair.edge) {
    edge->SkipTo(kCut);
    edge->BeginRecord(kCut);
    edge->Announce();
  }
  pair.Pump();
  for (int e : {0, 1}) {
    EXPECT_TRUE(pair.edge[e]->Sealed(kCut));
    cut.saved[e] = pair.edge[e]->TakeRecord(kCut).value();
    EXPECT_FALSE(pair.edge[e]->TakeRecord(kCut).has_value()) << "taken once";
    EXPECT_EQ(cut.saved[e].record.mine.size(), window - 1);
    EXPECT_EQ(cut.saved[e].record.theirs.size(), window - 1);
  }
  return cut;
}

EdgeOptions LaterIncarnation(int e, int window) {
  EdgeOptions options = PairOptions(e, window);
  options.epoch += (5 + e) * kEpochLevel + 3;
  return options;
}

void ResumeEnd(EdgePair& pair, int e, const Cut& cut, std::string_view codec,
               int window) {
  pair.x[e] = cut.x[e];
  pair.edge[e] =
      Edge::Resume(LaterIncarnation(e, window), PairCodec(codec), pair.x[e],
                   std::make_shared<SnapshotCache>(), cut.saved[e])
          .value();
}

class RecordTest
    : public testing::TestWithParam<std::tuple<std::string_view, int>> {};

TEST_P(RecordTest, ResumesToTheBitWithExchangesPending) {
  const auto [codec, window] = GetParam();
  EdgePair pair(PairCodec(codec), Start(), window);
  const Cut cut = RunToCut(pair, window);
  EdgePair again(PairCodec(codec), Start(), window);
  for (int e : {0, 1}) ResumeEnd(again, e, cut, codec, window);
  again.Connect(1);
  for (uint64_t round = kCutRound; round < kCutRound + 10; ++round) {
    Round(pair, round, window);
    Round(again, round, window);
    ASSERT_EQ(pair.x, again.x) << round;
  }
  EXPECT_EQ(pair.edge[0]->codec_state().Save().difference,
            again.edge[0]->codec_state().Save().difference);
}

INSTANTIATE_TEST_SUITE_P(
    Edge, RecordTest,
    testing::Combine(testing::Values("dense-f32", "diff-int8", "innov-int4",
                                     "innov-int4:fragments=3",
                                     "innov-int4; generator=dense-f32 every 3"),
                     testing::Values(1, 2, 4)),
    [](const auto& info) {
      std::string name(std::get<0>(info.param));
      std::erase_if(name, [](char c) { return !std::isalnum(c); });
      return name + "Window" + std::to_string(std::get<1>(info.param));
    });

TEST(EdgeRecordTest, ARecordPairsOnlyWithOneOfTheSameCut) {
  EdgePair pair(PairCodec("innov-int4"), Start(), 2);
  const Cut cut = RunToCut(pair, 2);
  // One end resumes from the record; the other one has gone on.
  pair.Disconnect();
  ResumeEnd(pair, 0, cut, "innov-int4", 2);
  pair.Connect(2);
  for (auto& edge : pair.edge) {
    EXPECT_TRUE(edge->settled());
    EXPECT_EQ(edge->state().basis,
              edge == pair.edge[0] ? pair.edge[0]->state().basis : 0u);
    for (const float v : edge->codec_state().Save().difference) {
      ASSERT_EQ(v, 0.0f);
    }
  }
}

// A payload of diff-int8 could pass for the first payload of an innovation.
TEST(EdgeRecordTest, ARecordIsOfItsCodecAlone) {
  EdgePair pair(PairCodec("diff-int8"), Start(), 2);
  const Cut cut = RunToCut(pair, 2);
  const auto resumed = [&](std::string_view codec) {
    return Edge::Resume(LaterIncarnation(0, 2), PairCodec(codec), pair.x[0],
                        std::make_shared<SnapshotCache>(), cut.saved[0])
        .status();
  };
  EXPECT_TRUE(resumed("diff-int8").ok());
  EXPECT_EQ(resumed("innov-int4").code(), absl::StatusCode::kInvalidArgument);
}

TEST(EdgeRecordTest, AnUnsealedRecordIsGivenUp) {
  EdgePair pair(PairCodec("innov-int4"), Start());
  pair.Connect(1);
  for (uint64_t round = 1; round < 5; ++round) Round(pair, round, 1);
  Edge& edge = *pair.edge[0];
  edge.SkipTo(MakeExchangeId(5));
  edge.BeginRecord(MakeExchangeId(5));
  EXPECT_FALSE(edge.Sealed(MakeExchangeId(5)));
  EXPECT_FALSE(edge.TakeRecord(MakeExchangeId(5)).has_value());
  // A later frame does not seal a record that was given up either.
  pair.edge[1]->SkipTo(MakeExchangeId(5));
  pair.edge[1]->Announce();
  pair.Pump();
  EXPECT_FALSE(edge.Sealed(MakeExchangeId(5)));
  EXPECT_FALSE(edge.TakeRecord(MakeExchangeId(5)).has_value());
}

TEST(EdgeRecordTest, ARecordWaitsForWhatIsUnderway) {
  EdgePair pair(PairCodec("diff-int8"), Start());
  pair.Connect(1);
  for (uint64_t round = 1; round < 5; ++round) Round(pair, round, 1);
  Edge &a = *pair.edge[0], &b = *pair.edge[1];
  a.Emit(MakeExchangeId(5), kC, true);
  a.SkipTo(MakeExchangeId(6));
  a.BeginRecord(MakeExchangeId(6));
  EXPECT_FALSE(a.Sealed(MakeExchangeId(6)));
  b.Emit(MakeExchangeId(5), kC, true);
  pair.Pump();
  EXPECT_FALSE(a.Sealed(MakeExchangeId(6)))
      << "the other end may send more payloads below the cut";
  b.SkipTo(MakeExchangeId(6));
  b.Announce();
  pair.Pump();
  ASSERT_TRUE(a.Sealed(MakeExchangeId(6)));
  const SavedEdge saved = a.TakeRecord(MakeExchangeId(6)).value();
  EXPECT_EQ(saved.record.mine.size(), 1);
  EXPECT_EQ(saved.record.theirs.size(), 1);
}

// With overlap the record of one round is not sealed when the next one begins.
TEST(EdgeRecordTest, RecordsOfSeveralCutsAreTakenSideBySide) {
  constexpr int kWindow = 3;
  EdgePair pair(PairCodec("innov-int4"), Start(), kWindow);
  pair.Connect(1);
  for (uint64_t round = 1; round < kCutRound; ++round) {
    Round(pair, round, kWindow);
  }
  Edge &a = *pair.edge[0], &b = *pair.edge[1];
  std::vector<ExchangeId> cuts;
  for (uint64_t round = kCutRound; round < kCutRound + 3; ++round) {
    cuts.push_back(MakeExchangeId(round));
    a.SkipTo(cuts.back());
    a.BeginRecord(cuts.back());
    a.Emit(cuts.back(), kC, true);
  }
  for (const ExchangeId cut : cuts) EXPECT_FALSE(a.Sealed(cut));
  for (const ExchangeId cut : cuts) {
    b.SkipTo(cut);
    b.Announce();
    pair.Pump();
    EXPECT_TRUE(a.Sealed(cut));
    b.Emit(cut, kC, true);
  }
  // The first one is as if it had been alone; taking the last drops the second.
  const auto first = a.TakeRecord(cuts[0]), last = a.TakeRecord(cuts[2]);
  ASSERT_TRUE(first.has_value() && last.has_value());
  EXPECT_EQ(first->record.cut, cuts[0]);
  EXPECT_EQ(first->record.mine.size(), kWindow - 1);
  EXPECT_EQ(last->record.mine.size(), kWindow);
  EXPECT_FALSE(a.TakeRecord(cuts[1]).has_value());
}

// New memory would cost a round more than the copy does.
TEST(EdgeRecordTest, ARecordTakesTheMemoryThatItIsGiven) {
  EdgePair pair(PairCodec("innov-int4"), Start());
  pair.Connect(1);
  for (uint64_t round = 1; round < 5; ++round) Round(pair, round, 1);
  Edge& edge = *pair.edge[0];
  SavedEdge spare;
  spare.codec_state = edge.codec_state().Room();
  const float* const memory[] = {spare.codec_state.replica.data(),
                                 spare.codec_state.difference.data()};
  for (uint64_t round = 5; round < 8; ++round) {
    const ExchangeId cut = MakeExchangeId(round);
    for (auto& end : pair.edge) end->SkipTo(cut);
    edge.BeginRecord(cut, std::move(spare));
    const EdgeCodecState::Saved now = edge.codec_state().Save();
    pair.edge[1]->Announce();
    pair.Pump();
    Round(pair, round, 1);
    spare = edge.TakeRecord(cut).value();
    EXPECT_EQ(spare.codec_state.replica.data(), memory[0]) << round;
    EXPECT_EQ(spare.codec_state.difference.data(), memory[1]) << round;
    EXPECT_EQ(spare.codec_state.replica, now.replica);
    EXPECT_EQ(spare.codec_state.difference, now.difference);
    EXPECT_EQ(spare.codec_state.progress, now.progress);
  }
}

// Payloads below the cut that are complete leave the edge, but not the record.
TEST(EdgeRecordTest, ARecordThatOverflowsIsVoid) {
  EdgePair pair(PairCodec("diff-int8"), Start());
  pair.Connect(1);
  Edge& edge = *pair.edge[1];
  const ExchangeId cut = MakeExchangeId(1000);
  edge.SkipTo(cut);
  edge.BeginRecord(cut);
  pair.edge[0]->Emit(MakeExchangeId(1), kC, true);
  const Edge::OutFrame frame = pair.edge[0]->TakeFrames().at(0);
  EdgeHeader h = DecodeHeader(frame.head).value();
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(edge.OnFrame(1, EncodeHeader(h), frame.body).ok());
    edge.Complete(cut);
    h.prev = h.to - 1;
    h.to += 1;
  }
  h.kind = FrameKind::kSkip;
  h.payload_bytes = 0;
  h.to = cut;
  ASSERT_TRUE(edge.OnFrame(1, EncodeHeader(h), {}).ok());
  EXPECT_EQ(edge.received(), cut);
  EXPECT_FALSE(edge.Sealed(cut));
  EXPECT_FALSE(edge.TakeRecord(cut).has_value());
}

// The record that an end resumed from may have left it a full window, and the
// other end may send as many again.
TEST(EdgeRecordTest, ARecordThatOverflowsAtItsBeginningIsVoid) {
  EdgePair pair(PairCodec("diff-int8"), Start(), 8);
  const Cut cut = RunToCut(pair, 8);
  EdgePair again(PairCodec("diff-int8"), Start(), 8);
  for (int e : {0, 1}) ResumeEnd(again, e, cut, "diff-int8", 8);
  again.Connect(1);
  Edge& edge = *again.edge[1];
  again.edge[0]->Emit(kCut, kC, true);
  const Edge::OutFrame frame = again.edge[0]->TakeFrames().at(0);
  EdgeHeader h = DecodeHeader(frame.head).value();
  for (int i = 0; i < 16; ++i) {
    ASSERT_TRUE(edge.OnFrame(1, EncodeHeader(h), frame.body).ok()) << i;
    h.prev = h.to - 1;
    h.to += 1;
  }
  const ExchangeId next = MakeExchangeId(kCutRound + 1);
  edge.SkipTo(next);
  edge.BeginRecord(next);
  EXPECT_FALSE(edge.Sealed(next));
  EXPECT_FALSE(edge.TakeRecord(next).has_value());
}

// The other end's new incarnation does not know of the cut, so no peer may wait
// for it.
TEST(EdgeRecordTest, ARecordOfAnEndedIncarnationIsUnsealable) {
  EdgePair pair(PairCodec("innov-int4"), Start());
  pair.Connect(1);
  for (uint64_t round = 1; round < 5; ++round) Round(pair, round, 1);
  Edge& edge = *pair.edge[0];
  edge.SkipTo(MakeExchangeId(6));
  edge.BeginRecord(MakeExchangeId(6));
  EXPECT_FALSE(edge.Unsealable(MakeExchangeId(6)));
  pair.Disconnect();
  EXPECT_FALSE(edge.Unsealable(MakeExchangeId(6)))
      << "it may come back as it was";
  EdgeOptions again = PairOptions(1);
  again.epoch = MakeEpoch(5000, 18);
  pair.edge[1] =
      std::make_unique<Edge>(again, PairCodec("innov-int4"), pair.x[1],
                             std::make_shared<SnapshotCache>());
  pair.Connect(2);
  EXPECT_TRUE(edge.Unsealable(MakeExchangeId(6)));
  pair.edge[1]->SkipTo(MakeExchangeId(6));
  pair.edge[1]->Announce();
  pair.Pump();
  EXPECT_EQ(edge.received(), MakeExchangeId(6));
  EXPECT_FALSE(edge.Sealed(MakeExchangeId(6)));
  EXPECT_FALSE(edge.TakeRecord(MakeExchangeId(6)).has_value());
  EXPECT_TRUE(edge.Unsealable(MakeExchangeId(6))) << "there is none any more";
}

TEST(EdgeRecordTest, RefusesReplicasAndPayloadsThatDoNotFit) {
  for (const std::string_view codec : {"diff-int8", "innov-int4"}) {
    EdgePair pair(PairCodec(codec), Start(), 2);
    const Cut cut = RunToCut(pair, 2);
    std::vector<Segment> segments(1);
    segments[0].name = "bias";
    segments[0].shape = {7};
    const ParameterLayout small(segments);
    std::vector<float> x(small.size());
    EXPECT_EQ(Edge::Resume(LaterIncarnation(0, 2),
                           Codec::Create(codec, small).value(), x,
                           std::make_shared<SnapshotCache>(), cut.saved[0])
                  .status()
                  .code(),
              absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace edge_record_test
}  // namespace gossamer
