// The loop on a real thread and clock: order of posts and timers, a poller's
// events, and a wall clock that never runs backwards.

#include "runtime/base/real_loop.h"

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <semaphore>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "algorithms/base/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gossamer {
namespace real_loop_test {

using ::testing::ElementsAre;

constexpr absl::Duration kLimit = absl::Seconds(60);

TEST(RealLoopTest, PostsRunInOrderAndNeverInline) {
  RealLoop loop;
  std::vector<int> ran;
  loop.Post([&] {
    loop.Post([&] { ran.push_back(2); });
    ran.push_back(1);
  });
  loop.Post([&] { loop.Post([&] { loop.Stop(); }); });
  loop.Run();
  EXPECT_THAT(ran, ElementsAre(1, 2));
}

TEST(RealLoopTest, ManyThreadsPostEachInItsOrder) {
  constexpr int kThreads = 4;
  constexpr int kPosts = 2000;
  RealLoop loop;
  loop.Start();
  std::vector<std::vector<int>> seen(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&loop, &seen, t] {
      for (int i = 0; i < kPosts; ++i) {
        loop.Post([&seen, t, i] { seen[t].push_back(i); });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(loop.PostAndWait([] {}, kLimit));
  for (const std::vector<int>& s : seen) {
    ASSERT_EQ(s.size(), static_cast<size_t>(kPosts));
    EXPECT_TRUE(std::is_sorted(s.begin(), s.end()));
  }
}

TEST(RealLoopTest, TimersRunByTimeThenByRegistration) {
  RealLoop loop;
  std::vector<int> ran;
  loop.Post([&] {
    const absl::Time now = loop.Now();
    loop.RunAt(now + absl::Milliseconds(2), [&] { ran.push_back(3); });
    loop.RunAt(now + absl::Milliseconds(1), [&] { ran.push_back(1); });
    loop.RunAt(now + absl::Milliseconds(1), [&] { ran.push_back(2); });
    loop.RunAt(now + absl::Milliseconds(3), [&] { loop.Stop(); });
  });
  loop.Run();
  EXPECT_THAT(ran, ElementsAre(1, 2, 3));
}

TEST(RealLoopTest, ATimerNeverRunsEarly) {
  RealLoop loop;
  absl::Time due;
  absl::Time ran;
  loop.Post([&] {
    due = loop.Now() + absl::Milliseconds(5);
    loop.RunAt(due, [&] {
      ran = loop.Now();
      loop.Stop();
    });
  });
  loop.Run();
  EXPECT_GE(ran, due);
}

TEST(RealLoopTest, ATimerThatRearmsItselfDoesNotStarvePosts) {
  RealLoop loop;
  struct Rearm {
    RealLoop* loop;
    void operator()() && { loop->RunAt(absl::InfinitePast(), Rearm{loop}); }
  };
  loop.Post([&] {
    loop.RunAt(absl::InfinitePast(), Rearm{&loop});
    loop.Post([&] { loop.Stop(); });
  });
  loop.Run();
}

// I/O made up by a test: its events come from any thread.
class FakePoller final : public LoopPoller {
 public:
  EventLoop::Callback Wait(absl::Duration limit) override {
    MutexLock lock(&mu_);
    idle_ = limit > absl::ZeroDuration();
    changed_.SignalAll();
    changed_.AwaitFor(&mu_, limit, [this] { return woken_ || events_ > 0; });
    idle_ = false;
    woken_ = false;
    if (events_ == 0) return nullptr;
    --events_;
    return [this] {
      MutexLock handling(&mu_);
      ++handled_;
      changed_.SignalAll();
    };
  }
  void Wake() override {
    MutexLock lock(&mu_);
    woken_ = true;
    changed_.SignalAll();
  }
  void AddEvent() {
    MutexLock lock(&mu_);
    ++events_;
    changed_.SignalAll();
  }
  bool AwaitHandled(int events) {
    MutexLock lock(&mu_);
    return changed_.AwaitFor(&mu_, kLimit, [&] { return handled_ >= events; });
  }
  // Waits until the loop has nothing to run and waits in the poller.
  bool AwaitIdle() {
    MutexLock lock(&mu_);
    return changed_.AwaitFor(&mu_, kLimit, [this] { return idle_; });
  }

 private:
  Mutex mu_;
  CondVar changed_;
  int events_ = 0;
  bool idle_ = false;
  bool woken_ = false;
  int handled_ = 0;
};

TEST(RealLoopTest, APollersEventsAndPostsAndTimersAllHaveTheirTurn) {
  FakePoller poller;
  RealLoop loop;
  loop.SetPoller(&poller);
  loop.Start();
  std::binary_semaphore timer_ran(0);
  // A callback that posts itself for ever keeps no other callback waiting.
  struct Again {
    RealLoop* loop;
    void operator()() && { loop->Post(Again{loop}); }
  };
  ASSERT_TRUE(loop.PostAndWait(
      [&] {
        loop.RunAt(loop.Now() + absl::Milliseconds(1),
                   [&] { timer_ran.release(); });
        loop.Post(Again{&loop});
      },
      kLimit));
  for (int i = 0; i < 100; ++i) poller.AddEvent();
  EXPECT_TRUE(poller.AwaitHandled(100));
  EXPECT_TRUE(timer_ran.try_acquire_for(absl::ToChronoSeconds(kLimit)));
  loop.Stop();
}

TEST(RealLoopTest, PostsWakeALoopThatWaitsForIo) {
  FakePoller poller;
  RealLoop loop;
  loop.SetPoller(&poller);
  loop.Start();
  for (int i = 0; i < 200; ++i) {
    // Every tenth time, only once the loop is sure to wait.
    if (i % 10 == 0) {
      ASSERT_TRUE(poller.AwaitIdle());
    }
    ASSERT_TRUE(loop.PostAndWait([] {}, kLimit));
  }
  ASSERT_TRUE(loop.PostAndWait([&] { loop.SetPoller(nullptr); }, kLimit));
  ASSERT_TRUE(loop.PostAndWait([] {}, kLimit));
}

TEST(RealLoopTest, CancelledTimersDoNotRun) {
  RealLoop loop;
  loop.Post([&] {
    const auto id = loop.RunAt(loop.Now(), [] { ADD_FAILURE(); });
    EXPECT_TRUE(loop.Cancel(id));
    EXPECT_FALSE(loop.Cancel(id));
    loop.RunAt(loop.Now(), [&] { loop.Stop(); });
  });
  loop.Run();
}

TEST(RealLoopTest, ACallbackThatDidNotRunIsDestroyedWithTheLoop) {
  auto owned = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = owned;
  {
    RealLoop loop;
    loop.Start();
    loop.Stop();
    loop.Post([owned = std::move(owned)] {});
    EXPECT_FALSE(watch.expired());
  }
  EXPECT_TRUE(watch.expired());
}

TEST(RealLoopTest, PostAndWaitFailsOnAStoppedLoop) {
  RealLoop loop;
  loop.Start();
  EXPECT_TRUE(loop.PostAndWait([] {}, kLimit));
  loop.Stop();
  ASSERT_FALSE(loop.PostAndWait([] {}, kLimit));
}

TEST(SteadyWallClockTest, NeverRunsBackwards) {
  SteadyWallClock clock;
  absl::Time last = clock.Now();
  for (int i = 0; i < 10'000; ++i) {
    const absl::Time now = clock.Now();
    ASSERT_GE(now, last);
    last = now;
  }
}

TEST(ThreadComputeTest, WorkRunsOnAnotherThreadAndItsCallbackOnTheLoop) {
  RealLoop loop;
  ThreadCompute compute(&loop);
  const std::thread::id loop_thread = std::this_thread::get_id();
  std::vector<int> order;
  loop.Post([&] {
    for (int i = 0; i < 3; ++i) {
      compute.Run(
          [&, i] {
            EXPECT_NE(std::this_thread::get_id(), loop_thread);
            order.push_back(2 * i);
          },
          [&, i] {
            EXPECT_EQ(std::this_thread::get_id(), loop_thread);
            if (i == 2) loop.Stop();
          });
    }
  });
  loop.Run();
  EXPECT_THAT(order, ElementsAre(0, 2, 4));
}

TEST(ThreadComputeTest, JobsThatWaitRaiseThePriorityOfTheOneBeforeThem) {
  RealLoop loop;
  ThreadCompute compute(&loop, /*nice=*/3);
  const int own = getpriority(PRIO_PROCESS, 0);
  constexpr int kLowest = 19;
  std::binary_semaphore queued(0);
  std::vector<int> nice;
  const auto work = [&] { nice.push_back(getpriority(PRIO_PROCESS, 0)); };
  // No other job begins before all are in the queue.
  compute.Run([&] { queued.acquire(); }, [] {});
  compute.Run(work, [] {});
  compute.Run(work, [] {});
  compute.Run(work, [&] { loop.Stop(); });
  queued.release();
  loop.Run();
  EXPECT_THAT(nice, ElementsAre(own, std::min(own + 1, kLowest),
                                std::min(own + 3, kLowest)));
}

TEST(ThreadComputeTest, DestructionWaitsForTheRunningWorkOnly) {
  RealLoop loop;
  std::binary_semaphore started(0);
  std::atomic<bool> finished = false;
  std::atomic<bool> second = false;
  {
    std::binary_semaphore destroying(0);
    ThreadCompute compute(&loop);
    compute.Run(
        [&] {
          started.release();
          destroying.acquire();
          finished = true;
        },
        [] {});
    compute.Run([&] { second = true; }, [] {});
    started.acquire();
    std::thread releaser([&] { destroying.release(); });
    releaser.join();
  }
  EXPECT_TRUE(finished);
}

}  // namespace real_loop_test
}  // namespace gossamer
