// One coroutine waiting for a condition, with a deadline.
//
// The condition is polled whenever somebody says that something may have
// changed.  This header knows nothing of what is waited for.

#ifndef GOSSAMER_RUNTIME_PEER_WAITER_H_
#define GOSSAMER_RUNTIME_PEER_WAITER_H_

#include <functional>
#include <optional>
#include <utility>

#include "absl/time/time.h"
#include "algorithms/base/seeded_bug.h"
#include "runtime/base/event_loop.h"
#include "runtime/base/task.h"

namespace gossamer {

class Waiter {
 public:
  explicit Waiter(EventLoop* loop) : loop_(loop) {}
  ~Waiter() { CancelTimer(); }
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  // co_await gives true once `condition` holds, false at `deadline`.
  // `next_poll`, if given, is asked after each poll for a time at which to
  // poll again though nobody called Notify().  One wait at a time.
  Pending<bool> Until(std::function<bool()> condition, absl::Time deadline,
                      std::function<absl::Time()> next_poll = nullptr) {
    wait_.emplace(Wait{std::move(condition), std::move(next_poll), deadline,
                       Pending<bool>()});
    const Pending<bool> result = wait_->result;
    Poll();
    return result;
  }

  // When it polls again by itself: InfinitePast if nobody waits, InfiniteFuture
  // if nothing but Notify() makes it poll.
  absl::Time next_poll() const {
    if (!wait_) return absl::InfinitePast();
    return timer_ == EventLoop::TimerId{} ? absl::InfiniteFuture() : poll_at_;
  }

  // Something may have changed.  Never resumes inline: the caller may be in
  // the middle of the change.
  void Notify() {
    if (!wait_ || posted_) return;
    posted_ = true;
    loop_->Post([this, alive = std::weak_ptr<int>(alive_)] {
      if (alive.expired()) return;
      posted_ = false;
      Poll();
    });
  }

 private:
  struct Wait {
    std::function<bool()> condition;
    std::function<absl::Time()> next_poll;
    absl::Time deadline;
    Pending<bool> result;
  };

  void Poll() {
    if (!wait_) return;
    CancelTimer();
    const bool holds = wait_->condition();
    if (holds || loop_->Now() >= wait_->deadline) {
      Pending<bool> result = wait_->result;
      wait_.reset();
      result.Set(holds);
      return;
    }
    absl::Time next = wait_->deadline;
    if (wait_->next_poll) next = std::min(next, wait_->next_poll());
    if (next == absl::InfiniteFuture() || SeededBug("no-deadline")) return;
    poll_at_ = next;
    timer_ = loop_->RunAt(next, [this] {
      timer_ = {};
      Poll();
    });
  }
  void CancelTimer() {
    if (timer_ != EventLoop::TimerId{}) loop_->Cancel(timer_);
    timer_ = {};
  }

  EventLoop* const loop_;
  std::optional<Wait> wait_;
  EventLoop::TimerId timer_{};
  absl::Time poll_at_;
  bool posted_ = false;
  const std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_PEER_WAITER_H_
