#include "runtime/datalens/stop_signals.h"

#include <pthread.h>
#include <time.h>

#include <utility>

#include "absl/time/time.h"

namespace gossamer {
namespace {

constexpr absl::Duration kLookEvery = absl::Milliseconds(10);

}  // namespace

StopSignals::StopSignals() {
  sigemptyset(&signals_);
  sigaddset(&signals_, SIGINT);
  sigaddset(&signals_, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
}

void StopSignals::Watch(EventLoop* loop, absl::AnyInvocable<void()> stop) {
  loop_ = loop;
  stop_ = std::move(stop);
  Look();
}

void StopSignals::Look() {
  const timespec none = {};
  if (sigtimedwait(&signals_, nullptr, &none) > 0) {
    pthread_sigmask(SIG_UNBLOCK, &signals_, nullptr);
    stop_();
    return;
  }
  loop_->RunAt(loop_->Now() + kLookEvery, [this] { Look(); });
}

}  // namespace gossamer
