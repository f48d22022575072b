// The loop of a real peer: one thread, timers, and callbacks from any thread.
//
// This header knows nothing of sockets: a transport has threads that Post(), or
// is the loop's poller.

#ifndef GOSSAMER_RUNTIME_BASE_REAL_LOOP_H_
#define GOSSAMER_RUNTIME_BASE_REAL_LOOP_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "algorithms/base/mutex.h"
#include "runtime/base/event_loop.h"

namespace gossamer {

// Wall-clock time that never runs backwards: read once, then advanced by the
// monotonic clock.
class SteadyWallClock {
 public:
  SteadyWallClock();
  absl::Time Now() const;

 private:
  const absl::Time wall_;
  const std::chrono::steady_clock::time_point steady_;
};

// I/O on the loop's thread: the loop waits on it while it has nothing to run.
class LoopPoller {
 public:
  virtual ~LoopPoller() = default;
  // Waits for an event or for Wake(), at most `limit`, which may be zero.
  // Returns the handler of the event; null if there is none.  Loop only.
  virtual EventLoop::Callback Wait(absl::Duration limit) = 0;
  // Ends the Wait() under way, or the next one.  Any thread.
  virtual void Wake() = 0;
};

// Runs either on the thread of Start() or on the caller of Run(), once.
// Callbacks that have not run when the loop stops never run; the destructor
// destroys them.  Timers due at the same time run in the order of registration.
class RealLoop final : public EventLoop {
 public:
  RealLoop() = default;
  // Stops the loop and joins the thread of Start().  Not called on the loop.
  ~RealLoop() override;
  RealLoop(const RealLoop&) = delete;
  RealLoop& operator=(const RealLoop&) = delete;

  absl::Time Now() const override { return clock_.Now(); }
  void Post(Callback fn) override;
  TimerId RunAt(absl::Time when, Callback fn) override;
  bool Cancel(TimerId id) override;

  // Sets the poller of a loop that has none, or removes it (null).  Once it
  // returns, the former poller is no longer used.  Called on the loop, or while
  // it does not run.
  void SetPoller(LoopPoller* poller);

  void Start();
  // Runs until Stop().
  void Run();
  // The callback that is running, or the event that a poller has taken, is the
  // last one.  Any thread, idempotent.
  void Stop();
  // Runs `fn` on the loop and returns when it has run.  Returns false if the
  // loop stopped first or `limit` passed.  Then `fn` may still run later, so it
  // must own what it uses.  Not called on the loop.
  bool PostAndWait(Callback fn, absl::Duration limit);

 private:
  bool RunPosted();
  bool RunDueTimers();
  // Waits at most `limit`.
  void WaitForWork(absl::Duration limit);
  void WakeLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool stopped() const;

  const SteadyWallClock clock_;
  mutable Mutex mu_;
  CondVar wake_;
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  bool waiting_ ABSL_GUARDED_BY(mu_) = false;
  LoopPoller* poller_ ABSL_GUARDED_BY(mu_) = nullptr;
  std::vector<Callback> posted_ ABSL_GUARDED_BY(mu_);

  // Used on the loop only.
  uint64_t next_timer_ = 1;
  std::map<std::pair<absl::Time, uint64_t>, Callback> timers_;
  std::map<uint64_t, absl::Time> timer_times_;
  std::thread thread_;
};

// Runs work beside the loop, one job after the other in the order of Run().
class ThreadCompute final : public ComputeEngine {
 public:
  // `loop` outlives the engine.  The priority of a job is by `nice` lower than
  // the process's; each job that waits behind it raises it by
  // kNiceOfAWaitingJob, at most to the process's.  So jobs take as little from
  // other threads as they can, and keep up.
  explicit ThreadCompute(EventLoop* loop, int nice = 0);
  // Waits for the work in progress.  Work that has not begun, and every `done`
  // that has not been handed to the loop, is dropped.
  ~ThreadCompute() override;
  void Run(EventLoop::Callback work, EventLoop::Callback done) override;

  static constexpr int kNiceOfAWaitingJob = 2;

 private:
  struct Job {
    EventLoop::Callback work;
    EventLoop::Callback done;
  };
  static void RunNicely(int nice, EventLoop::Callback& work);
  void Work();

  EventLoop* const loop_;
  const int nice_;
  Mutex mu_;
  CondVar wake_;
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<Job> jobs_ ABSL_GUARDED_BY(mu_);
  std::thread thread_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_BASE_REAL_LOOP_H_
