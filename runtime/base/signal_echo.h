// A signal that is sent twice, told from one that somebody insists on.
//
// systemd (KillMode=control-group), a terminal's Ctrl-C and timeout(1) signal
// every process that they know, and a wrapper passes its own on: one wish
// arrives twice.  Knows nothing of how signals are taken.

#ifndef GOSSAMER_RUNTIME_BASE_SIGNAL_ECHO_H_
#define GOSSAMER_RUNTIME_BASE_SIGNAL_ECHO_H_

#include "absl/time/time.h"

namespace gossamer {

class SignalEcho {
 public:
  // A person who wants more than the first signal asked for has read meanwhile
  // what it does; a busy machine passes one on sooner.
  static constexpr absl::Duration kWithin = absl::Seconds(2);

  // Whether `signal`, taken at `now`, is the first one again.  To be asked of
  // each that is taken.
  bool Is(int signal, absl::Time now) {
    if (first_ == 0) {
      first_ = signal;
      at_ = now;
      return false;
    }
    return signal == first_ && now - at_ < kWithin;
  }

 private:
  int first_ = 0;
  absl::Time at_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_BASE_SIGNAL_ECHO_H_
