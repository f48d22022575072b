#include "runtime/base/real_loop.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"

namespace gossamer {
namespace {

// absl's timed waits follow the wall clock.  Waiting in slices bounds the harm
// that setting the clock can do.
constexpr absl::Duration kLongestWait = absl::Seconds(1);

}  // namespace

SteadyWallClock::SteadyWallClock()
    : wall_(absl::Now()), steady_(std::chrono::steady_clock::now()) {}

absl::Time SteadyWallClock::Now() const {
  return wall_ + absl::FromChrono(std::chrono::steady_clock::now() - steady_);
}

RealLoop::~RealLoop() {
  Stop();
  if (thread_.joinable()) thread_.join();
}

void RealLoop::Post(Callback fn) {
  bool wake;
  {
    absl::MutexLock lock(&mu_);
    posted_.push_back(std::move(fn));
    wake = waiting_;
  }
  if (wake) wake_.Signal();
}

EventLoop::TimerId RealLoop::RunAt(absl::Time when, Callback fn) {
  const uint64_t id = next_timer_++;
  timers_.emplace(std::pair(when, id), std::move(fn));
  timer_times_.emplace(id, when);
  return TimerId{id};
}

bool RealLoop::Cancel(TimerId id) {
  const auto it = timer_times_.find(static_cast<uint64_t>(id));
  if (it == timer_times_.end()) return false;
  // The callback is destroyed last: what it owns may call back into this.
  auto node = timers_.extract(std::pair(it->second, it->first));
  timer_times_.erase(it);
  return true;
}

void RealLoop::Start() {
  thread_ = std::thread([this] { Run(); });
}

void RealLoop::Run() {
  while (!stopped()) {
    const bool ran_posted = RunPosted();
    const bool ran_timers = RunDueTimers();
    if (!ran_posted && !ran_timers) WaitForWork();
  }
}

void RealLoop::Stop() {
  absl::MutexLock lock(&mu_);
  stop_ = true;
  wake_.SignalAll();
}

bool RealLoop::PostAndWait(Callback fn, absl::Duration limit) {
  auto ran = std::make_shared<absl::Notification>();
  Post([ran, fn = std::move(fn)]() mutable {
    std::move(fn)();
    ran->Notify();
  });
  const absl::Time end = Now() + limit;
  while (!ran->WaitForNotificationWithTimeout(
      std::min(absl::Milliseconds(50), end - Now()))) {
    if (stopped() || Now() >= end) return ran->HasBeenNotified();
  }
  return true;
}

bool RealLoop::stopped() const {
  absl::MutexLock lock(&mu_);
  return stop_;
}

bool RealLoop::RunPosted() {
  std::vector<Callback> batch;
  {
    absl::MutexLock lock(&mu_);
    batch.swap(posted_);
  }
  for (Callback& fn : batch) {
    if (stopped()) break;
    Callback once = std::move(fn);
    std::move(once)();
  }
  return !batch.empty();
}

// Only what was due on entry: a timer that sets a timer for now does not keep
// posted callbacks waiting.
bool RealLoop::RunDueTimers() {
  const absl::Time now = Now();
  const uint64_t end = next_timer_;
  bool any = false;
  while (!timers_.empty() && timers_.begin()->first.first <= now &&
         timers_.begin()->first.second < end && !stopped()) {
    auto node = timers_.extract(timers_.begin());
    timer_times_.erase(node.key().second);
    std::move(node.mapped())();
    any = true;
  }
  return any;
}

void RealLoop::WaitForWork() {
  absl::Duration wait = kLongestWait;
  if (!timers_.empty()) {
    wait = std::min(wait, timers_.begin()->first.first - Now());
  }
  if (wait <= absl::ZeroDuration()) return;
  absl::MutexLock lock(&mu_);
  if (stop_ || !posted_.empty()) return;
  waiting_ = true;
  wake_.WaitWithTimeout(&mu_, wait);
  waiting_ = false;
}

ThreadCompute::ThreadCompute(EventLoop* loop)
    : loop_(loop), thread_([this] { Work(); }) {}

ThreadCompute::~ThreadCompute() {
  {
    absl::MutexLock lock(&mu_);
    stop_ = true;
  }
  thread_.join();
}

void ThreadCompute::Run(EventLoop::Callback work, EventLoop::Callback done) {
  absl::MutexLock lock(&mu_);
  jobs_.push_back({std::move(work), std::move(done)});
}

void ThreadCompute::Work() {
  while (true) {
    Job job;
    {
      absl::MutexLock lock(&mu_);
      while (!mu_.AwaitWithTimeout(
          absl::Condition(this, &ThreadCompute::HasWork), kLongestWait)) {
      }
      if (stop_) return;
      job = std::move(jobs_.front());
      jobs_.erase(jobs_.begin());
    }
    std::move(job.work)();
    job.work = nullptr;  // what it owns dies before the loop goes on
    loop_->Post(std::move(job.done));
  }
}

}  // namespace gossamer
