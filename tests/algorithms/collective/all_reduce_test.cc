// Every schedule gives every rank the mean with the same bits, in any order of
// messages and across lost connections, and refuses messages that no rank
// sends.

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

#include "algorithms/base/rng.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gossamer {
namespace all_reduce_test {

using testing::HasSubstr;

AllReduce Make(std::string_view name, int rank, int size, AllReduceForm form) {
  auto made = AllReduce::Create(name, rank, size, std::move(form));
  EXPECT_TRUE(made.ok()) << made.status();
  return *std::move(made);
}

std::vector<std::vector<float>> RandomVectors(int size, size_t n, RngKey key) {
  std::vector<std::vector<float>> x(size, std::vector<float>(n));
  for (int r = 0; r < size; ++r) key.Fold(r).FillGaussian(x[r]);
  return x;
}

// A message on its way.
struct InFlight {
  int from, to;
  uint32_t step;
  SharedBytes bytes;
};

// A payload of a float and its weight, which no schedule could sum.
class Weighted final : public PayloadFormat {
 public:
  static SharedBytes Of(float value, float times) {
    std::vector<std::byte> bytes(2 * sizeof(float));
    std::memcpy(bytes.data(), &value, sizeof(float));
    std::memcpy(bytes.data() + sizeof(float), &times, sizeof(float));
    return SharedBytes::FromVector(std::move(bytes));
  }
  absl::StatusOr<SharedBytes> Accept(SharedBytes bytes) const override {
    if (bytes.size() == 2 * sizeof(float)) return bytes;
    return absl::DataLossError("no pair of floats");
  }
  void Add(std::span<const std::byte> payload,
           std::span<float> sum) const override {
    float pair[2];
    std::memcpy(pair, payload.data(), sizeof(pair));
    for (float& s : sum) s += pair[0] * pair[1];
  }
};

SharedBytes LeaderMessage(uint8_t value) {
  return SharedBytes::FromVector({static_cast<std::byte>(value)});
}

// Starts the ranks and delivers messages in an order drawn from `key`; with
// `repeats`, one message in three comes twice.  The form is of floats unless
// one is given.  A payload is (rank + 1)². With a leader, every value is the
// leader's message: its rank and 3.
void RunInRandomOrder(std::string_view name, std::vector<std::vector<float>>& x,
                      RngKey key, bool repeats, AllReduceForm form = {}) {
  form.floats = x[0].size();
  const int size = static_cast<int>(x.size());
  std::vector<AllReduce> ranks;
  std::vector<int> waiting;
  for (int r = 0; r < size; ++r) {
    ranks.push_back(Make(name, r, size, form));
    waiting.push_back(r);
  }
  std::vector<InFlight> net;
  uint64_t draw = 0;
  const auto collect = [&](int r) {
    for (AllReduce::Message& m : ranks[r].TakeOutgoing()) {
      net.push_back({r, m.rank, m.step, m.bytes});
    }
  };
  std::vector<bool> begun(size);
  const auto start = [&](int r) {
    if (begun[r] && ranks[r].can_start() && !ranks[r].started()) {
      const auto k = static_cast<float>(r + 1);
      const auto message = ranks[r].leader_message().bytes();
      if (!message.empty()) {
        std::ranges::fill(x[r],
                          static_cast<float>(std::to_integer<int>(message[0])));
      }
      ranks[r].Start(x[r], form.payloads ? Weighted::Of(k, k) : SharedBytes());
    }
    collect(r);
  };
  while (!waiting.empty() || !net.empty()) {
    const size_t choices = waiting.size() + net.size();
    size_t i = key.Below(choices, draw++);
    if (i < waiting.size()) {
      const int r = waiting[i];
      waiting.erase(waiting.begin() + static_cast<ptrdiff_t>(i));
      begun[r] = true;
      if (r == form.leader) {
        ranks[r].SetLeaderMessage(LeaderMessage(static_cast<uint8_t>(r + 3)));
      }
      start(r);
      continue;
    }
    i -= waiting.size();
    const InFlight m = net[i];
    if (!repeats || key.Below(3, draw++) > 0) {
      net.erase(net.begin() + static_cast<ptrdiff_t>(i));
    }
    ASSERT_TRUE(ranks[m.to].OnMessage(m.from, m.step, m.bytes).ok());
    start(m.to);
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
      // The bound is M roundings of partial sums that are no larger than M
      // times the magnitude.
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
    ranks.push_back(Make(name, r, size, {.floats = n}));
    ranks[r].Start(x[r]);
    ranks[r].TakeOutgoing();  // loses all its messages
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
    AllReduce alone = Make(name, 0, 1, {.floats = 5});
    EXPECT_EQ(alone.OnMessage(0, 0, {}).code(), absl::StatusCode::kDataLoss);
    return;
  }
  const size_t n = 50;
  for (int rank = 0; rank < size; ++rank) {
    AllReduce op = Make(name, rank, size, {.floats = n});
    std::vector<float> x(n, 1.0f);
    op.Start(x);
    const auto awaited = op.awaited();
    ASSERT_TRUE(awaited.has_value());
    int accepted = 0;
    for (int from = -1; from <= size; ++from) {
      for (const uint32_t step : {0u, 1u, 5u, 17u, 1000u, ~0u}) {
        for (const size_t bytes : {size_t{0}, size_t{1}, 4 * n + 4}) {
          const absl::Status status = op.OnMessage(
              from, step,
              SharedBytes::FromVector(std::vector<std::byte>(bytes)));
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

TEST(PayloadAllReduceTest, GivesTheMeanOfWhatPayloadsStandFor) {
  const AllReduceForm form{.floats = 5,
                           .payloads = std::make_shared<const Weighted>()};
  for (const int size : {1, 2, 3, 5}) {
    std::vector<float> first;
    for (int order = 0; order < 8; ++order) {
      std::vector<std::vector<float>> x(size, std::vector<float>(5, 77.0f));
      RunInRandomOrder("all-gather", x, RngKey(order), order % 2 == 1, form);
      if (HasFatalFailure()) return;
      if (order == 0) first = x[0];
      for (const auto& v : x) EXPECT_EQ(v, first);
    }
    // The sum is 1·1 + 2·2 + … over the M ranks.
    float sum = 0;
    for (int r = 1; r <= size; ++r) sum += static_cast<float>(r * r);
    EXPECT_FLOAT_EQ(first[3], sum / static_cast<float>(size));
  }
}

TEST(PayloadAllReduceTest, RefusesWhatIsNoPayloadAndKeepsItsState) {
  const AllReduceForm form{.floats = 3,
                           .payloads = std::make_shared<const Weighted>()};
  AllReduce op = Make("all-gather", 0, 2, form);
  std::vector<float> x(3);
  op.Start(x, Weighted::Of(2, 3));
  for (const size_t size : {0, 7, 9}) {
    EXPECT_EQ(op.OnMessage(
                    1, 1, SharedBytes::FromVector(std::vector<std::byte>(size)))
                  .code(),
              absl::StatusCode::kDataLoss);
  }
  EXPECT_EQ(x, std::vector<float>(3, 6.0f));
  EXPECT_FALSE(op.done());
  EXPECT_TRUE(op.OnMessage(1, 1, Weighted::Of(2, 1)).ok());
  EXPECT_TRUE(op.done());
  EXPECT_EQ(x, std::vector<float>(3, 4.0f));
}

TEST(PayloadAllReduceTest, NeedsAScheduleThatSendsNoSumsOn) {
  for (const std::string_view name : AllReduce::Names()) {
    const auto made = AllReduce::Create(
        name, 0, 4,
        {.floats = 5, .payloads = std::make_shared<const Weighted>()});
    EXPECT_EQ(made.ok(), name == "all-gather");
    if (made.ok()) continue;
    EXPECT_THAT(std::string(made.status().message()),
                HasSubstr("encoded again at every hop"));
  }
}

AllReduceForm LedBy(int leader, size_t n) {
  return {.floats = n,
          .leader = leader,
          .check_leader_message =
              [](std::span<const std::byte> message) -> absl::Status {
            if (message.size() == 1 && message[0] != std::byte{99}) {
              return absl::OkStatus();
            }
            return absl::DataLossError("no message of a leader");
          }};
}

// A rank's contribution may depend on the leader's message, but not on the
// order of arrivals.
TEST_P(AllReduceTest, AllContributeWhatTheLeaderSays) {
  const auto [name, size] = GetParam();
  for (int leader = 0; leader < size; ++leader) {
    for (int order = 0; order < 4; ++order) {
      std::vector<std::vector<float>> x(size, std::vector<float>(7));
      RunInRandomOrder(name, x, RngKey(order).Fold(leader), order % 2 == 1,
                       LedBy(leader, 7));
      if (HasFatalFailure()) return;
      for (const auto& v : x) {
        EXPECT_EQ(v, x[0]);
        for (const float f : v) {
          EXPECT_FLOAT_EQ(f, static_cast<float>(leader + 3));
        }
      }
    }
  }
}

TEST(LedAllReduceTest, OnlyTheLeaderLeads) {
  AllReduce op = Make("mesh", 0, 3, LedBy(1, 6));
  EXPECT_FALSE(op.can_start());
  EXPECT_EQ(op.awaited(), (AllReduce::Awaited{1, 0}));
  for (const int from : {-1, 0, 2, 3}) {
    EXPECT_EQ(op.OnMessage(from, 0, LeaderMessage(4)).code(),
              absl::StatusCode::kDataLoss);
  }
  for (SharedBytes bad : {SharedBytes(), LeaderMessage(99),
                          SharedBytes::FromVector(std::vector<std::byte>(2))}) {
    EXPECT_EQ(op.OnMessage(1, 0, bad).code(), absl::StatusCode::kDataLoss);
  }
  EXPECT_FALSE(op.can_start());
  ASSERT_TRUE(op.OnMessage(1, 0, LeaderMessage(4)).ok());
  EXPECT_TRUE(op.can_start());
  // A second message changes nothing, whichever way it came.
  EXPECT_TRUE(op.OnMessage(1, 0, LeaderMessage(5)).ok());
  EXPECT_EQ(std::to_integer<int>(op.leader_message().bytes()[0]), 4);
  std::vector<float> x(6);
  op.Start(x);
  ASSERT_TRUE(op.awaited().has_value());
  EXPECT_GT(op.awaited()->step, 0u);
}

TEST(LedAllReduceTest, TheLeaderSpeaksToAllBeforeItContributes) {
  AllReduce op = Make("ring", 2, 4, LedBy(2, 8));
  EXPECT_EQ(op.awaited(), std::nullopt);
  op.SetLeaderMessage(LeaderMessage(7));
  std::vector<int> to;
  for (const auto& m : op.TakeOutgoing()) {
    EXPECT_EQ(m.step, 0u);
    to.push_back(m.rank);
  }
  EXPECT_EQ(to, (std::vector<int>{0, 1, 3}));
  EXPECT_EQ(op.SentTo(3).size(), 1u);
  EXPECT_TRUE(op.can_start());
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
  const auto unknown = AllReduce::Create("bush", 0, 2, {.floats = 5});
  EXPECT_EQ(unknown.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(unknown.status().message()), HasSubstr("ring"));
  for (const auto& [rank, size] :
       std::vector<std::pair<int, int>>{{-1, 2}, {2, 2}, {0, 0}, {0, -3}}) {
    EXPECT_EQ(
        AllReduce::Create("ring", rank, size, {.floats = 5}).status().code(),
        absl::StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(
      AllReduce::Create("ring", 0, 2, {.floats = AllReduce::kMaxFloats + 1})
          .status()
          .code(),
      absl::StatusCode::kInvalidArgument);
}

TEST(AllReduceScheduleTest, SendsWhatTheLiteratureSays) {
  const auto floats_sent = [](std::string_view name, int size, size_t n) {
    auto x = RandomVectors(size, n, RngKey(1));
    std::vector<AllReduce> ranks;
    for (int r = 0; r < size; ++r) {
      ranks.push_back(Make(name, r, size, {.floats = n}));
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

}  // namespace all_reduce_test
}  // namespace gossamer
