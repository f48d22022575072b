// The edge's promises under thousands of random fault schedules.  A failing
// seed is printed; GOSSAMER_EDGE_SEED=<seed> runs that one alone.

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "algorithms/base/rng.h"
#include "gtest/gtest.h"
#include "tests/algorithms/edge/edge_fleet.h"
#include "tests/algorithms/edge/edge_link.h"
#include "tests/algorithms/edge/edge_pair.h"

namespace gossamer {
namespace edge_property_test {

// Sanitizers get fewer schedules (see CMakeLists.txt).
#ifndef GOSSAMER_EDGE_SCHEDULES
#define GOSSAMER_EDGE_SCHEDULES 2400
#endif
constexpr uint64_t kSchedules = GOSSAMER_EDGE_SCHEDULES;

std::vector<uint64_t> Seeds(uint64_t count) {
  if (const char* one = std::getenv("GOSSAMER_EDGE_SEED")) {
    return {std::strtoull(one, nullptr, 10)};
  }
  std::vector<uint64_t> seeds(count);
  for (uint64_t i = 0; i < count; ++i) seeds[i] = i;
  return seeds;
}

// Codec, whether the ring is permuted.
using Case = std::tuple<std::string_view, bool>;

std::string NameOf(const testing::TestParamInfo<Case>& info) {
  std::string name(std::get<0>(info.param));
  std::erase_if(name, [](char c) { return !std::isalnum(c); });
  return name + (std::get<1>(info.param) ? "PermutedRing" : "Ring");
}

class FleetTest : public testing::TestWithParam<Case> {
 protected:
  static FleetOptions Options(uint64_t seed) {
    FleetOptions o;
    std::tie(o.codec, o.permuted) = GetParam();
    o.overlap = static_cast<int>(seed % 3);
    o.quantized = seed % 2 == 0 || Fragments() > 1;
    o.seed = seed;
    return o;
  }
  // Returns the rounds after which all of the vector has been exchanged once.
  static uint64_t Fragments() {
    const std::string_view codec = std::get<0>(GetParam());
    return codec.ends_with("fragments=4") || codec.ends_with("every 4") ? 4 : 1;
  }
  // Bounds on the consensus distance: after 100 rounds without faults, after 70
  // without and 60 with them, and the latter with a slow peer.
  struct Floor {
    double calm, faulty, slow = 0.02;
  };
  static Floor ConsensusFloor() {
    const std::string_view codec = std::get<0>(GetParam());
    if (codec == "diff-int8") return {2e-5, 2e-5};
    if (Fragments() > 1) return {1e-12, 1e-7};
    if (codec == "innov-lm2") return {3e-4, 2e-3};
    if (codec == "innov-sign") return {0.03, 0.05};
    if (codec == "innov-topk:k=512") return {1e-5, 2e-3, 0.1};
    return {1e-12, 1e-8};
  }
};

INSTANTIATE_TEST_SUITE_P(
    Edge, FleetTest,
    testing::Combine(testing::Values("dense-f32", "diff-int8", "innov-int8",
                                     "innov-int4", "innov-lm2", "innov-sign",
                                     "innov-topk:k=512",
                                     "innov-int4:fragments=4",
                                     "dense-f32:fragments=4",
                                     "dense-f32; discriminator=innov-int8 "
                                     "every 4"),
                     testing::Bool()),
    NameOf);

TEST_P(FleetTest, WithoutFaultsEveryExchangeCorrects) {
  for (const uint64_t seed : Seeds(6)) {
    SCOPED_TRACE(seed);
    FleetOptions o = Options(seed);
    o.rounds = 100 * Fragments();
    o.deadlines = false;
    const FleetReport r = RunFleet(o);
    EXPECT_EQ(r.failure, "");
    // An exchange of several parts corrects each of them.
    EXPECT_GE(r.share, 1.0);
    EXPECT_LE(r.mean_change, 1e-6);
    EXPECT_LE(r.consensus, ConsensusFloor().calm);
  }
}

// Every correction is applied once and with opposite signs at both ends, D is
// opposite, queues are bounded and no rule is violated (all in `failure`).  The
// mean does not move, and the fleet reaches consensus once faults stop.
TEST_P(FleetTest, FaultsNeverDamageTheMean) {
  double worst_mean = 0, worst_consensus = 0;
  // Fleets with fragments run more rounds, hence fewer schedules.
  const uint64_t schedules = kSchedules / (Fragments() > 1 ? 64 : 8);
  for (const uint64_t seed : Seeds(schedules)) {
    SCOPED_TRACE(seed);
    FleetOptions o = Options(seed);
    o.rounds = 60 * Fragments();
    o.calm_rounds = 70 * Fragments();
    o.faults = kFaulty;
    o.slow_peer = seed % 4 == 3;
    o.noise = seed % 5 == 4 ? 0.01 : 0;
    const FleetReport r = RunFleet(o);
    ASSERT_EQ(r.failure, "");
    ASSERT_LE(r.mean_change, 1e-6);
    ASSERT_GT(r.share, 0.1);
    worst_mean = std::max(worst_mean, r.mean_change);
    if (o.noise > 0) continue;
    ASSERT_LT(r.consensus_in_faults, 1) << "mixing diverges";
    if (o.slow_peer) {
      ASSERT_LE(r.consensus, ConsensusFloor().slow);
      continue;
    }
    worst_consensus = std::max(worst_consensus, r.consensus);
    ASSERT_LE(r.consensus, ConsensusFloor().faulty);
  }
  RecordProperty("worst_mean_change", absl::StrCat(worst_mean));
  RecordProperty("worst_consensus", absl::StrCat(worst_consensus));
}

TEST_P(FleetTest, AThousandFaultyRoundsWithLocalStepsKeepTheMean) {
  double worst_mean = 0;
  for (const uint64_t seed : Seeds(std::max<uint64_t>(1, kSchedules / 800))) {
    SCOPED_TRACE(seed);
    FleetOptions o = Options(seed);
    o.rounds = 1000;
    o.faults = kFaulty;
    o.faults.repeat = 0.05;
    o.faults.swap = 0.01;
    o.noise = 0.01;
    const FleetReport r = RunFleet(o);
    ASSERT_EQ(r.failure, "");
    ASSERT_LE(r.mean_change, 1e-6);
    ASSERT_GT(r.share, 0.1);
    worst_mean = std::max(worst_mean, r.mean_change);
  }
  RecordProperty("worst_mean_change", absl::StrCat(worst_mean));
}

// Peers that mix in lockstep over a perfect network, dense and at h = 0.
class Lockstep {
 public:
  explicit Lockstep(int peers) : n_(PairLayout().size()) {
    for (int a = 0; a < peers; ++a) {
      for (int b = a + 1; b < peers; ++b) {
        auto& pair = pairs_[{a, b}];
        pair = std::make_unique<EdgePair>(
            PairCodec("dense-f32"),
            EdgePair::Vectors{std::vector<float>(n_), std::vector<float>(n_)});
        pair->Connect(1);
      }
    }
    x_.assign(static_cast<size_t>(peers), std::vector<float>(n_));
  }

