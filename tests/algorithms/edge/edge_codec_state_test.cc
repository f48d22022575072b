// One end's half of an edge's arithmetic: replica and difference, the formats
// of payloads, fragments, and saved state.

#include "algorithms/edge/edge_codec_state.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "algorithms/base/rng.h"
#include "gtest/gtest.h"
#include "tests/algorithms/edge/edge_pair.h"

namespace gossamer {
namespace edge_codec_state_test {

constexpr uint64_t kResync = 65536;

std::vector<float> Gaussian(RngKey key) {
  std::vector<float> x(PairLayout().size());
  key.FillGaussian(x);
  return x;
}

// The states of the two ends of one edge, without a protocol between them.
struct Ends {
  explicit Ends(std::string_view codec, uint64_t hash = 0)
      : x{Gaussian(RngKey(1)), Gaussian(RngKey(2))} {
    for (int e : {0, 1}) {
      end.emplace_back(PairCodec(codec), x[e],
                       std::make_shared<SnapshotCache>(), hash);
      end[e].set_coefficient(0.25f);
    }
  }
  void Exchange(ExchangeId id) {
    const EdgeMessage a = end[0].OnEmit(id), b = end[1].OnEmit(id);
    end[0].OnComplete(id, &a, &b);
    end[1].OnComplete(id, &b, &a);
  }
  std::vector<float> x[2];
  std::vector<EdgeCodecState> end;
};

TEST(EdgeCodecStateTest, InnovationsBeginInInt8AndGoOnInInt4) {
  Ends s("innov-int4");
  EXPECT_EQ(s.end[0].OnEmit(MakeExchangeId(1)).format, WireFormat::kInt8);
  for (uint64_t round = 2; round < 10; ++round) {
    const EdgeMessage m = s.end[0].OnEmit(MakeExchangeId(round));
    EXPECT_EQ(m.format, WireFormat::kInt4);
    EXPECT_EQ(m.bytes.size(), PairCodec("innov-int4")->EncodedSize(m.format));
    EXPECT_EQ(m.c, 0.25f);
  }
  s.end[0].OnReset();
  EXPECT_EQ(s.end[0].OnEmit(MakeExchangeId(10)).format, WireFormat::kInt8);
}

TEST(EdgeCodecStateTest, EveryCodecBeginsAndGoesOnInItsOwnFormats) {
  for (const std::string_view name : Codec::Names()) {
    if (PairCodec(name)->memory() == EdgeMemory::kShared) continue;
    Ends s(name);
    const auto codec = PairCodec(name);
    for (uint64_t round = 1; round < 6; ++round) {
      const EdgeMessage m = s.end[0].OnEmit(MakeExchangeId(round));
      EXPECT_EQ(m.format, round == 1 ? codec->first_format() : codec->format());
      EXPECT_EQ(m.bytes.size(), codec->EncodedSize(m.format));
    }
  }
}

TEST(EdgeCodecStateTest, ReplicaApproachesTheParameters) {
  Ends s("innov-int4");
  for (uint64_t round = 1; round <= 12; ++round) {
    s.end[0].OnEmit(MakeExchangeId(round));
  }
  const std::vector<float> replica = s.end[0].Save().replica;
  for (size_t i = 0; i < replica.size(); ++i) {
    EXPECT_NEAR(replica[i], s.x[0][i], 1e-5f);
  }
}

TEST(EdgeCodecStateTest, DifferenceIsTheNeighboursReplicaMinusTheOwn) {
  Ends s("innov-int4");
  for (uint64_t round = 1; round <= 200; ++round) {
    s.Exchange(MakeExchangeId(round));
    const auto a = s.end[0].Save(), b = s.end[1].Save();
    for (size_t i = 0; i < a.difference.size(); ++i) {
      ASSERT_EQ(a.difference[i], -b.difference[i]) << round;
      // The difference drifts by rounding, at most an ulp a round.
      ASSERT_NEAR(a.difference[i], b.replica[i] - a.replica[i],
                  1e-6 * std::sqrt(round));
    }
  }
  EXPECT_EQ(s.end[0].corrections(), 200u);
}

// A neighbour whose parameters explode and come back.
TEST(EdgeCodecStateTest, ACorrectionOverTheLimitIsLeftOutAtBothEnds) {
  for (const char* const codec :
       {"dense-f32", "dense-bf16", "innov-int4", "innov-int8:fragments=3",
        "diff-int8", "innov-topk", "auto", "power-gossip",
        "innov-int8; generator=diff-int8"}) {
    SCOPED_TRACE(codec);
    Ends s(codec);
    Ends same(codec);  // no limit is set for this pair
    for (EdgeCodecState& end : s.end) end.set_limits({.largest = 1000});
    uint64_t round = 0;
    const auto exchange = [&](int times) {
      for (int i = 0; i < times; ++i) s.Exchange(MakeExchangeId(++round));
    };
    exchange(30);
    for (uint64_t r = 1; r <= 30; ++r) same.Exchange(MakeExchangeId(r));
    EXPECT_EQ(s.x[0], same.x[0]);
    EXPECT_EQ(s.x[1], same.x[1]);
    EXPECT_EQ(s.end[0].clipping().left_out, 0u);
    const std::vector<float> sound = s.x[0];
    for (const float lie : {1e30f, -5e4f}) {
      s.x[1].assign(s.x[1].size(), lie);
      exchange(12);
      EXPECT_EQ(s.x[0], sound) << lie;
      EXPECT_TRUE(
          std::ranges::all_of(s.x[1], [&](float v) { return v == lie; }));
    }
    const uint64_t left_out = s.end[0].clipping().left_out;
    EXPECT_GE(left_out, 20u);
    EXPECT_EQ(s.end[1].clipping().left_out, left_out);
  }
}

// Records what an ended edge gives back, and ignores corrections.
struct LostLog final : CorrectionObserver {
  void OnCorrection(const Correction&) override {}
  void OnEdgeEnd(DeviceSpan<const float> sum) override {
    lost.assign(HostSpan(sum).begin(), HostSpan(sum).end());
    ++times;
  }
  std::vector<float> lost;
  int times = 0;
};

// One codec for each kind of memory, and one with fragments.
TEST(EdgeCodecStateTest, AnEdgeThatEndsReportsWhatItHasAdded) {
  for (const char* const codec :
       {"dense-f32", "innov-int4", "innov-int8:fragments=3", "power-gossip",
        "innov-int8; generator=innov-int4 every 2"}) {
    Ends s(codec);
    const Extent part = {7, s.x[0].size() - 20};
    const std::vector<float> before = s.x[0];
    LostLog log;
    s.end[0].add_observer(&log);
    s.end[0].set_summed(part);
    for (uint64_t round = 1; round <= 20; ++round) {
      s.Exchange(MakeExchangeId(round));
    }
    // A checkpoint keeps the sum.
    EdgeCodecState again(PairCodec(codec), s.x[0],
                         std::make_shared<SnapshotCache>(), 0);
    again.set_summed(part);
    again.add_observer(&log);
    ASSERT_TRUE(again.Restore(s.end[0].Save()));
    for (EdgeCodecState* end : {&s.end[0], &again}) {
      log.lost.clear();
      end == &again ? end->OnEnd() : end->OnReset();
      ASSERT_EQ(log.lost.size(), part.size) << codec;
      for (size_t i = 0; i < part.size; ++i) {
        ASSERT_NEAR(log.lost[i],
                    s.x[0][part.offset + i] - before[part.offset + i], 1e-5)
            << codec << " " << i;
      }
      end->OnReset();
    }
    EXPECT_EQ(log.times, 2) << codec << ": once";
    EdgeCodecState other(PairCodec(codec), s.x[0],
                         std::make_shared<SnapshotCache>(), 0);
    other.set_summed({0, 3});
    EdgeCodecState::Saved foreign = other.Save();
    foreign.sum = {1, 2};
    EXPECT_FALSE(other.Restore(foreign));
  }
}

TEST(EdgeCodecStateTest,
     ASkippedExchangeUpdatesTheDifferenceAndCorrectsNothing) {
  Ends s("innov-int8");
  s.Exchange(MakeExchangeId(1));
  const std::vector<float> x = s.x[0];
  const EdgeMessage a = s.end[0].OnEmit(MakeExchangeId(2));
  s.end[0].OnComplete(MakeExchangeId(2), &a, nullptr);
  s.end[1].OnComplete(MakeExchangeId(2), nullptr, &a);
  EXPECT_EQ(s.x[0], x);
  EXPECT_EQ(s.end[0].corrections(), 1u);
  const auto p = s.end[0].Save(), q = s.end[1].Save();
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_EQ(p.difference[i], -q.difference[i]);
    ASSERT_NEAR(p.difference[i], q.replica[i] - p.replica[i], 1e-6);
  }
}

TEST(EdgeCodecStateTest, ResyncStartsFromZeroWithADensePayload) {
  for (const uint64_t hash : {uint64_t{0}, uint64_t{1000}}) {
    Ends s("innov-int4", hash);
    const uint64_t boundary = kResync - hash;
    for (uint64_t round = boundary - 5; round < boundary; ++round) {
      s.Exchange(MakeExchangeId(round));
    }
    // The first payload of the new interval is dense-f32, so that x̂ is x to
    // the bit.
    const std::vector<float> x[2] = {s.x[0], s.x[1]};
    const EdgeMessage a = s.end[0].OnEmit(MakeExchangeId(boundary));
    const EdgeMessage b = s.end[1].OnEmit(MakeExchangeId(boundary));
    EXPECT_EQ(a.format, WireFormat::kDenseF32);
    EXPECT_EQ(s.end[0].Save().replica, x[0]);
    s.end[0].OnComplete(MakeExchangeId(boundary), &a, &b);
    s.end[1].OnComplete(MakeExchangeId(boundary), &b, &a);
    const auto saved = s.end[0].Save();
    for (size_t i = 0; i < x[0].size(); ++i) {
      ASSERT_EQ(saved.difference[i], x[1][i] - x[0][i]);
    }
    EXPECT_EQ(s.end[0].OnEmit(MakeExchangeId(boundary + 1)).format,
              WireFormat::kInt4);
  }
}

TEST(FragmentTest, EveryFragmentGetsItsTurnEvenOnARarelyUsedEdge) {
  for (const int p : {1, 2, 3, 4, 8}) {
    for (uint64_t cycle = 0; cycle < 50; ++cycle) {
      std::vector<int> times(p);
      for (int k = 0; k < p; ++k) {
        ++times[DuePart(cycle * p + k, p)];
      }
      EXPECT_EQ(times, std::vector<int>(p, 1));
    }
    // An edge that is used in every second round, or every eighth.
    for (const uint64_t period : {2, 4, 8}) {
      std::vector<int> times(p);
      for (uint64_t round = 1; round < 64 * period; round += period) {
        ++times[DuePart(round, p)];
      }
      EXPECT_GT(*std::ranges::min_element(times), 0) << p << " " << period;
    }
  }
}

// Every fragment has a state of its own: it begins in int8, continues in int4,
// and changes its own part of x.
TEST(FragmentTest, StateAndCorrectionsAreThoseOfTheFragment) {
  const auto codec = PairCodec("innov-int4:fragments=4");
  Ends s("innov-int4:fragments=4");
  std::vector<int> times(4);
  for (uint64_t round = 1; round < 60; ++round) {
    const ExchangeId id = MakeExchangeId(round);
    const int f = DuePart(round, 4);
    const auto [offset, size] = codec->part(f).extent;
    const std::vector<float> x = s.x[0];
    const EdgeMessage a = s.end[0].OnEmit(id), b = s.end[1].OnEmit(id);
    EXPECT_EQ(a.format, times[f] == 0 ? WireFormat::kInt8 : WireFormat::kInt4);
    EXPECT_EQ(a.bytes.size(), codec->part(f).codec->EncodedSize(a.format));
    EXPECT_TRUE(s.end[1].Validate(a.encoded(id)).ok());
    ++times[f];
    s.end[0].OnComplete(id, &a, &b);
    s.end[1].OnComplete(id, &b, &a);
    for (size_t i = 0; i < x.size(); ++i) {
      if (i >= offset && i < offset + size) continue;
      ASSERT_EQ(s.x[0][i], x[i]);
    }
    const auto p = s.end[0].Save(), q = s.end[1].Save();
    for (size_t i = 0; i < p.difference.size(); ++i) {
      ASSERT_EQ(p.difference[i], -q.difference[i]);
      ASSERT_NEAR(p.difference[i], q.replica[i] - p.replica[i], 1e-5);
    }
  }
  for (size_t i = 0; i < s.x[0].size(); ++i) {
    EXPECT_NEAR(s.x[0][i], s.x[1][i], 0.02);
  }
}

// At its first exchange after a boundary a fragment travels dense: x̂ is x to
// the bit there and unchanged elsewhere.
TEST(FragmentTest, EachFragmentResyncsAtItsFirstExchangeAfterTheBoundary) {
  const auto codec = PairCodec("innov-int4:fragments=4");
  Ends s("innov-int4:fragments=4");
  for (uint64_t round = kResync - 12; round < kResync; ++round) {
    s.Exchange(MakeExchangeId(round));
  }
  for (uint64_t round = kResync; round < kResync + 8; ++round) {
    const ExchangeId id = MakeExchangeId(round);
    const auto [offset, size] = codec->part(DuePart(round, 4)).extent;
    std::vector<float> expected = s.end[0].Save().replica;
    const EdgeMessage a = s.end[0].OnEmit(id), b = s.end[1].OnEmit(id);
    if (round < kResync + 4) {
      EXPECT_EQ(a.format, WireFormat::kDenseF32);
      EXPECT_EQ(a.bytes.size(), 4 * size);
      std::copy_n(s.x[0].begin() + offset, size, expected.begin() + offset);
      EXPECT_EQ(s.end[0].Save().replica, expected);
      const std::vector<float> x[2] = {s.x[0], s.x[1]};
      s.end[0].OnComplete(id, &a, &b);
      s.end[1].OnComplete(id, &b, &a);
      const auto difference = s.end[0].Save().difference;
      for (size_t i = offset; i < offset + size; ++i) {
        ASSERT_EQ(difference[i], x[1][i] - x[0][i]);
      }
    } else {
      EXPECT_EQ(a.format, WireFormat::kInt4);
    }
  }
}

TEST(FragmentTest, SavedStateRestoresOnlyIntoAsManyFragments) {
  Ends s("innov-int4:fragments=4");
  for (uint64_t round = 1; round <= 3; ++round) {
    s.Exchange(MakeExchangeId(round));
  }
  const EdgeCodecState::Saved saved = s.end[0].Save();
  ASSERT_EQ(saved.progress.size(), 4u);
  std::vector<float> x = s.x[0];
  EdgeCodecState again(PairCodec("innov-int4:fragments=4"), x,
                       std::make_shared<SnapshotCache>(), 0);
  ASSERT_TRUE(again.Restore(saved));
  for (uint64_t round = 4; round <= 6; ++round) {
    const EdgeMessage a = s.end[0].OnEmit(MakeExchangeId(round));
    const EdgeMessage b = again.OnEmit(MakeExchangeId(round));
    EXPECT_EQ(a.format, b.format);
    EXPECT_TRUE(std::ranges::equal(a.bytes.bytes(), b.bytes.bytes()));
  }
  EdgeCodecState other(PairCodec("innov-int4:fragments=2"), x,
                       std::make_shared<SnapshotCache>(), 0);
  EXPECT_FALSE(other.Restore(saved));
}

// D differs from the difference of the replicas meanwhile, while only one end
// sends a payload.
TEST(EdgeCodecStateTest, AResyncMissedByOneEndIsExactOneExchangeLater) {
  Ends s("innov-int4");
  s.Exchange(MakeExchangeId(kResync - 1));
  const ExchangeId missed = MakeExchangeId(kResync);
  const EdgeMessage a = s.end[0].OnEmit(missed);
  s.end[0].OnComplete(missed, &a, nullptr);
  s.end[1].OnComplete(missed, nullptr, &a);
  s.Exchange(MakeExchangeId(kResync + 1));
  const auto p = s.end[0].Save(), q = s.end[1].Save();
  for (size_t i = 0; i < p.difference.size(); ++i) {
    ASSERT_EQ(p.difference[i], -q.difference[i]);
    ASSERT_NEAR(p.difference[i], q.replica[i] - p.replica[i], 1e-6);
  }
}

TEST(EdgeCodecStateTest, TheSmallerCoefficientCounts) {
  for (const std::string_view codec : {"dense-f32", "innov-int8"}) {
    Ends s(codec);
    s.end[1].set_coefficient(0.125f);
    const std::vector<float> x[2] = {s.x[0], s.x[1]};
    s.Exchange(MakeExchangeId(1));
    for (size_t i = 0; i < x[0].size(); ++i) {
      ASSERT_NEAR(s.x[0][i], x[0][i] + 0.125f * (x[1][i] - x[0][i]), 0.02);
      ASSERT_NEAR(s.x[0][i] - x[0][i], x[1][i] - s.x[1][i], 1e-6);
    }
  }
}

TEST(EdgeCodecStateTest, AStatelessSnapshotIsEncodedOnceForAllEdges) {
  const auto codec = PairCodec("diff-int8");
  std::vector<float> x = Gaussian(RngKey(4));
  const auto cache = std::make_shared<SnapshotCache>();
  EdgeCodecState left(codec, x, cache, 1), right(codec, x, cache, 2);
  const EdgeMessage a = left.OnEmit(MakeExchangeId(1));
  const EdgeMessage b = right.OnEmit(MakeExchangeId(1));
  EXPECT_EQ(a.bytes.bytes().data(), b.bytes.bytes().data());
  x[0] += 1;
  const EdgeMessage c = right.OnEmit(MakeExchangeId(2));
  EXPECT_FALSE(std::ranges::equal(b.bytes.bytes(), c.bytes.bytes()));
  EXPECT_TRUE(left.Save().replica.empty());
}

TEST(EdgeCodecStateTest, AnEndRestoresItsSavedStateAndRefusesAnotherSize) {
  Ends s("innov-int4");
  for (uint64_t round = 1; round <= 5; ++round) {
    s.Exchange(MakeExchangeId(round));
  }
  const EdgeCodecState::Saved saved = s.end[0].Save();
  std::vector<float> x = s.x[0];
  EdgeCodecState again(PairCodec("innov-int4"), x,
                       std::make_shared<SnapshotCache>(), 0);
  ASSERT_TRUE(again.Restore(saved));
  const EdgeMessage a = s.end[0].OnEmit(MakeExchangeId(6));
  const EdgeMessage b = again.OnEmit(MakeExchangeId(6));
  EXPECT_EQ(b.format, WireFormat::kInt4);
  EXPECT_TRUE(std::ranges::equal(a.bytes.bytes(), b.bytes.bytes()));

  EdgeCodecState::Saved wrong = saved;
  wrong.difference.pop_back();
  EXPECT_FALSE(again.Restore(wrong));
  EXPECT_EQ(again.Save().difference, saved.difference);
  EdgeCodecState stateless(PairCodec("diff-int8"), x,
                           std::make_shared<SnapshotCache>(), 0);
  EXPECT_FALSE(stateless.Restore(saved));
}

}  // namespace edge_codec_state_test
}  // namespace gossamer
