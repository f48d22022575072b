// Coroutines of the loop: they run until a result is missing, and destroying
// one unwinds it.

#include "runtime/base/task.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/sim/virtual_loop.h"

namespace gossamer {
namespace task_test {

using ::testing::ElementsAre;

Task<int> AddOne(Pending<int> input) { co_return co_await input + 1; }

Task<int> Sum(std::vector<Pending<int>> inputs) {
  int sum = 0;
  for (Pending<int>& input : inputs) sum += co_await input;
  co_return sum;
}

TEST(TaskTest, ATaskRunsAtOnceUpToTheFirstMissingResult) {
  Pending<int> input;
  Task<int> task = AddOne(input);
  EXPECT_FALSE(task.done());
  input.Set(41);
  ASSERT_TRUE(task.done());
  EXPECT_EQ(task.value(), 42);
}

TEST(TaskTest, AReadyResultDoesNotSuspend) {
  Pending<int> input;
  input.Set(1);
  EXPECT_TRUE(AddOne(input).done());
}

TEST(TaskTest, AwaitsManyInAnyOrderOfCompletion) {
  std::vector<Pending<int>> inputs(3);
  Task<int> task = Sum(inputs);
  inputs[2].Set(4);
  inputs[0].Set(1);
  EXPECT_FALSE(task.done());
  inputs[1].Set(2);
  ASSERT_TRUE(task.done());
  EXPECT_EQ(task.value(), 7);
}

Task<std::string> Outer(Pending<int> input) {
  Task<int> inner = AddOne(input);
  co_return std::to_string(co_await inner.result());
}

TEST(TaskTest, ATaskAwaitsATask) {
  Pending<int> input;
  Task<std::string> task = Outer(input);
  input.Set(6);
  ASSERT_TRUE(task.done());
  EXPECT_EQ(task.value(), "7");
}

Task<std::unique_ptr<int>> Move(Pending<std::unique_ptr<int>> input) {
  co_return co_await input;
}

TEST(TaskTest, ATaskCarriesAMoveOnlyValue) {
  Pending<std::unique_ptr<int>> input;
  Task<std::unique_ptr<int>> task = Move(input);
  input.Set(std::make_unique<int>(5));
  ASSERT_TRUE(task.done());
  EXPECT_EQ(*task.value(), 5);
}

// Logs its own destruction.
struct OnDestruction {
  std::vector<int>* log;
  ~OnDestruction() { log->push_back(1); }
};

Task<int> Holding(std::vector<int>* log, Pending<int> input) {
  OnDestruction held{log};
  co_return co_await input;
}

TEST(TaskTest, DestroyingASuspendedTaskUnwindsIt) {
  std::vector<int> log;
  Pending<int> input;
  { Task<int> task = Holding(&log, input); }
  EXPECT_THAT(log, ElementsAre(1));
  input.Set(1);  // no coroutine is resumed
}

Task<int> Sleep(EventLoop* loop, absl::Duration duration) {
  Pending<int> woken;
  loop->RunAt(loop->Now() + duration, [woken]() mutable { woken.Set(1); });
  co_return co_await woken;
}

TEST(TaskTest, AResumedCoroutineMayDestroyTheTaskThatItAwaited) {
  struct Owner {
    Task<int> task;
    Task<int> watcher;
  };
  VirtualLoop loop;
  auto owner = std::make_unique<Owner>();
  owner->task = Sleep(&loop, absl::Seconds(1));
  bool destroyed = false;
  const auto watch = [](Pending<int> result, std::unique_ptr<Owner>* owner,
                        bool* destroyed) -> Task<int> {
    co_await result;
    (*owner)->task = Task<int>();
    *destroyed = true;
    co_return 0;
  };
  Task<int> watcher = watch(owner->task.result(), &owner, &destroyed);
  loop.Run();
  EXPECT_TRUE(destroyed);
  EXPECT_TRUE(watcher.done());
}

}  // namespace task_test
}  // namespace gossamer