  void Randomize(RngKey key) {
    for (size_t i = 0; i < x_.size(); ++i) key.Fold(i).FillGaussian(x_[i]);
  }
  // Mixes over the ring `order` with weights 1/3 each.
  void Mix(const std::vector<int>& order, uint64_t round) {
    const auto before = x_;
    const size_t m = order.size();
    for (size_t k = 0; k < m; ++k) {
      const int a = std::min(order[k], order[(k + 1) % m]);
      const int b = std::max(order[k], order[(k + 1) % m]);
      EdgePair& pair = *pairs_.at({a, b});
      pair.x[0] = before[a];
      pair.x[1] = before[b];
      pair.Mix(MakeExchangeId(round), 1.0f / 3);
      for (size_t i = 0; i < n_; ++i) {
        x_[a][i] += pair.x[0][i] - before[a][i];
        x_[b][i] += pair.x[1][i] - before[b][i];
      }
    }
  }
  // Returns ‖X − X̄‖².
  double Spread() const {
    double sum = 0;
    for (size_t i = 0; i < n_; ++i) {
      double mean = 0;
      for (const auto& v : x_) mean += v[i] / static_cast<double>(x_.size());
      for (const auto& v : x_) sum += (v[i] - mean) * (v[i] - mean);
    }
    return sum;
  }

