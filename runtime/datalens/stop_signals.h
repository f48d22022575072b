// Receives SIGINT and SIGTERM on an event loop instead of in handlers.
//
// Knows nothing of what they end.

#ifndef GOSSAMER_RUNTIME_DATALENS_STOP_SIGNALS_H_
#define GOSSAMER_RUNTIME_DATALENS_STOP_SIGNALS_H_

#include <signal.h>

#include "absl/functional/any_invocable.h"
#include "runtime/base/event_loop.h"

namespace gossamer {

// Blocks both signals until they are received.  It is made before any thread,
// so that all threads block them.
class StopSignals {
 public:
  StopSignals();
  // Calls `stop` on the loop, which runs on this thread, soon after the first
  // signal.  A second one ends the process.  Called on the loop.
  void Watch(EventLoop* loop, absl::AnyInvocable<void()> stop);

 private:
  void Look();

  sigset_t signals_;
  EventLoop* loop_ = nullptr;
  absl::AnyInvocable<void()> stop_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_DATALENS_STOP_SIGNALS_H_
