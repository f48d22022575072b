// Two ends of an edge, and a ring of them: both see the same difference with
// opposite signs, and mixing keeps the mean.

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/rng.h"
#include "tests/algorithms/codec_testing.h"

namespace gossamer {
namespace {

TEST(CodecExchangeTest, ReplicaIsTheSumOfWhatTheReceiverDecodedBitForBit) {
  const ParameterLayout layout({{"g.w", Player::kGenerator, {9, 127}, {}},
                                {"g.b", Player::kGenerator, {9}, {}}});
  const size_t n = layout.size();
  for (const char* name : {"innov-int8", "innov-int4"}) {
    const auto codec = Make(name, layout);
    auto x = Gaussian("x", n);
    std::vector<float> replica(n), received(n), unused(n);
    for (int round = 0; round < 1000; ++round) {
      const auto step = Gaussian("step" + std::to_string(round), n);
      for (size_t i = 0; i < n; ++i) x[i] += 0.01f * step[i];
      const Message message(
          *codec, round == 0 ? codec->first_format() : codec->format(), x,
          replica);
      const Encoded encoded = message.encoded();
      codec->Complete(nullptr, &encoded, 1, received, unused);
      for (size_t i = 0; i < n; ++i) {
        ASSERT_EQ(std::bit_cast<uint32_t>(replica[i]),
                  std::bit_cast<uint32_t>(received[i]))
            << name << " round " << round << " at " << i;
      }
    }
    // And follows x to within what one step of quantization leaves.
    EXPECT_LT(Distance(x, replica), 0.01 * std::sqrt(n)) << name;
  }
}

TEST(CodecExchangeTest, ReplicaOfHugeValuesStaysFinite) {
  const size_t n = Layout().size();
  for (const WireFormat format : kFormats) {
    const auto codec = Make("innov-int4");
    std::vector<float> x(n, std::numeric_limits<float>::max()), replica(n);
    for (int round = 0; round < 6; ++round) {
      for (float& v : x) v = -v;
      const Message message(*codec, format, x, replica);
      EXPECT_TRUE(codec->Validate(message.encoded()).ok());
      ASSERT_TRUE(HostKernels().all_finite(replica));
    }
  }
}

// One end of an edge, without its protocol.
struct End {
  End(std::string_view name, size_t n, std::string_view start)
      : codec(Make(name)), x(Gaussian(start, n)), difference(n), replica(n) {}
  Message Emit(WireFormat format) {
    return Message(*codec, format, x, replica);
  }
  void Complete(const Message* mine, const Message* theirs, float c) {
    Encoded m, t;
    if (mine != nullptr) m = mine->encoded();
    if (theirs != nullptr) t = theirs->encoded();
    codec->Complete(mine ? &m : nullptr, theirs ? &t : nullptr, c, difference,
                    x);
  }
  std::shared_ptr<const Codec> codec;
  std::vector<float> x, difference, replica;
};

TEST(CodecExchangeTest, DifferencesOfTheTwoEndsAreOppositeWhateverIsExchanged) {
  const size_t n = Layout().size();
  End a("innov-int4", n, "a"), b("innov-int8", n, "b");
  const RngKey key(4);
  for (uint64_t round = 0; round < 60; ++round) {
    const WireFormat fa = round == 0 ? a.codec->first_format()
                          : round == 30
                              ? a.codec->resync_format()
                              : kFormats[key.Fold("a").Below(4, round)];
    const WireFormat fb = kFormats[key.Fold("b").Below(4, round)];
    const uint64_t skips = key.Fold("skip").Below(4, round);
    const bool from_a = skips != 1, from_b = skips != 2;
    Message ma, mb;
    if (from_a) ma = a.Emit(fa);
    if (from_b) mb = b.Emit(fb);
    const auto xa = a.x, xb = b.x;
    a.Complete(from_a ? &ma : nullptr, from_b ? &mb : nullptr, 0.4f);
    b.Complete(from_b ? &mb : nullptr, from_a ? &ma : nullptr, 0.4f);
    for (size_t i = 0; i < n; ++i) {
      ASSERT_EQ(a.difference[i], -b.difference[i]) << round << " " << i;
      const bool both = from_a && from_b;
      ASSERT_EQ(a.x[i], both ? xa[i] + 0.4f * a.difference[i] : xa[i]);
      ASSERT_EQ(b.x[i], both ? xb[i] + 0.4f * b.difference[i] : xb[i]);
    }
  }
}

TEST(CodecExchangeTest, StatelessCorrectionsAreOppositeAndNeedBothPayloads) {
  const size_t n = Layout().size();
  for (const char* name : {"dense-f32", "dense-bf16", "diff-int8"}) {
    const auto codec = Make(name);
    const Message ma(*codec, codec->format(), Gaussian("a", n));
    const Message mb(*codec, codec->format(), Gaussian("b", n));
    const Encoded a = ma.encoded(), b = mb.encoded();
    std::vector<float> here(n), there(n);
    codec->Complete(&a, nullptr, 0.5f, {}, here);
    codec->Complete(nullptr, &a, 0.5f, {}, here);
    EXPECT_THAT(here, testing::Each(0.0f));
    codec->Complete(&a, &b, 0.5f, {}, here);
    codec->Complete(&b, &a, 0.5f, {}, there);
    for (size_t i = 0; i < n; ++i) ASSERT_EQ(here[i], -there[i]);
    EXPECT_GT(Norm(here), 1);
  }
}

TEST(CodecExchangeTest, MixingOnARingReachesConsensusAndKeepsTheMean) {
  constexpr int kPeers = 6;
  const ParameterLayout layout({{"g.w", Player::kGenerator, {8, 128}, {}},
                                {"g.b", Player::kGenerator, {8}, {}}});
  const size_t n = layout.size();
  for (const auto& [name, floor] :
       {std::pair("dense-f32", 1e-12), std::pair("dense-bf16", 1e-4),
        std::pair("diff-int8", 1e-3), std::pair("innov-int8", 1e-12),
        std::pair("innov-int4", 1e-12)}) {
    const auto codec = Make(name, layout);
    const bool replicas = codec->needs_replica();
    std::vector<std::vector<float>> x(kPeers);
    std::vector<double> mean(n);
    for (int p = 0; p < kPeers; ++p) {
      x[p] = Gaussian("peer" + std::to_string(p), n);
      for (size_t i = 0; i < n; ++i) mean[i] += x[p][i] / double{kPeers};
    }
    // [p][0] and [p][1]: peer p's edges to its left and its right.
    std::vector<float> replica[kPeers][2], difference[kPeers][2];
    for (int p = 0; p < kPeers && replicas; ++p) {
      for (int side : {0, 1}) {
        replica[p][side].resize(n), difference[p][side].resize(n);
      }
    }
    for (int round = 0; round < 120; ++round) {
      const WireFormat format =
          round == 0 ? codec->first_format() : codec->format();
      Message sent[kPeers][2];
      for (int p = 0; p < kPeers; ++p) {
        for (int side : {0, 1}) {
          sent[p][side] = Message(*codec, format, x[p], replica[p][side]);
        }
      }
      for (int p = 0; p < kPeers; ++p) {
        for (int side : {0, 1}) {
          const int q = (p + (side == 0 ? kPeers - 1 : 1)) % kPeers;
          const Encoded mine = sent[p][side].encoded();
          const Encoded theirs = sent[q][1 - side].encoded();
          codec->Complete(&mine, &theirs, codec->gamma() / 3,
                          difference[p][side], x[p]);
        }
      }
    }
    double consensus = 0, drift = 0;
    for (size_t i = 0; i < n; ++i) {
      double now = 0;
      for (int p = 0; p < kPeers; ++p) now += x[p][i] / double{kPeers};
      for (int p = 0; p < kPeers; ++p) {
        consensus += std::pow(x[p][i] - now, 2) / (kPeers * double(n));
      }
      drift = std::max(drift, std::abs(now - mean[i]));
    }
    EXPECT_LT(consensus, floor) << name;
    EXPECT_LT(drift, 2e-6) << name;
  }
}

}  // namespace
}  // namespace gossamer
