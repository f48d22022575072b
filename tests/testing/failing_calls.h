// Work in a process of its own whose system calls on files fail one by one, are
// cut short, or are never reached because it is killed before them.
//
// It is traced (ptrace), so nothing escapes: calls from within libraries count,
// too.  Knows nothing of what the work is.

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

struct CallFault {
  std::optional<FileCall> call = {};  // none: of whatever kind
  int n = 0;                          // which of them, from 1
  enum class Effect { kError, kShort, kKill } effect = Effect::kError;
  int error = 0;  // for kError: what the call returns, undone
};

struct CallOutcome {
  bool reached = false;   // whether there was an n-th call
  std::optional<int> rc;  // what the work returned; none: it was killed
  // Files that were written to and closed without a sync after it.
  int unsynced = 0;
};

// False where this machine traces nobody, or is not one that is known.
bool CanTraceCalls();

// `work` runs in a fork of this process, which must have one thread.
CallOutcome RunWithFault(const CallFault& fault,
                         const std::function<int()>& work);

std::ostream& operator<<(std::ostream& out, const CallFault& fault);

}  // namespace gossamer

#endif  // GOSSAMER_TESTS_TESTING_FAILING_CALLS_H_
