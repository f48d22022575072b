// The state that members give to a joiner: it arrives over far and lossy links,
// from members that die or lie, within bounds of memory and time.

#include "runtime/checkpoint/state_transfer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "algorithms/base/little_endian.h"
#include "algorithms/base/rng.h"
#include "runtime/base/sha256.h"
#include "runtime/checkpoint/peer_state.h"
#include "tests/testing/at_once.h"

namespace gossamer {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr PeerId kJoiner{9};
constexpr absl::Duration kLimit = absl::Minutes(10);

Checkpoint StateOf(float value, size_t size = 500'000) {
  Checkpoint state;
  state.floats["parameters"].assign(size, value);
  state.floats["optimizer.m"].assign(10, 2 * value);
  state.bytes["game.order"] = {std::byte{1}, std::byte{2}};
  state.counters["steps"] = 77;
  return state;
}

// Members 1 .. n and a joiner.  Frames queue up until they are delivered, and a
// spoiler may lose or change those that a member sends.
class StateTransferTest : public testing::Test {
 protected:
  struct Sent {
    PeerId from;
    PeerId to;
    Frame frame;
  };

  void Begin(int members, size_t most = 1 << 24, size_t size = 500'000) {
    size_ = size;
    std::vector<PeerId> ids;
    for (int i = 1; i <= members; ++i) {
      const PeerId id{static_cast<uint64_t>(i)};
      ids.push_back(id);
      donors_.emplace(id, [this, id](PeerId to, Frame frame) {
        queue_.push_back({id, to, std::move(frame)});
        return true;
      });
      donors_.at(id).Serve({kJoiner});
    }
    collector_.emplace(
        [this](PeerId to, Frame frame) {
          queue_.push_back({kJoiner, to, std::move(frame)});
          return true;
        },
        [this](std::function<void()> work, std::function<void()> done) {
          compute_(std::move(work), std::move(done));
        },
        most, kLimit,
        [this](const Checkpoint& state) { return check_(state); });
    collector_->SetDonors(ids, now_);
  }
  // Delivers until no frame is left.  A member freezes a state as soon as it
  // is asked.
  void Deliver() {
    while (!queue_.empty()) DeliverOne();
  }
  void DeliverOne() {
    Sent sent = std::move(queue_.front());
    queue_.pop_front();
    if (spoil_ && !spoil_(sent)) return;
    if (sent.to == kJoiner) {
      collector_->OnFrame(sent.from, sent.frame, now_);
      return;
    }
    const auto it = donors_.find(sent.to);
    if (it == donors_.end()) return;
    it->second.OnFrame(kJoiner, sent.frame, now_);
    if (!it->second.wanted()) return;
    std::vector<std::byte> bytes =
        EncodeState(StateOf(static_cast<float>(sent.to.value), size_));
    std::string hash = Sha256(bytes);
    it->second.Offer(std::move(bytes), std::move(hash), now_);
  }
  void Run(int seconds) {
    for (int s = 0; s < seconds && !collector_->done(); ++s) {
      Deliver();
      now_ += absl::Seconds(1);
      collector_->Tick(now_);
    }
  }

  // Delivers over links with that delay in each direction, on which chunks wait
  // for each other.  Returns the most chunks that waited at once.
  int RunFar(absl::Duration delay, double bytes_per_second) {
    std::multimap<absl::Time, Sent> on_the_way;
    std::multiset<absl::Time> leave;  // chunks that have not left yet
    absl::Time free = now_;
    size_t most = 0;
    absl::Time tick = now_;
    while (!collector_->done() && now_ - tick < absl::Minutes(10)) {
      while (!queue_.empty()) {
        Sent sent = std::move(queue_.front());
        queue_.pop_front();
        absl::Time at = now_;
        if (const size_t bytes = sent.frame.body.size(); bytes != 0) {
          free = std::max(free, now_) +
                 absl::Seconds(static_cast<double>(bytes) / bytes_per_second);
          at = free;
          leave.insert(at);
        }
        leave.erase(leave.begin(), leave.lower_bound(now_));
        most = std::max(most, leave.size());
        on_the_way.emplace(at + delay, std::move(sent));
      }
      while (now_ >= tick) {
        collector_->Tick(now_);
        tick += absl::Milliseconds(250);
      }
      if (on_the_way.empty() || on_the_way.begin()->first > tick) {
        now_ = tick;
        continue;
      }
      const auto first = on_the_way.begin();
      now_ = first->first;
      queue_.push_front(std::move(first->second));
      on_the_way.erase(first);
      DeliverOne();
    }
    return static_cast<int>(most);
  }