 private:
  size_t n_;
  std::map<std::pair<int, int>, std::unique_ptr<EdgePair>> pairs_;
  std::vector<std::vector<float>> x_;
};

std::vector<int> Ring(int m) {
  std::vector<int> order(static_cast<size_t>(m));
  for (int i = 0; i < m; ++i) order[i] = i;
  return order;
}

// The spectral radius ρ(W − J) of a ring with weights 1/3 is max |1 +
// 2·cos(2πk/M)|/3, k ≠ 0.
TEST(ContractionTest, FixedRingContractsInEveryRoundByItsSpectralGap) {
  for (const int m : {3, 4, 5, 6, 8}) {
    SCOPED_TRACE(m);
    double rho = 0;
    for (int k = 1; k < m; ++k) {
      rho = std::max(rho, std::abs(1 + 2 * std::cos(2 * M_PI * k / m)) / 3);
    }
    Lockstep fleet(m);
    fleet.Randomize(RngKey(3).Fold(m));
    const double start = fleet.Spread();
    for (uint64_t round = 1; round <= 40; ++round) {
      const double before = fleet.Spread();
      if (before < 1e-8 * start) break;  // rounding would show
      fleet.Mix(Ring(m), round);
      EXPECT_LE(std::sqrt(fleet.Spread() / before), rho + 1e-3) << round;
    }
  }
}

// E‖(W − J)X‖² / ‖X − X̄‖² = (M/3 − 1)/(M − 1) for any X (topology/README.md).
TEST(ContractionTest, PermutedRingContractsInTheMeanSquareAsTheorySays) {
  constexpr int kDraws = 300;
  for (const int m : {4, 6, 8}) {
    SCOPED_TRACE(m);
    Lockstep fleet(m);
    double sum = 0, squares = 0;
    for (uint64_t round = 1; round <= kDraws; ++round) {
      const RngKey key = RngKey(5).Fold(m).Fold(round);
      fleet.Randomize(key.Fold("x"));
      const double before = fleet.Spread();
      fleet.Mix(key.Fold("order").Permutation(m), round);
      const double ratio = fleet.Spread() / before;
      sum += ratio;
      squares += ratio * ratio;
    }
    const double mean = sum / kDraws;
    const double variance = squares / kDraws - mean * mean;
    const double standard_error = std::sqrt(variance / (kDraws - 1));
    EXPECT_NEAR(mean, (m / 3.0 - 1) / (m - 1), 3 * standard_error);
  }
}

// A transport that delivers in any order, repeats, loses, and brings frames of
// connections long gone.  Only safety is checked until it is honest again.
class LyingTransport {
 public:
  LyingTransport(std::string_view codec, int window, RngKey key)
      : codec_(PairCodec(codec)),
        draws_(key.Fold("draws")),
        pair_(codec_, Start(key), window),
        logs_{CorrectionLog(false), CorrectionLog(true)} {
    for (int e : {0, 1}) pair_.edge[e]->add_observer(&logs_[e]);
  }

  void Run(int moves) {
    pair_.Connect(++connection_);
    for (int i = 0; i < moves; ++i) Move(static_cast<int>(draws_.Below(2)));
    Honest();
  }
  size_t corrections() const { return logs_[0].entries().size(); }

 private:
  struct Flight {
    int to;
    uint64_t connection;
    Edge::OutFrame frame;
  };

