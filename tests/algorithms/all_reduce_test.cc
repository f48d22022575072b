#include "algorithms/collective/all_reduce.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/rng.h"

namespace gossamer {
namespace {

using testing::HasSubstr;

AllReduce Make(std::string_view name, int rank, int size, size_t n,
               std::shared_ptr<const Codec> codec = nullptr) {
  auto made = AllReduce::Create(name, rank, size, n, std::move(codec));
  EXPECT_TRUE(made.ok()) << made.status();
  return *std::move(made);
}

std::vector<std::vector<float>> RandomVectors(int size, size_t n, RngKey key) {
  std::vector<std::vector<float>> x(size, std::vector<float>(n));
  for (int r = 0; r < size; ++r) key.Fold(r).FillGaussian(x[r]);
  return x;
}

struct InFlight {
  int from, to;
  uint32_t step;
  Payload bytes;
};

// Ranks start and messages arrive in an order drawn from `key`; with `repeats`,
// one message in three comes twice.
void RunInRandomOrder(std::string_view name, std::vector<std::vector<float>>& x,
                      RngKey key, bool repeats,
                      std::shared_ptr<const Codec> codec = nullptr) {
  const int size = static_cast<int>(x.size());
  std::vector<AllReduce> ranks;
  std::vector<int> waiting;
  for (int r = 0; r < size; ++r) {
    ranks.push_back(Make(name, r, size, x[r].size(), codec));
    waiting.push_back(r);
  }
  std::vector<InFlight> net;
  uint64_t draw = 0;
  const auto collect = [&](int r) {
    for (AllReduce::Message& m : ranks[r].TakeOutgoing()) {
      net.push_back({r, m.rank, m.step, m.bytes});
    }
  };
  while (!waiting.empty() || !net.empty()) {
    const size_t choices = waiting.size() + net.size();
    size_t i = key.Below(choices, draw++);
    if (i < waiting.size()) {
      const int r = waiting[i];
      waiting.erase(waiting.begin() + static_cast<ptrdiff_t>(i));
      ranks[r].Start(x[r], RngKey(5).Fold(r).Bits(0));
      collect(r);
      continue;
    }
    i -= waiting.size();
    const InFlight m = net[i];
    if (!repeats || key.Below(3, draw++) > 0) {
      net.erase(net.begin() + static_cast<ptrdiff_t>(i));
    }
    ASSERT_TRUE(ranks[m.to].OnMessage(m.from, m.step, m.bytes).ok());
    collect(m.to);
  }
  for (const AllReduce& rank : ranks) {
    EXPECT_TRUE(rank.done());
    EXPECT_EQ(rank.awaited(), std::nullopt);
  }
}

struct Case {
  std::string_view name;
  int size;
};

class AllReduceTest : public testing::TestWithParam<Case> {};

TEST_P(AllReduceTest, GivesTheMeanInTheSameBitsAtAllRanksInAnyOrder) {
  const auto [name, size] = GetParam();
  for (const size_t n : {0, 1, 2, 3, 5, 8, 17, 129, 2500}) {
    SCOPED_TRACE(n);
    const RngKey key = RngKey(7).Fold(n).Fold(size);
    const auto x = RandomVectors(size, n, key.Fold("x"));
    std::vector<float> first;
    for (int order = 0; order < 12; ++order) {
      auto y = x;
      RunInRandomOrder(name, y, key.Fold(order), order % 2 == 1);
      if (HasFatalFailure()) return;
      if (order == 0) first = y[0];
      for (int r = 0; r < size; ++r) {
        EXPECT_TRUE(std::ranges::equal(y[r], first, {},
                                       std::bit_cast<uint32_t, float>,
                                       std::bit_cast<uint32_t, float>))
            << "rank " << r << " of order " << order;
      }
    }
    for (size_t i = 0; i < n; ++i) {
      double mean = 0, magnitude = 0;
      for (int r = 0; r < size; ++r) {
        mean += x[r][i] / size;
        magnitude += std::abs(x[r][i]) / size;
      }
      // M roundings of partial sums no larger than M times the magnitude.
      const double eps = std::numeric_limits<float>::epsilon();
      EXPECT_NEAR(first[i], mean, eps * (size + 1) * magnitude);
    }
  }
}

TEST_P(AllReduceTest, ResentMessagesReplaceWhatAConnectionLost) {
  const auto [name, size] = GetParam();
  const size_t n = 64;
  const RngKey key = RngKey(11).Fold(size);
  auto x = RandomVectors(size, n, key);
  auto expected = x;
  RunInRandomOrder(name, expected, key, false);
  std::vector<AllReduce> ranks;
  for (int r = 0; r < size; ++r) {
    ranks.push_back(Make(name, r, size, n));
    ranks[r].Start(x[r]);
    ranks[r].TakeOutgoing();  // and loses them all
  }
  const auto all_done = [&] {
    return std::ranges::all_of(ranks, &AllReduce::done);
  };
  for (int sweep = 0; !all_done(); ++sweep) {
    ASSERT_LE(sweep, 2 * size);
    for (int to = 0; to < size; ++to) {
      for (int from = 0; from < size; ++from) {
        for (const auto& m : ranks[from].SentTo(to)) {
          ASSERT_TRUE(ranks[to].OnMessage(from, m.step, m.bytes).ok());
        }
      }
    }
  }
  EXPECT_EQ(x, expected);
}

TEST_P(AllReduceTest, PassesOnWhatIsNotFiniteToAllRanks) {
  const auto [name, size] = GetParam();
  auto x = RandomVectors(size, 20, RngKey(3));
  x[size / 2][13] = std::numeric_limits<float>::infinity();
  x[0][4] = std::numeric_limits<float>::quiet_NaN();
  RunInRandomOrder(name, x, RngKey(5), false);
  for (const auto& v : x) {
    for (size_t i = 0; i < v.size(); ++i) {
      EXPECT_EQ(std::isfinite(v[i]), i != 13 && i != 4) << i;
    }
  }
}

TEST_P(AllReduceTest, RefusesWhatTheScheduleDoesNotHave) {
  const auto [name, size] = GetParam();
  if (size == 1) {
    AllReduce alone = Make(name, 0, 1, 5);
    EXPECT_EQ(alone.OnMessage(0, 0, {}).code(), absl::StatusCode::kDataLoss);
    return;
  }
  const size_t n = 50;
  for (int rank = 0; rank < size; ++rank) {
    AllReduce op = Make(name, rank, size, n);
    std::vector<float> x(n, 1.0f);
    op.Start(x);
    const auto awaited = op.awaited();
    ASSERT_TRUE(awaited.has_value());
    int accepted = 0;
    for (int from = -1; from <= size; ++from) {
      for (const uint32_t step : {0u, 1u, 5u, 17u, 1000u, ~0u}) {
        for (const size_t bytes : {size_t{0}, size_t{1}, 4 * n + 4}) {
          const absl::Status status = op.OnMessage(
              from, step, Payload::FromVector(std::vector<std::byte>(bytes)));
          EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
          accepted += status.ok();
        }
      }
    }
    EXPECT_EQ(accepted, 0);
    EXPECT_EQ(op.awaited(), awaited);
    EXPECT_EQ(x, std::vector<float>(n, 1.0f));
  }
}

ParameterLayout GradientLayout() {
  return ParameterLayout({{"g", Player::kGenerator, {33, 41}, {}},
                          {"g.b", Player::kGenerator, {41}, {}},
                          {"d", Player::kDiscriminator, {64, 16}, {}},
                          {"d.b", Player::kDiscriminator, {3}, {}}});
}

std::shared_ptr<const Codec> GradientCodec(std::string_view name) {
  return Codec::Create(name, GradientLayout()).value();
}

constexpr const char* kGradientCodecs[] = {
    "qsgd:raw=f32", "qsgd:levels=1,bucket=128,raw=f32,coding=omega",
    "qsgd:levels=127,norm=l2", "qsgd:norm=l2,coding=gamma"};

TEST(QuantizedAllReduceTest, GivesTheMeanOfWhatAllDecodeInTheSameBits) {
  const size_t n = GradientLayout().size();
  for (const char* const name : kGradientCodecs) {
    const auto codec = GradientCodec(name);
    for (const int size : {1, 2, 3, 5}) {
      auto x = RandomVectors(size, n, RngKey(2).Fold(size));
      x[0][1400] = -0.0f;  // in a raw segment: no rank may keep the sign
      std::vector<double> mean(n);
      for (int r = 0; r < size; ++r) {
        std::vector<std::byte> bytes(codec->EncodedSize(codec->format()));
        codec->Encode(codec->format(), x[r], {}, RngKey(5).Fold(r).Bits(0),
                      bytes);
        std::vector<float> decoded(n);
        codec->Add({codec->format(), bytes}, decoded);
        // Alone, there is nobody to send to.
        if (size == 1) decoded = x[r];
        for (size_t i = 0; i < n; ++i) mean[i] += decoded[i] / double(size);
      }
      std::vector<float> first;
      for (int order = 0; order < 8; ++order) {
        auto y = x;
        RunInRandomOrder("all-gather", y, RngKey(order), order % 2 == 1, codec);
        if (HasFatalFailure()) return;
        if (order == 0) first = y[0];
        for (int r = 0; r < size; ++r) {
          ASSERT_EQ(std::memcmp(y[r].data(), first.data(), 4 * n), 0);
        }
      }
      for (size_t i = 0; i < n; ++i) ASSERT_NEAR(first[i], mean[i], 1e-5);
    }
  }
}

TEST(QuantizedAllReduceTest, HasNoBiasAndErrorsOfRanksAverageOut) {
  const size_t n = GradientLayout().size();
  constexpr int kDraws = 300;
  for (const char* const name : {kGradientCodecs[0], kGradientCodecs[1]}) {
    const auto codec = GradientCodec(name);
    double variance[2] = {};
    for (const int size : {2, 8}) {
      // Equal gradients, so that only the draws can make a difference.
      const auto one = RandomVectors(1, n, RngKey(3))[0];
      std::vector<double> sum(n);
      double squares = 0;
      for (int draw = 0; draw < kDraws; ++draw) {
        std::vector<std::vector<float>> x(size, one);
        std::vector<AllReduce> ranks;
        for (int r = 0; r < size; ++r) {
          ranks.push_back(Make("all-gather", r, size, n, codec));
          ranks[r].Start(x[r], RngKey(draw).Fold(r).Bits(0));
        }
        for (int r = 1; r < size; ++r) {
          for (const auto& m : ranks[r].SentTo(0)) {
            ASSERT_TRUE(ranks[0].OnMessage(r, m.step, m.bytes).ok());
          }
        }
        ASSERT_TRUE(ranks[0].done());
        for (size_t i = 0; i < n; ++i) {
          const double error = static_cast<double>(x[0][i]) - one[i];
          sum[i] += error / kDraws;
          squares += error * error / kDraws;
        }
      }
      // The mean of K draws without bias has 1/K of the variance of one.
      double mean = 0;
      for (const double s : sum) mean += s * s;
      EXPECT_LE(mean, 1.3 * squares / kDraws) << name;
      EXPECT_GT(squares, 0);
      variance[size == 8] = squares;
    }
    EXPECT_NEAR(variance[0] / variance[1], 4, 0.2) << name;
  }
}

TEST(QuantizedAllReduceTest, RefusesWhatIsNoPayloadAndKeepsItsState) {
  const size_t n = GradientLayout().size();
  for (const char* const name : kGradientCodecs) {
    const auto codec = GradientCodec(name);
    AllReduce other = Make("all-gather", 1, 2, n, codec);
    AllReduce op = Make("all-gather", 0, 2, n, codec);
    auto x = RandomVectors(2, n, RngKey(4));
    op.Start(x[0]);
    other.Start(x[1]);
    const auto mine = x[0];
    const auto honest = other.TakeOutgoing().at(0);
    const auto bytes = honest.bytes.bytes();
    for (const size_t size :
         {size_t{0}, size_t{1}, bytes.size() - 1, bytes.size() + 1, 4 * n}) {
      std::vector<std::byte> wrong(size);
      std::ranges::copy(bytes.first(std::min(size, bytes.size())),
                        wrong.begin());
      EXPECT_EQ(op.OnMessage(1, 1, Payload::FromVector(wrong)).code(),
                absl::StatusCode::kDataLoss);
    }
    std::vector<std::byte> bad(bytes.begin(), bytes.end());
    bad[1] = std::byte{0xff};  // a negative scale
    EXPECT_EQ(op.OnMessage(1, 1, Payload::FromVector(bad)).code(),
              absl::StatusCode::kDataLoss);
    EXPECT_EQ(x[0], mine);
    EXPECT_FALSE(op.done());
    EXPECT_TRUE(op.OnMessage(1, honest.step, honest.bytes).ok());
    EXPECT_TRUE(op.done());
  }
}

TEST(QuantizedAllReduceTest, NeedsAScheduleThatSendsNoSumsOn) {
  const size_t n = GradientLayout().size();
  for (const std::string_view name : AllReduce::Names()) {
    const auto made = AllReduce::Create(name, 0, 4, n, GradientCodec("qsgd"));
    EXPECT_EQ(made.ok(), name == "all-gather");
    if (made.ok()) continue;
    EXPECT_THAT(std::string(made.status().message()),
                HasSubstr("rounded again at every hop"));
  }
  EXPECT_FALSE(
      AllReduce::Create("all-gather", 0, 4, n, GradientCodec("innov-int4"))
          .ok());
}

std::vector<Case> AllCases() {
  std::vector<Case> cases;
  for (const std::string_view name : AllReduce::Names()) {
    for (int size = 1; size <= 9; ++size) cases.push_back({name, size});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Collective, AllReduceTest,
                         testing::ValuesIn(AllCases()),
                         [](const testing::TestParamInfo<Case>& info) {
                           std::string name(info.param.name);
                           std::erase(name, '-');
                           std::ranges::replace(name, '/', 'x');
                           return name + std::to_string(info.param.size);
                         });

TEST(AllReduceCreateTest, RefusesWhatCannotBe) {
  const auto unknown = AllReduce::Create("bush", 0, 2, 5);
  EXPECT_EQ(unknown.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(unknown.status().message()), HasSubstr("ring"));
  for (const auto& [rank, size] :
       std::vector<std::pair<int, int>>{{-1, 2}, {2, 2}, {0, 0}, {0, -3}}) {
    EXPECT_EQ(AllReduce::Create("ring", rank, size, 5).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(AllReduce::Create("ring", 0, 2, AllReduce::kMaxFloats + 1)
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(AllReduceScheduleTest, SendsWhatTheLiteratureSays) {
  const auto floats_sent = [](std::string_view name, int size, size_t n) {
    auto x = RandomVectors(size, n, RngKey(1));
    std::vector<AllReduce> ranks;
    for (int r = 0; r < size; ++r) {
      ranks.push_back(Make(name, r, size, n));
      ranks[r].Start(x[r]);
    }
    std::vector<size_t> sent(size, 0);
    for (bool moved = true; std::exchange(moved, false);) {
      for (int r = 0; r < size; ++r) {
        for (const auto& m : ranks[r].TakeOutgoing()) {
          sent[r] += m.bytes.size() / sizeof(float);
          EXPECT_TRUE(ranks[m.rank].OnMessage(r, m.step, m.bytes).ok());
          moved = true;
        }
      }
    }
    return sent;
  };
  using Sent = std::vector<size_t>;
  EXPECT_EQ(floats_sent("ring", 4, 400), Sent(4, 2 * 400 * 3 / 4));
  EXPECT_EQ(floats_sent("mesh", 4, 400), Sent(4, 2 * 400 * 3 / 4));
  EXPECT_EQ(floats_sent("ring/4", 4, 400), Sent(4, 2 * 400 * 3 / 4));
  EXPECT_EQ(floats_sent("mesh/4", 4, 400), Sent(4, 2 * 400 * 3 / 4));
  EXPECT_EQ(floats_sent("all-gather", 4, 10), Sent(4, 30));
  EXPECT_EQ(floats_sent("star", 4, 10), (Sent{30, 10, 10, 10}));
  EXPECT_EQ(floats_sent("tree", 4, 10), (Sent{20, 10, 20, 10}));
  EXPECT_EQ(floats_sent("recursive-doubling", 8, 10), Sent(8, 30));
  EXPECT_EQ(floats_sent("recursive-doubling", 6, 10),
            (Sent{30, 30, 20, 20, 10, 10}));
}

}  // namespace
}  // namespace gossamer
