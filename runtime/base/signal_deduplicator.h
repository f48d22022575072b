// Distinguishes a signal that is merely sent twice from a second request.
//
// systemd (KillMode=control-group), a terminal's Ctrl-C and timeout(1) signal
// every process that they know, and a wrapper passes its own signal on: one
// request arrives twice.  This header knows nothing of how signals are
// received.

#ifndef GOSSAMER_RUNTIME_BASE_SIGNAL_DEDUPLICATOR_H_
#define GOSSAMER_RUNTIME_BASE_SIGNAL_DEDUPLICATOR_H_

#include "absl/time/time.h"

namespace gossamer {

class SignalDeduplicator {
 public:
  // A person who asks for more has read the answer to that signal by then;
  // a busy machine passes a signal on sooner.
  static constexpr absl::Duration kWithin = absl::Seconds(2);

  // Returns whether `signal`, received at `now`, repeats the last one that was
  // no duplicate.  Called for every signal.
  bool IsDuplicate(int signal, absl::Time now) {
    if (signal == last_ && now - at_ < kWithin) return true;
    last_ = signal;
    at_ = now;
    return false;
  }

 private:
  int last_ = 0;
  absl::Time at_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_BASE_SIGNAL_DEDUPLICATOR_H_
