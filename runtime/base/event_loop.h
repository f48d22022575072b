// The interface that all time and order come from.
//
// A peer's state is touched only on its loop; other threads hand results over
// with Post().  A real loop is a thread (real_loop.h); a virtual one is a queue
// over virtual time that all peers of a test share (virtual_loop.h).  This
// header knows nothing of what it runs.

#ifndef GOSSAMER_RUNTIME_BASE_EVENT_LOOP_H_
#define GOSSAMER_RUNTIME_BASE_EVENT_LOOP_H_

#include <cstdint>

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"

namespace gossamer {

// Runs callbacks, one at a time.
class EventLoop {
 public:
  using Callback = absl::AnyInvocable<void() &&>;
  // 0 names no timer.
  enum class TimerId : uint64_t {};

  virtual ~EventLoop() = default;
  // Returns the loop's time.  Any thread.
  virtual absl::Time Now() const = 0;
  // Runs `fn` on the loop, after everything already posted, never inline.
  // Any thread.
  virtual void Post(Callback fn) = 0;
  // Runs `fn` on the loop at `when`, or as soon as possible after.  Loop only.
  virtual TimerId RunAt(absl::Time when, Callback fn) = 0;
  // Returns false if the timer already ran or was cancelled.  Loop only.
  virtual bool Cancel(TimerId id) = 0;
};

// Runs gradient work.  `work` may touch the parameters; the loop does not until
// `done` has run on it, so the parameters have one owner at a time.
class ComputeEngine {
 public:
  virtual ~ComputeEngine() = default;
  virtual void Run(EventLoop::Callback work, EventLoop::Callback done) = 0;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_BASE_EVENT_LOOP_H_
