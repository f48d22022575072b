#include "runtime/base/real_loop.h"

#include <sys/resource.h>

#include <algorithm>
#include <cassert>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/time/clock.h"

namespace gossamer {
namespace {

// The longest wait, after which a loop checks its work again.
constexpr absl::Duration kLongestWait = absl::Seconds(60);

struct Ran {
  Mutex mu;
  CondVar changed;
  bool ran ABSL_GUARDED_BY(mu) = false;
};

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
  MutexLock lock(&mu_);
  posted_.push_back(std::move(fn));
  WakeLocked();
}

void RealLoop::WakeLocked() {
  // A loop that is not waiting looks for posted callbacks before it waits, so
  // it needs no wake-up.
  if (!waiting_) return;
  if (poller_ != nullptr) {
    poller_->Wake();
  } else {
    wake_.Signal();
  }
}

void RealLoop::SetPoller(LoopPoller* poller) {
  MutexLock lock(&mu_);
  // A loop waits in one place only.
  assert(poller == nullptr || poller_ == nullptr);
  poller_ = poller;
}

EventLoop::TimerId RealLoop::RunAt(absl::Time when, Callback fn) {
  const uint64_t id = next_timer_++;
  // The id orders timers of one time by their registration.
  timers_.emplace(std::pair(when, id), std::move(fn));
  timer_times_.emplace(id, when);
  return TimerId{id};
}

bool RealLoop::Cancel(TimerId id) {
  const auto it = timer_times_.find(static_cast<uint64_t>(id));
  if (it == timer_times_.end()) return false;
  // The callback is destroyed last: an object that it owns may call this loop.
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
    // I/O has its turn however many callbacks there are to run.
    WaitForWork(ran_posted || ran_timers ? absl::ZeroDuration() : kLongestWait);
  }
}

void RealLoop::Stop() {
  MutexLock lock(&mu_);
  stop_ = true;
  WakeLocked();
}

bool RealLoop::PostAndWait(Callback fn, absl::Duration limit) {
  // The state is shared: a callback that is late still finds it after this call
  // has given up.
  auto state = std::make_shared<Ran>();
  Post([state, fn = std::move(fn)]() mutable {
    std::move(fn)();
    MutexLock lock(&state->mu);
    state->ran = true;
    state->changed.Signal();
  });
  const absl::Time end = Now() + limit;
  MutexLock lock(&state->mu);
  while (!state->ran && !stopped() && Now() < end) {
    // A stop signals the loop only, so the wait wakes up from time to time to
    // see it.
    state->changed.WaitFor(&state->mu,
                           std::min(absl::Milliseconds(50), end - Now()));
  }
  return state->ran;
}

bool RealLoop::stopped() const {
  MutexLock lock(&mu_);
  return stop_;
}

bool RealLoop::RunPosted() {
  std::vector<Callback> batch;
  {
    // The callbacks run without the lock: they post further ones.
    MutexLock lock(&mu_);
    // A batch is taken at once: callbacks that post others cannot keep timers
    // and I/O waiting.
    batch.swap(posted_);
  }
  for (Callback& fn : batch) {
    if (stopped()) break;
    // An object that the callback owns is destroyed when it has run, not with
    // the batch.
    Callback once = std::move(fn);
    std::move(once)();
  }
  return !batch.empty();
}

// Runs the timers that were due on entry.  A timer that sets another one for
// now must not keep posted callbacks waiting.
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

void RealLoop::WaitForWork(absl::Duration limit) {
  if (!timers_.empty()) {
    limit = std::min(limit, timers_.begin()->first.first - Now());
  }
  LoopPoller* poller;
  {
    MutexLock lock(&mu_);
    if (stop_) return;
    if (!posted_.empty()) limit = absl::ZeroDuration();
    // The flag is set under the lock: a Post() after this sees it and wakes the
    // poller.
    waiting_ = limit > absl::ZeroDuration();
    poller = poller_;
    if (poller == nullptr) {
      if (waiting_) wake_.WaitFor(&mu_, limit);
      waiting_ = false;
      return;
    }
  }
  Callback event = poller->Wait(std::max(limit, absl::ZeroDuration()));
  {
    MutexLock lock(&mu_);
    waiting_ = false;
  }
  // The event runs outside the lock and after the wait: it may post.
  if (event) std::move(event)();
}

ThreadCompute::ThreadCompute(EventLoop* loop, int nice)
    : loop_(loop), nice_(nice), thread_([this] { Work(); }) {}

ThreadCompute::~ThreadCompute() {
  {
    MutexLock lock(&mu_);
    stop_ = true;
  }
  wake_.Signal();
  thread_.join();
}

void ThreadCompute::Run(EventLoop::Callback work, EventLoop::Callback done) {
  {
    MutexLock lock(&mu_);
    // One thread takes the jobs in order, so two of them never touch the
    // parameters at once.
    jobs_.push_back({std::move(work), std::move(done)});
  }
  wake_.Signal();
}

// Without privileges a thread can lower its priority and never raise it again,
// so work of a lower one is done by another thread.
void ThreadCompute::RunNicely(int nice, EventLoop::Callback& work) {
  if (nice > 0) {
    try {
      std::thread([nice, &work] {
        // On Linux the priority is a thread's, and 0 the calling one.  A
        // refusal costs others some time and nothing else.
        ::setpriority(PRIO_PROCESS, 0, ::getpriority(PRIO_PROCESS, 0) + nice);
        std::move(work)();
      }).join();
      return;
    } catch (const std::system_error&) {
      // The machine has no thread left; this one does the work.
    }
  }
  std::move(work)();
}

void ThreadCompute::Work() {
  while (true) {
    Job job;
    int nice = 0;
    {
      MutexLock lock(&mu_);
      while (!stop_ && jobs_.empty()) wake_.WaitFor(&mu_, kLongestWait);
      // Work that has not begun is dropped: its result would find no loop.
      if (stop_) return;
      job = std::move(jobs_.front());
      jobs_.erase(jobs_.begin());
      const size_t waiting = std::min(jobs_.size(), static_cast<size_t>(nice_));
      nice =
          std::max(0, nice_ - kNiceOfAWaitingJob * static_cast<int>(waiting));
    }
    RunNicely(nice, job.work);
    job.work = nullptr;  // objects that it owns die before the loop goes on
    loop_->Post(std::move(job.done));
  }
}

}  // namespace gossamer
