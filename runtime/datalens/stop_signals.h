// SIGINT and SIGTERM, taken by an event loop instead of in handlers.
//
// Knows nothing of what they end.

#ifndef GOSSAMER_RUNTIME_DATALENS_STOP_SIGNALS_H_
#define GOSSAMER_RUNTIME_DATALENS_STOP_SIGNALS_H_

#include <signal.h>

#include "absl/functional/any_invocable.h"
#include "runtime/base/event_loop.h"

namespace gossamer {

// Blocks both until they are taken; made before any thread is, so that all
// threads do.
class StopSignals {
 public:
  StopSignals();
  // Calls `stop` on the loop, which runs on this thread, soon after the first
  // of them.  A second one ends the process.  On the loop.
  void Watch(EventLoop* loop, absl::AnyInvocable<void()> stop);

 private:
  void Look();

  sigset_t signals_;
  EventLoop* loop_ = nullptr;
  absl::AnyInvocable<void()> stop_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_DATALENS_STOP_SIGNALS_H_
