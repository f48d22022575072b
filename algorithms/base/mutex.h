// A mutex and a condition variable that both clang's thread-safety analysis
// and ThreadSanitizer understand.
//
// absl's are annotated, but a system's Abseil is not built for
// ThreadSanitizer, which then takes every lock for none.  Waits follow the
// monotonic clock, so that setting the time neither prolongs nor ends them.

#ifndef GOSSAMER_ALGORITHMS_BASE_MUTEX_H_
#define GOSSAMER_ALGORITHMS_BASE_MUTEX_H_

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"

namespace gossamer {

class ABSL_LOCKABLE Mutex {
 public:
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mu_.lock(); }
  void Unlock() ABSL_UNLOCK_FUNCTION() { mu_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mu_;
};

class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex* mu) ABSL_EXCLUSIVE_LOCK_FUNCTION(mu) : mu_(mu) {
    mu_->Lock();
  }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mu_->Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex* const mu_;
};

class CondVar {
 public:
  // May wake for no reason.
  void WaitFor(Mutex* mu, absl::Duration limit)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    std::unique_lock<std::mutex> lock(mu->mu_, std::adopt_lock);
    cv_.wait_until(lock, End(limit));
    lock.release();
  }
  // Waits until `condition`, evaluated with the lock held, is true; false if it
  // is not within `limit`.
  template <typename Condition>
  bool AwaitFor(Mutex* mu, absl::Duration limit, Condition condition)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    std::unique_lock<std::mutex> lock(mu->mu_, std::adopt_lock);
    const bool held = cv_.wait_until(lock, End(limit), condition);
    lock.release();
    return held;
  }
  void Signal() { cv_.notify_one(); }
  void SignalAll() { cv_.notify_all(); }

 private:
  static std::chrono::steady_clock::time_point End(absl::Duration limit) {
    return std::chrono::steady_clock::now() +
           absl::ToChronoNanoseconds(std::min(limit, absl::Hours(24)));
  }
  std::condition_variable cv_;
};

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_BASE_MUTEX_H_