  absl::Time now_ = absl::FromUnixSeconds(1'000'000);
  size_t size_ = 0;
  std::deque<Sent> queue_;
  std::map<PeerId, StateDonor> donors_;
  std::optional<StateCollector> collector_;
  std::function<bool(Sent&)> spoil_;
  StateCollector::Compute compute_ = AtOnce;
  StateCollector::Check check_ = [](const Checkpoint&) {
    return absl::OkStatus();
  };
};

// The steps of these members take longer than chunks may.
TEST_F(StateTransferTest, WaitsForAnOfferWhileMembersCompute) {
  Begin(3);
  std::deque<Sent> asked;
  const absl::Time computed = now_ + absl::Seconds(50);
  spoil_ = [&](Sent& sent) {
    if (now_ >= computed || sent.to == kJoiner) return true;
    asked.push_back(sent);
    return false;
  };
  Run(50);
  EXPECT_EQ(collector_->given(), 0);
  ASSERT_FALSE(asked.empty());
  for (const Sent& sent : asked) EXPECT_EQ(sent.to, PeerId{1});
  queue_ = std::move(asked);
  Run(5);
  ASSERT_TRUE(collector_->done());
  EXPECT_EQ(collector_->given(), 3);
  EXPECT_THAT(collector_->TakeFailures(), SizeIs(0));
}

TEST_F(StateTransferTest, AveragesWhatThreeMembersGive) {
  Begin(3);
  Run(5);
  ASSERT_TRUE(collector_->done());
  EXPECT_EQ(collector_->given(), 3);
  const Checkpoint state = collector_->Take();
  EXPECT_EQ(state.floats.at("parameters"), std::vector<float>(500'000, 2.0f));
  EXPECT_EQ(state.floats.at("optimizer.m"), std::vector<float>(10, 4.0f));
  EXPECT_EQ(state.counters.at("steps"), 77);
  EXPECT_THAT(state.bytes.at("game.order"), SizeIs(2));
}

// The impossible state may come first or later.
TEST_F(StateTransferTest, AnImpossibleStateIsLeftOut) {
  check_ = [](const Checkpoint& state) {
    return state.floats.at("parameters")[0] == 1
               ? absl::DataLossError("cannot be")
               : absl::OkStatus();
  };
  Begin(3);
  Run(5);
  ASSERT_TRUE(collector_->done());
  EXPECT_EQ(collector_->given(), 2);
  EXPECT_EQ(collector_->Take().floats.at("parameters")[0], 2.5f);
  EXPECT_THAT(collector_->TakeFailures(),
              testing::ElementsAre("peer 1 gave no state: cannot be"));
}

TEST_F(StateTransferTest, OneStateAtATimeIsFrozen) {
  Begin(1);
  StateDonor& donor = donors_.at(PeerId{1});
  const auto ask = [&] {
    donor.OnFrame(kJoiner, queue_.front().frame, now_);
    return donor.wanted();
  };
  EXPECT_TRUE(ask());
  donor.Prepare();
  // A joiner that asks while a state is being frozen waits for it.
  EXPECT_FALSE(ask());
  donor.Offer(EncodeState(StateOf(1)), std::string(32, 'h'), now_);
  EXPECT_FALSE(donor.wanted());
  EXPECT_EQ(queue_.back().to, kJoiner);
}

TEST_F(StateTransferTest, LostAndDamagedChunksAreAskedForAgain) {
  Begin(2);
  uint64_t n = 0;
  spoil_ = [&n](Sent& sent) {
    const double u = RngKey(5).Uniform(n++);
    if (u < 0.3) return false;
    if (u < 0.5 && sent.frame.body.size() > 100) {
      std::vector<std::byte> body(sent.frame.body.bytes().begin(),
                                  sent.frame.body.bytes().end());
      body[50] ^= std::byte{1};
      sent.frame.body = SharedBytes::FromVector(std::move(body));
    }
    return true;
  };
  Run(60);
  ASSERT_TRUE(collector_->done());
  EXPECT_EQ(collector_->given(), 2);
  EXPECT_EQ(collector_->Take().floats.at("parameters")[499'999], 1.5f);
}

TEST_F(StateTransferTest, GoesOnWithoutAMemberThatDiesOnTheWay) {
  Begin(3);
  spoil_ = [chunks = 0](Sent& sent) mutable {
    if (sent.from.value == 2 && sent.frame.body.size() > 0) ++chunks;
    return sent.from.value != 2 || chunks < 3;
  };
  Run(60);
  ASSERT_TRUE(collector_->done());
  EXPECT_EQ(collector_->given(), 2);
  EXPECT_EQ(collector_->Take().floats.at("parameters")[0], 2.0f);
  EXPECT_THAT(collector_->TakeFailures(),
              testing::ElementsAre(HasSubstr("peer 2 gave no state")));
}

// A chunk every 14 s comes just before the joiner would give up on a silent
// member.
TEST_F(StateTransferTest, AMemberThatSendsTooSlowlyIsGivenUp) {
  Begin(3);
  spoil_ = [this, last = now_](Sent& sent) mutable {
    if (sent.from.value != 1 || sent.frame.body.size() == 0) return true;
    if (now_ - last < absl::Seconds(14)) return false;
    last = now_;
    // The last chunk that was asked for comes each time, but the state never
    // ends.
    return sent.frame.body.size() == kStateChunkBytes;
  };
  Run(75);
  ASSERT_TRUE(collector_->done());
  EXPECT_EQ(collector_->given(), 2);
  EXPECT_EQ(collector_->Take().floats.at("parameters")[0], 2.5f);
  EXPECT_THAT(collector_->TakeFailures(),
              testing::ElementsAre(HasSubstr("it took more than")));
}

// A service that has just started knows of no member yet.  The words of one
// member are not those of three.
TEST_F(StateTransferTest, AnEmptyListOfDonorsDoesNotEndTheTransfer) {
  Begin(3);
  spoil_ = [](Sent& sent) { return sent.from.value != 2; };
  Run(10);
  ASSERT_EQ(collector_->given(), 1);
  collector_->SetDonors({}, now_);
  Run(5);
  EXPECT_FALSE(collector_->done());
  spoil_ = nullptr;
  collector_->SetDonors({{1}, {3}, {4}}, now_);
  Run(10);
  EXPECT_FALSE(collector_->done());  // peer 4 has not answered
  EXPECT_EQ(collector_->given(), 2);
}

// At 200 ms a fixed number of chunks would make a gigabyte last for minutes.
TEST_F(StateTransferTest, FarMembersGiveAsFastAsTheirLinkIs) {
  Begin(1, /*most=*/1 << 28, /*size=*/25'000'000);
  const absl::Time begun = now_;
  RunFar(absl::Milliseconds(100), /*bytes_per_second=*/100e6);
  ASSERT_TRUE(collector_->done());
  // 100 MB take a second, and some round trips until the window is wide.
  EXPECT_LT(now_ - begun, absl::Seconds(3));
}

// The transfer must not fill the queue of a link that others need.
TEST_F(StateTransferTest, NarrowLinksHoldFewChunks) {
  Begin(1, /*most=*/1 << 28, /*size=*/10'000'000);
  EXPECT_LE(RunFar(absl::Milliseconds(5), /*bytes_per_second=*/1e6), 8);
  EXPECT_TRUE(collector_->done());
}

// The loop must answer others and keep a lease meanwhile.
TEST_F(StateTransferTest, AStateIsVerifiedOutsideTheEventLoop) {
  Begin(2);
  std::function<void()> work, done;
  compute_ = [&](std::function<void()> w, std::function<void()> d) {
    EXPECT_EQ(work, nullptr);
    work = std::move(w);
    done = std::move(d);
  };
  const auto finish = [&] {
    ASSERT_NE(work, nullptr);
    std::exchange(work, nullptr)();
    std::exchange(done, nullptr)();
  };
  Run(60);
  EXPECT_EQ(collector_->given(), 0);
  EXPECT_GT(collector_->held(), size_t{2'000'000});
  // A member that has given all of its state may go.
  collector_->SetDonors({{2}}, now_);
  finish();
  EXPECT_EQ(collector_->given(), 1);
  Run(60);
  finish();
  ASSERT_TRUE(collector_->done());
  EXPECT_EQ(collector_->Take().floats.at("parameters")[0], 1.5f);
  EXPECT_THAT(collector_->TakeFailures(), testing::IsEmpty());
}

TEST_F(StateTransferTest, ACollectorDestroyedDuringVerificationIsHarmless) {
  Begin(1);
  std::function<void()> work, done;
  compute_ = [&](std::function<void()> w, std::function<void()> d) {
    work = std::move(w);
    done = std::move(d);
  };
  Run(5);
  ASSERT_NE(work, nullptr);
  collector_.reset();
  work();
  done();
}

// A third of the limit has passed, but the state comes steadily.
TEST_F(StateTransferTest, ASlowMemberThatWillFinishInTimeIsWaitedFor) {
  Begin(1, /*most=*/1 << 28, /*size=*/40'000'000);
  RunFar(absl::Milliseconds(5), 4.0 * 40'000'000 / 420);
  EXPECT_TRUE(collector_->done());
  EXPECT_THAT(collector_->TakeFailures(), testing::IsEmpty());
}

// Links as slow as that are the joiner's own, so it begins with the states that
// it has.
TEST_F(StateTransferTest, TheStatesReceivedByHalfTheLimitSuffice) {
  Begin(4, /*most=*/1 << 27, /*size=*/10'000'000);
  // 153 chunks of 256 KiB, of which two get through every two seconds: lost
  // chunks are asked for again that late.
  spoil_ = [this, last = now_, through = 0](Sent& sent) mutable {
    if (sent.to != kJoiner || sent.frame.body.size() == 0) return true;
    if (now_ != last) through = 0;
    last = now_;
    return ++through <= 2;
  };
  Run(static_cast<int>(absl::ToInt64Seconds(kLimit / 2)));
  EXPECT_EQ(collector_->given(), 1);
  EXPECT_FALSE(collector_->done());
  Run(2);
  EXPECT_TRUE(collector_->done());
  EXPECT_EQ(collector_->Take().floats.at("parameters")[0], 1.0f);
}

TEST_F(StateTransferTest, AStateThatIsNotWhatWasOfferedIsNotUsed) {
  Begin(2);
  // Member 1 offers another hash than that of its state.
  spoil_ = [](Sent& sent) {
    if (sent.from.value == 1 && sent.frame.head.size() == 49) {
      std::vector<std::byte> head(sent.frame.head.bytes().begin(),
                                  sent.frame.head.bytes().end());
      head[40] ^= std::byte{1};
      sent.frame.head = SharedBytes::FromVector(std::move(head));
    }
    return true;
  };
  Run(60);
  ASSERT_TRUE(collector_->done());
  EXPECT_EQ(collector_->given(), 1);
  EXPECT_EQ(collector_->Take().floats.at("parameters")[0], 2.0f);
  EXPECT_THAT(collector_->TakeFailures(),
              testing::ElementsAre(HasSubstr("not what it offered")));
}

TEST_F(StateTransferTest, NothingIsAllocatedForAnImpossibleSize) {
  Begin(1, /*most=*/1000);
  Deliver();
  EXPECT_FALSE(collector_->done());
  EXPECT_THAT(collector_->TakeFailures(),
              testing::Contains(HasSubstr("cannot be")));
}

// Each offer starts the transfer again, so a member that offers another state
// each time would hold the joiner for ever.
TEST_F(StateTransferTest, AMemberThatOnlyOffersIsGivenUp) {
  Begin(2);
  Frame offer;
  spoil_ = [&](Sent& sent) {
    if (sent.from.value != 1) return true;
    if (sent.frame.body.size() == 0) offer = sent.frame;
    return false;
  };
  Deliver();
  std::vector<std::byte> head(offer.head.bytes().begin(),
                              offer.head.bytes().end());
  for (uint64_t number = 100; number < 105; ++number) {
    now_ += absl::Seconds(10);
    Put(std::span(head), 1, number);
    collector_->OnFrame(PeerId{1},
                        {SharedBytes::FromVector(head), SharedBytes()}, now_);
    collector_->Tick(now_);
  }
  Run(60);
  ASSERT_TRUE(collector_->done());
  EXPECT_EQ(collector_->given(), 1);
  EXPECT_EQ(collector_->Take().floats.at("parameters")[0], 2.0f);
  EXPECT_THAT(collector_->TakeFailures(),
              testing::ElementsAre(HasSubstr("has offered 5 states")));
}

// A joiner that reads a chunk now and then would keep the frozen state for
// ever, and all later joiners would begin with it.
TEST_F(StateTransferTest, AnOldStateIsDroppedThoughAJoinerStillReadsIt) {
  Begin(1);
  Frame get;
  spoil_ = [&get](Sent& sent) {
    if (sent.from == kJoiner && sent.frame.head.size() == 13) get = sent.frame;
    return true;
  };
  Run(5);
  ASSERT_TRUE(collector_->done());
  StateDonor& donor = donors_.at({1});
  for (int seconds = 0; seconds < 540; seconds += 20) {
    now_ += absl::Seconds(20);
    donor.OnFrame(kJoiner, get, now_);
    donor.Tick(now_);
  }
  EXPECT_GT(donor.held(), 0u);
  for (int seconds = 0; seconds < 100; seconds += 20) {
    now_ += absl::Seconds(20);
    donor.OnFrame(kJoiner, get, now_);
    donor.Tick(now_);
  }
  EXPECT_EQ(donor.held(), 0u);
}

TEST_F(StateTransferTest, APeerThatIsNotAJoinerGetsNoState) {
  Begin(1);
  donors_.at(PeerId{1}).Serve({});
  Deliver();
  EXPECT_FALSE(donors_.at(PeerId{1}).wanted());
  EXPECT_EQ(collector_->given(), 0);
}

TEST(PeerStateTest, AnotherShapeCannotBeAdded) {
  StateMedian median;
  ASSERT_TRUE(median.Add(StateOf(1, 20)).ok());
  EXPECT_FALSE(median.Add(StateOf(1, 21)).ok());
  EXPECT_EQ(median.given(), 1);
}

// Any of the three may be the false one.
TEST(PeerStateTest, OneFalseStateOfThreeMovesNothingBeyondTheOtherTwo) {
  for (int liar = 0; liar < 3; ++liar) {
    for (const float lie : {1e30f, -3e38f, 2.5f}) {
      StateMedian median;
      for (int i = 0; i < 3; ++i) {
        Checkpoint state = StateOf(static_cast<float>(2 + (i > liar)), 20);
        if (i == liar) {
          state = StateOf(lie, 20);
          state.counters["steps"] = ~uint64_t{0};
          state.bytes["game.order"] = {std::byte{9}};
        }
        ASSERT_TRUE(median.Add(std::move(state)).ok());
      }
      const Checkpoint state = median.Take();
      for (const float v : state.floats.at("parameters")) {
        EXPECT_GE(v, 2) << liar << " " << lie;
        EXPECT_LE(v, 3) << liar << " " << lie;
      }
      EXPECT_EQ(state.counters.at("steps"), 77u);
      EXPECT_EQ(state.bytes.at("game.order").size(), 2u);
    }
  }
}

TEST(PeerStateTest, TheShapeOfAStateIsItsNamesAndSizes) {
  const Checkpoint own = StateOf(1, 20);
  EXPECT_TRUE(CheckShape(StateOf(2, 20), own).ok());
  EXPECT_FALSE(CheckShape(StateOf(2, 21), own).ok());
  Checkpoint other = own;
  other.counters["more"] = 1;
  EXPECT_FALSE(CheckShape(other, own).ok());
  other = own;
  other.bytes.clear();
  EXPECT_FALSE(CheckShape(other, own).ok());
  other = own;
  other.floats["another"] = other.floats.at("parameters");
  other.floats.erase("parameters");
  EXPECT_FALSE(CheckShape(other, own).ok());
}

TEST(PeerStateTest, AStateIsDecodedExactlyOrRefused) {
  const Checkpoint state = StateOf(3, 10);
  std::vector<std::byte> bytes = EncodeState(state);
  const auto read = DecodeState(bytes);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->floats, state.floats);
  EXPECT_EQ(read->bytes, state.bytes);
  EXPECT_EQ(read->counters, state.counters);
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(DecodeState(std::span(bytes).first(size)).status().code(),
              absl::StatusCode::kDataLoss)
        << size;
  }
  Checkpoint sick = state;
  sick.floats["parameters"][7] = std::numeric_limits<float>::quiet_NaN();
  const auto refused = DecodeState(EncodeState(sick));
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("\"parameters\" that is not finite"));
}

}  // namespace
}  // namespace gossamer
