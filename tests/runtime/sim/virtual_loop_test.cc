// The loop in virtual time: order, cancellation, frozen peers, and clocks that
// drift.

#include "runtime/sim/virtual_loop.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gossamer {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr absl::Duration kSecond = absl::Seconds(1);

class VirtualLoopTest : public ::testing::Test {
 protected:
  EventLoop::Callback Note(int n) {
    return [this, n] { ran_.push_back(n); };
  }
  VirtualLoop loop_;
  std::vector<int> ran_;
};

TEST_F(VirtualLoopTest, RunsByTimeThenByRegistration) {
  const absl::Time start = loop_.Now();
  loop_.RunAt(start + 2 * kSecond, Note(4));
  loop_.RunAt(start + kSecond, Note(2));
  loop_.RunAt(start + kSecond, Note(3));
  loop_.Post(Note(1));
  EXPECT_THAT(ran_, IsEmpty()) << "nothing runs inline";
  EXPECT_TRUE(loop_.Run());
  EXPECT_THAT(ran_, ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(loop_.Now(), start + 2 * kSecond);
}

TEST_F(VirtualLoopTest, ATimerInThePastRunsNowAndTimeDoesNotGoBack) {
  loop_.RunFor(kSecond);
  const absl::Time now = loop_.Now();
  loop_.RunAt(now - kSecond, Note(1));
  loop_.Run();
  EXPECT_EQ(loop_.Now(), now);
  EXPECT_THAT(ran_, ElementsAre(1));
}

// Far more callbacks are cancelled than run: the others keep their order.
TEST_F(VirtualLoopTest, CancelledCallbacksLeaveTheOthersInOrder) {
  const absl::Time start = loop_.Now();
  for (int i = 9; i >= 0; --i) {
    loop_.RunAt(start + i * kSecond, Note(i));
    for (int j = 0; j < 100; ++j) {
      EXPECT_TRUE(loop_.Cancel(loop_.RunAt(start + j * kSecond, Note(-1))));
    }
  }
  EXPECT_EQ(loop_.pending(), 10u);
  loop_.RunUntil(start + 4 * kSecond);
  EXPECT_THAT(ran_, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_EQ(loop_.pending(), 5u);
  EXPECT_TRUE(loop_.Run());
  EXPECT_THAT(ran_, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
}

TEST_F(VirtualLoopTest, CancelWorksOnceAndNotAfterTheRun) {
  const auto a = loop_.RunAt(loop_.Now(), Note(1));
  const auto b = loop_.RunAt(loop_.Now(), Note(2));
  EXPECT_TRUE(loop_.Cancel(a));
  EXPECT_FALSE(loop_.Cancel(a));
  EXPECT_FALSE(loop_.Cancel(EventLoop::TimerId{0}));
  loop_.Run();
  EXPECT_FALSE(loop_.Cancel(b));
  EXPECT_THAT(ran_, ElementsAre(2));
}

TEST_F(VirtualLoopTest, RunUntilStopsAtTheTimeAndShowsIt) {
  const absl::Time start = loop_.Now();
  loop_.RunAt(start + kSecond, Note(1));
  loop_.RunAt(start + 3 * kSecond, Note(2));
  loop_.RunUntil(start + 2 * kSecond);
  EXPECT_THAT(ran_, ElementsAre(1));
  EXPECT_EQ(loop_.Now(), start + 2 * kSecond);
  EXPECT_FALSE(loop_.RunUntil([&] { return ran_.size() == 2; }, kSecond / 2));
  EXPECT_TRUE(loop_.RunUntil([&] { return ran_.size() == 2; }, kSecond));
}

TEST_F(VirtualLoopTest, RunGivesUpOnCallbacksThatNeverEnd) {
  struct Forever {
    VirtualLoop* loop;
    void operator()() && { loop->Post(Forever{loop}); }
  };
  loop_.Post(Forever{&loop_});
  EXPECT_FALSE(loop_.Run(1000));
  EXPECT_EQ(loop_.pending(), 1u);
}

TEST_F(VirtualLoopTest, AFrozenPeerRunsNothingAndThenEverythingInOrder) {
  VirtualPeerLoop frozen(&loop_);
  VirtualPeerLoop other(&loop_);
  const absl::Time start = loop_.Now();
  frozen.Freeze(start + 10 * kSecond);
  for (int i = 1; i <= 3; ++i) frozen.RunAt(start + i * kSecond, Note(i));
  other.RunAt(start + 2 * kSecond, Note(0));
  loop_.RunFor(9 * kSecond);
  EXPECT_THAT(ran_, ElementsAre(0));
  frozen.Freeze(start + 5 * kSecond);  // does not shorten the freeze
  loop_.RunFor(kSecond);
  EXPECT_THAT(ran_, ElementsAre(0, 1, 2, 3));
}

TEST_F(VirtualLoopTest, ADestroyedPeerLeavesNothingBehind) {
  auto peer = std::make_unique<VirtualPeerLoop>(&loop_);
  auto owned = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = owned;
  peer->RunAt(loop_.Now() + kSecond, [owned = std::move(owned)] { FAIL(); });
  peer->Post([&] { peer.reset(); });
  peer->Post([] { FAIL(); });
  loop_.Run();
  EXPECT_EQ(peer, nullptr);
  EXPECT_TRUE(watch.expired());
  EXPECT_EQ(loop_.pending(), 0u);
}

TEST_F(VirtualLoopTest, CancelOnAPeerLoopHoldsWhileFrozen) {
  VirtualPeerLoop peer(&loop_);
  peer.Freeze(loop_.Now() + kSecond);
  const auto id = peer.RunAt(loop_.Now(), Note(1));
  loop_.RunFor(kSecond / 2);
  EXPECT_TRUE(peer.Cancel(id));
  EXPECT_FALSE(peer.Cancel(id));
  loop_.Run();
  EXPECT_THAT(ran_, IsEmpty());
}

TEST_F(VirtualLoopTest, APeersClockMayDifferAndDrift) {
  const absl::Time start = loop_.Now();
  VirtualPeerLoop peer(&loop_);
  peer.SetClock(-100 * kSecond, 1.25);
  EXPECT_EQ(peer.Now(), start - 100 * kSecond);
  absl::Time here, there;
  const absl::Time when = peer.Now() + 5 * kSecond;
  peer.RunAt(when, [&] { here = peer.Now(), there = loop_.Now(); });
  peer.Post(Note(1));
  loop_.RunFor(absl::ZeroDuration());
  EXPECT_THAT(ran_, ElementsAre(1)) << "what is posted is due at once";
  loop_.Run();
  EXPECT_GE(here, when);
  EXPECT_LT(here, when + absl::Microseconds(1));
  EXPECT_GE(there, start + 4 * kSecond);
  EXPECT_LT(there, start + 4 * kSecond + absl::Microseconds(1));
  EXPECT_EQ(peer.runs(), 2u);
}

TEST_F(VirtualLoopTest, ComputeTakesTheTimeThatItsKeyDraws) {
  const auto durations = [](uint64_t seed) {
    VirtualLoop loop;
    VirtualCompute compute(
        &loop, VirtualCompute::Around(RngKey(seed), 10 * kSecond, 0.5));
    std::vector<absl::Duration> took;
    for (int i = 0; i < 20; ++i) {
      const absl::Time before = loop.Now();
      bool worked = false;
      compute.Run([&] { worked = true; },
                  [&] { took.push_back(loop.Now() - before); });
      EXPECT_TRUE(worked);
      EXPECT_EQ(took.size(), static_cast<size_t>(i)) << "done is not inline";
      loop.Run();
    }
    return took;
  };
  const auto took = durations(1);
  EXPECT_EQ(took, durations(1));
  EXPECT_NE(took, durations(2));
  for (absl::Duration d : took) {
    EXPECT_GE(d, 5 * kSecond);
    EXPECT_LE(d, 15 * kSecond);
  }
}

}  // namespace
}  // namespace gossamer