  static EdgePair::Vectors Start(RngKey key) {
    EdgePair::Vectors x;
    for (int e : {0, 1}) {
      x[e].resize(PairLayout().size());
      key.Fold(e).FillGaussian(x[e]);
    }
    return x;
  }

  void Move(int e) {
    Edge& edge = *pair_.edge[e];
    switch (draws_.Below(6)) {
      case 0:
        if (edge.decided() > pair_.edge[1 - e]->decided() + 2) break;
        edge.Emit(edge.decided() + draws_.Below(10) / 9, 0.25f, true);
        break;
      case 1:
        edge.Complete(edge.decided() - draws_.Below(4));
        break;
      case 2:
        if (draws_.Chance(0.3)) Reconnect();
        break;
      default:
        Deliver();
    }
    edge.Flush();
    Collect(e);
  }

  void Reconnect() {
    ++connection_;
    for (int e : {0, 1}) {
      pair_.edge[e]->ConnectionDown(connection_ - 1);
      pair_.edge[e]->ConnectionUp(connection_);
    }
    for (int e : {0, 1}) Collect(e);
  }

  void Collect(int e) {
    for (Edge::OutFrame& f : pair_.edge[e]->TakeFrames()) {
      flying_.push_back({1 - e, connection_, std::move(f)});
    }
    if (flying_.size() > 40) flying_.erase(flying_.begin());
  }

  void Deliver() {
    if (flying_.empty()) return;
    // Older frames are preferred, or all would be gaps.
    const auto i =
        static_cast<ptrdiff_t>(draws_.Below(1 + draws_.Below(flying_.size())));
    const Flight f = flying_[i];
    if (draws_.Chance(0.7)) flying_.erase(flying_.begin() + i);
    const absl::Status status =
        pair_.edge[f.to]->OnFrame(f.connection, f.frame.head, f.frame.body);
    EXPECT_TRUE(status.ok()) << status;
    Collect(f.to);
    for (int e : {0, 1}) {
      const auto& s = pair_.edge[e]->state();
      EXPECT_LE(s.mine.size(), 2 * s.window);
      EXPECT_LE(s.theirs.size(), 2 * s.window);
    }
  }

  void Honest() {
    pair_.Connect(++connection_);
    const ExchangeId end =
        std::max(pair_.edge[0]->decided(), pair_.edge[1]->decided());
    for (int i = 0; i < 40; ++i) {
      for (auto& edge : pair_.edge) {
        edge->SkipTo(end);
        edge->Announce();
        edge->Complete(end);
      }
      pair_.Pump();
    }
    for (auto& edge : pair_.edge) {
      EXPECT_TRUE(edge->settled());
      EXPECT_EQ(edge->done(), end);
    }
    EXPECT_EQ(logs_[0].entries(), logs_[1].entries());
    for (const auto& [key, entry] : logs_[0].entries()) {
      EXPECT_EQ(entry.times, 1) << key.first;
    }
  }

  std::shared_ptr<const Codec> codec_;
  Draws draws_;
  EdgePair pair_;
  std::array<CorrectionLog, 2> logs_;
  uint64_t connection_ = 0;
  std::vector<Flight> flying_;
};

TEST(LyingTransportTest, NoOrderOfMessagesBreaksTheEdge) {
  size_t corrections = 0;
  const std::vector<uint64_t> seeds = Seeds(kSchedules);
  for (const uint64_t seed : seeds) {
    SCOPED_TRACE(seed);
    const std::string_view codec = seed % 2 ? "innov-int4" : "diff-int8";
    LyingTransport transport(codec, 1 + static_cast<int>(seed % 3),
                             RngKey(seed));
    transport.Run(600);
    corrections += transport.corrections();
    if (HasFailure()) return;
  }
  EXPECT_GT(corrections, 5 * seeds.size());
}

}  // namespace edge_property_test
}  // namespace gossamer
