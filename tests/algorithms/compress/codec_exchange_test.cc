// Two ends of an edge, and a ring of them: both see the same difference with
// opposite signs, and mixing keeps the mean.

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/base/ids.h"
#include "algorithms/base/rng.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/algorithms/compress/codec_testing.h"

namespace gossamer {
namespace codec_exchange_test {

TEST(CodecExchangeTest, ReplicaIsTheSumOfWhatTheReceiverDecodedBitForBit) {
  const ParameterLayout layout({{"g.w", Player::kGenerator, {9, 127}, {}},
                                {"g.b", Player::kGenerator, {9}, {}}});
  const size_t n = layout.size();
  for (const std::string_view name : Codec::Names()) {
    const auto codec = Make(name, layout);
    if (!codec->needs_replica()) continue;
    auto x = Gaussian("x", n);
    std::vector<float> replica(n), received(n), unused(n);
    for (int round = 0; round < 1000; ++round) {
      const auto step = Gaussian("step" + std::to_string(round), n);
      for (size_t i = 0; i < n; ++i) x[i] += 0.01f * step[i];
      const Message message(
          *codec, round == 0 ? codec->first_format() : codec->format(), x,
          replica, MakeExchangeId(static_cast<uint64_t>(round)));
      const Encoded encoded = message.encoded();
      codec->Complete(nullptr, &encoded, 1, received, unused);
      for (size_t i = 0; i < n; ++i) {
        ASSERT_EQ(std::bit_cast<uint32_t>(replica[i]),
                  std::bit_cast<uint32_t>(received[i]))
            << name << " round " << round << " at " << i;
      }
    }
    // The replica follows x: the rest is what one step and a few before it
    // leave.  Top-k keeps only one value of sixty.
    const WireFormat format = codec->format();
    // Its step stays too short for long.
    if (format == WireFormat::kUnit) continue;
    const double left = format == WireFormat::kTopK  ? 0.2
                        : format >= WireFormat::kLm2 ? 0.02
                                                     : 0.01;
    EXPECT_LT(Distance(x, replica), left * std::sqrt(n)) << name;
  }
}

// ‖x − x̂‖ of a fixed x falls until it is rounding.
TEST(CodecExchangeTest, RepeatedInnovationsConvergeToTheParameters) {
  const ParameterLayout layout({{"g.w", Player::kGenerator, {7, 1000}, {}},
                                {"g.b", Player::kGenerator, {9}, {}}});
  const size_t n = layout.size();
  const auto x = Gaussian("x", n);
  for (const std::string_view name : Codec::Names()) {
    const auto codec = Make(name, layout);
    if (!codec->needs_replica() || codec->format() == WireFormat::kUnit) {
      continue;
    }
    std::vector<float> replica(n);
    double left = Norm(x);
    int rounds = 0;
    while (left > 1e-4 * Norm(x)) {
      Message(*codec, codec->format(), x, replica);
      const double now = Distance(x, replica);
      ASSERT_LT(now, left) << name << " round " << rounds;
      left = now;
      ASSERT_LT(++rounds, 600) << name;
    }
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
    const WireFormat fa =
        round == 0 ? a.codec->first_format()
        : round == 30
            ? a.codec->resync_format()
            : kFormats[key.Fold("a").Below(std::size(kFormats), round)];
    const WireFormat fb =
        kFormats[key.Fold("b").Below(std::size(kFormats), round)];
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
  for (const std::string_view name : Codec::Names()) {
    const auto codec = Make(name);
    if (codec->needs_replica() || codec->memory() == EdgeMemory::kShared) {
      continue;
    }
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

// Eight peers in a ring that exchange vectors and change them by corrections
// only.
class Ring {
 public:
  static constexpr int kPeers = 8;

  Ring(std::shared_ptr<const Codec> codec, size_t n)
      : codec_(std::move(codec)), n_(n), start_mean_(n) {
    const bool replicas = codec_->needs_replica();
    for (int p = 0; p < kPeers; ++p) {
      x_[p] = Gaussian("peer" + std::to_string(p), n);
      for (size_t i = 0; i < n; ++i)
        start_mean_[i] += x_[p][i] / double{kPeers};
      for (int side : {0, 1}) {
        replica_[p][side].resize(replicas ? n : 0);
        difference_[p][side].resize(replicas ? n : 0);
      }
    }
  }

  void Mix(int round) {
    const WireFormat format =
        round == 0 ? codec_->first_format() : codec_->format();
    Message sent[kPeers][2];
    for (int p = 0; p < kPeers; ++p) {
      for (int side : {0, 1}) {
        sent[p][side] = Message(*codec_, format, x_[p], replica_[p][side],
                                MakeExchangeId(static_cast<uint64_t>(round)));
      }
    }
    for (int p = 0; p < kPeers; ++p) {
      for (int side : {0, 1}) {
        const int q = (p + (side == 0 ? kPeers - 1 : 1)) % kPeers;
        const Encoded mine = sent[p][side].encoded();
        const Encoded theirs = sent[q][1 - side].encoded();
        codec_->Complete(&mine, &theirs, codec_->gamma() / 3,
                         difference_[p][side], x_[p]);
      }
    }
  }

  // Returns the root mean square of x_p − x̄ over peers and parameters.
  double ConsensusDistance() const {
    double sum = 0;
    for (size_t i = 0; i < n_; ++i) {
      for (int p = 0; p < kPeers; ++p) sum += std::pow(x_[p][i] - Mean(i), 2);
    }
    return std::sqrt(sum / (kPeers * static_cast<double>(n_)));
  }

  double DriftOfTheMean() const {
    double drift = 0;
    for (size_t i = 0; i < n_; ++i) {
      drift = std::max(drift, std::abs(Mean(i) - start_mean_[i]));
    }
    return drift;
  }

 private:
  double Mean(size_t i) const {
    double mean = 0;
    for (int p = 0; p < kPeers; ++p) mean += x_[p][i] / double{kPeers};
    return mean;
  }

  const std::shared_ptr<const Codec> codec_;
  const size_t n_;
  std::vector<float> x_[kPeers];
  std::vector<double> start_mean_;
  // [p][0] and [p][1]: peer p's edges to its left and its right.
  std::vector<float> replica_[kPeers][2], difference_[kPeers][2];
};

TEST(CodecExchangeTest, MixingOnARingReachesConsensusAndKeepsTheMean) {
  const ParameterLayout layout({{"g.w", Player::kGenerator, {3, 1000}, {}},
                                {"g.b", Player::kGenerator, {8}, {}}});
  // The consensus distance after so many rounds at a codec's own γ, as a share
  // of that at the start.  Stateless codecs have a floor.
  struct Case {
    std::string_view name;
    int rounds;
    double share;
  };
  std::vector<Case> cases = {
      {"dense-f32", 120, 1e-6},         {"dense-bf16", 120, 1e-3},
      {"diff-int8", 120, 4e-3},         {"innov-int8", 120, 1e-6},
      {"innov-int4", 120, 1e-6},        {"auto", 120, 1e-6},
      {"innov-lm2", 240, 1e-4},         {"innov-sign", 1200, 1e-3},
      {"innov-topk", 2400, 1e-3},       {"innov-topk:k=512", 250, 1e-4},
      {"innov-topk:k=2048", 120, 1e-6}, {"dyna", 1200, 1e-3},
  };
  // A codec without a line of its own comes as near as the slowest ones.
  for (const std::string_view name : Codec::Names()) {
    const bool listed = std::ranges::any_of(
        cases, [&](const Case& c) { return c.name.starts_with(name); });
    if (listed || Make(name)->memory() == EdgeMemory::kShared) continue;
    cases.push_back({name, 2400, 4e-3});
  }
  for (const auto& [name, rounds, share] : cases) {
    Ring ring(Make(name, layout), layout.size());
    const double start = ring.ConsensusDistance();
    for (int round = 0; round < rounds; ++round) ring.Mix(round);
    EXPECT_LT(ring.ConsensusDistance(), share * start) << name;
    EXPECT_LT(ring.DriftOfTheMean(), rounds <= 400 ? 3e-6 : 6e-6) << name;
  }
}

// Dyna-COLD, equation 9: |x − x̂| stays within the step s_k while that shrinks
// no faster than one bit per value can follow.
TEST(CodecExchangeTest, OneBitFollowsWithinTheShrinkingStep) {
  const ParameterLayout layout({{"g.w", Player::kGenerator, {7, 1000}, {}}});
  const size_t n = layout.size();
  const auto codec = Make("dyna:scale=8,decay=0.98,floor=1e-3", layout);
  EXPECT_EQ(codec->EncodedSize(codec->format()), 4 * ((n + 31) / 32));
  const auto x = Gaussian("x", n);
  std::vector<float> replica(n);
  double step = 8;
  for (uint64_t round = 1; round <= 600; ++round) {
    step = std::max(step * 0.98, 1e-3);
    Message(*codec, codec->format(), x, replica, MakeExchangeId(round));
    double worst = 0;
    for (size_t i = 0; i < n; ++i) {
      worst = std::max(worst, std::abs(double{x[i]} - replica[i]));
    }
    ASSERT_LE(worst, 1.01 * step) << round;
  }
}

}  // namespace codec_exchange_test
}  // namespace gossamer
