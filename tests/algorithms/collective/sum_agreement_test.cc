#include "algorithms/collective/sum_agreement.h"

#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "algorithms/base/rng.h"
#include "gtest/gtest.h"

namespace gossamer {
namespace sum_agreement_test {

constexpr uint64_t kOperations = 6;

// Ranks that sum one operation after the other by an NCCL that may fail, and
// by another way once no rank has a sum.  Which event comes next is drawn;
// messages between two ranks stay in order.
class Ranks {
 public:
  Ranks(int size, uint64_t seed)
      : draws_(RngKey(seed).Fold("ranks")), size_(size) {
    for (int r = 0; r < size; ++r) ranks_.emplace_back(r, size);
  }

  // Returns whether all ranks come to the end.
  bool Run() {
    for (Rank& r : ranks_) Start(r);
    for (uint64_t event = 0; event < 20'000; ++event) {
      if (AllOver()) return true;
      Step(draws_.Fold(event));
    }
    return false;
  }
  // How each operation was summed at a rank: by NCCL, or the other way.
  using Ways = std::vector<bool>;
  const Ways& ways(int rank) const {
    return ranks_[static_cast<size_t>(rank)].ways;
  }
  bool failed() const { return fault_; }

 private:
  enum Kind { kBegun, kFailed, kSum };
  struct Message {
    Kind kind;
    uint64_t operation;
  };
  struct Rank {
    Rank(int r, int size) : number(r), agreement(r, size, 0) {}
    int number;
    SumAgreement agreement;
    uint64_t operation = 0;
    bool other_way = false;  // of the operation under way
    Ways ways;
  };

  bool AllOver() const {
    for (const Rank& r : ranks_) {
      if (r.ways.size() < kOperations) return false;
    }
    return true;
  }
  void TellAll(const Rank& from, Message m) {
    for (int to = 0; to < size_; ++to) {
      if (to != from.number) wires_[{from.number, to}].push_back(m);
    }
  }
  void Start(Rank& r) {
    r.other_way = false;
    if (!r.agreement.Possible(r.operation)) {
      r.other_way = true;
      return;
    }
    r.agreement.Start(r.operation);
    TellAll(r, {kBegun, r.operation});
  }
  void End(Rank& r, bool by_nccl) {
    r.ways.push_back(by_nccl);
    ++r.operation;
    if (r.ways.size() < kOperations) Start(r);
  }
  void Fail(Rank& r) {
    if (r.agreement.failed()) return;
    fault_ = true;
    r.agreement.Fail();
    TellAll(r, {kFailed, *r.agreement.lacks()});
  }
  void Owe(Rank& r, int to) {
    if (const auto owed = r.agreement.Owes(to)) {
      wires_[{r.number, to}].push_back({kSum, *owed});
    }
  }

  void Step(RngKey draw) {
    const auto at = static_cast<size_t>(draw.Uniform(0) * size_);
    Rank& r = ranks_[at];
    const bool over = r.ways.size() >= kOperations;
    const double what = draw.Uniform(1);
    if (what < 0.004) return Fail(r);
    if (what < 0.4) {
      // NCCL brings its sum to a rank only once all have begun, and not after
      // one has given it up before.
      bool whole = !over && !r.other_way && !r.agreement.failed();
      for (const Rank& other : ranks_) {
        const auto lacks = other.agreement.lacks();
        whole = whole && other.operation >= r.operation && !other.other_way &&
                !(lacks && *lacks < r.operation);
      }
      if (!whole) return;
      r.agreement.Have();
      return End(r, true);
    }
    if (what < 0.6) {
      if (over) return;
      if (!r.other_way && !r.agreement.Possible(r.operation)) {
        r.other_way = true;
      }
      // The other way, too, needs all ranks.
      bool whole = r.other_way;
      for (const Rank& other : ranks_) {
        whole = whole && (other.ways.size() > r.operation ||
                          (other.operation == r.operation && other.other_way));
      }
      if (whole) End(r, false);
      return;
    }
    const auto from = static_cast<int>(draw.Uniform(2) * size_);
    auto& wire = wires_[{from, r.number}];
    if (wire.empty()) return;
    const Message m = wire.front();
    wire.pop_front();
    switch (m.kind) {
      case kBegun:
        return r.agreement.OnStarted(from, m.operation);
      case kFailed:
        r.agreement.OnFailed(from, m.operation);
        Owe(r, from);
        return Fail(r);
      case kSum:
        if (over || r.other_way || r.agreement.done() ||
            m.operation != r.operation || !r.agreement.failed()) {
          return;
        }
        r.agreement.Have();
        return End(r, true);
    }
  }

  const RngKey draws_;
  const int size_;
  std::vector<Rank> ranks_;
  std::map<std::pair<int, int>, std::deque<Message>> wires_;
  bool fault_ = false;
};

TEST(SumAgreementTest, AllRanksTakeOneWayAndComeToTheEnd) {
  int faults = 0, mixed = 0;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    const int size = 2 + static_cast<int>(seed % 4);
    Ranks ranks(size, seed);
    ASSERT_TRUE(ranks.Run()) << seed;
    for (int r = 1; r < size; ++r) {
      ASSERT_EQ(ranks.ways(r), ranks.ways(0)) << seed << " rank " << r;
    }
    faults += ranks.failed() ? 1 : 0;
    mixed += ranks.ways(0).front() && !ranks.ways(0).back() ? 1 : 0;
  }
  EXPECT_GT(faults, 500);
  EXPECT_GT(mixed, 200);
}

TEST(SumAgreementTest, ARankThatHasTheSumGivesItToOneThatLacksIt) {
  SumAgreement has(0, 3, 7), lacks(1, 3, 7);
  for (SumAgreement* a : {&has, &lacks}) {
    a->Start(7);
    for (const int rank : {0, 1, 2}) a->OnStarted(rank, 7);
  }
  EXPECT_TRUE(has.all_started());
  has.Have();
  lacks.Fail();
  EXPECT_EQ(lacks.lacks(), 7u);
  has.OnFailed(1, 7);
  EXPECT_EQ(has.Owes(1), 7u);
  EXPECT_EQ(has.Owes(2), std::nullopt);
  has.Fail();
  EXPECT_EQ(has.lacks(), 8u);
  // Rank 0 has it, whatever becomes of the others.
  lacks.OnFailed(0, 8);
  lacks.OnFailed(2, 7);
  EXPECT_TRUE(lacks.Possible(7));
  EXPECT_FALSE(lacks.Possible(8));
  lacks.Have();
  EXPECT_TRUE(lacks.done());
}

TEST(SumAgreementTest, NamesTheRanksThatHaveNotBegun) {
  SumAgreement a(1, 4, 3);
  a.Start(3);
  a.OnStarted(2, 3);
  EXPECT_FALSE(a.all_started());
  EXPECT_EQ(a.Awaited(), (std::vector<int>{0, 3}));
}

}  // namespace sum_agreement_test
}  // namespace gossamer
