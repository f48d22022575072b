#include "runtime/lab/realtime_priority.h"

#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>

namespace gossamer {
namespace {

bool Schedule(int policy, int priority) {
  const sched_param parameter = {.sched_priority = priority};
  return ::pthread_setschedparam(::pthread_self(), policy, &parameter) == 0;
}

}  // namespace

bool SetRealtimePriority(int priority) {
  // By default the kernel may end a wait up to 50 µs late, to save wake-ups.
  ::prctl(PR_SET_TIMERSLACK, 1);  // nanosecond
  if (Schedule(SCHED_RR, priority)) return true;
  // The nice value is the next best, and needs a privilege as well; a refusal
  // leaves the thread as it is.
  ::setpriority(PRIO_PROCESS, 0, -20);
  return false;
}

ScopedRealtimePriority::ScopedRealtimePriority(int priority)
    : set_(Schedule(SCHED_RR, priority)) {}

ScopedRealtimePriority::~ScopedRealtimePriority() {
  if (set_) Schedule(SCHED_OTHER, 0);
}

}  // namespace gossamer
