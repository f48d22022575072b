// Work in a process of its own whose system calls on files fail one by one or
// are cut short, or that is killed before one.
//
// The process is traced (ptrace), so calls from within libraries count too.
// This header knows nothing of the work.

#ifndef GOSSAMER_TESTS_TESTING_FAILING_CALLS_H_
#define GOSSAMER_TESTS_TESTING_FAILING_CALLS_H_

#include <functional>
#include <optional>
#include <ostream>

namespace gossamer {

enum class FileCall {
  kOpen,
  kRead,
  kWrite,
  kSync,
  kClose,
  kRename,
  kMakeFolder,
  kRemove,
  kStat,
  kList
};

// The call that fails, and how.
struct CallFault {
  std::optional<FileCall> call = {};  // none: a call of any kind
  int n = 0;                          // the number of the call, from 1
  enum class Effect { kError, kShort, kKill } effect = Effect::kError;
  int error = 0;  // for kError: the call's error, without effect
};

// The outcome of the work and of the failed call.
struct CallOutcome {
  bool reached = false;   // whether there was an n-th call
  std::optional<int> rc;  // the work's result; none: it was killed
  // Files that were written to and closed without a sync afterwards.
  int unsynced = 0;
};

// Returns whether this machine allows tracing and has a known architecture.
bool CanTraceCalls();

// Runs `work` in a fork of this process, which must have one thread.
CallOutcome RunWithFault(const CallFault& fault,
                         const std::function<int()>& work);

std::ostream& operator<<(std::ostream& out, const CallFault& fault);

}  // namespace gossamer

#endif  // GOSSAMER_TESTS_TESTING_FAILING_CALLS_H_
