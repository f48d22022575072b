#include "tests/testing/failing_calls.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <set>

namespace gossamer {
#ifdef __x86_64__
namespace {

std::optional<FileCall> KindOf(uint64_t number) {
  switch (number) {
    case SYS_open:
    case SYS_openat:
    case SYS_openat2:
    case SYS_creat:
      return FileCall::kOpen;
    case SYS_read:
    case SYS_pread64:
    case SYS_readv:
    case SYS_preadv:
      return FileCall::kRead;
    case SYS_write:
    case SYS_pwrite64:
    case SYS_writev:
    case SYS_pwritev:
      return FileCall::kWrite;
    case SYS_fsync:
    case SYS_fdatasync:
    case SYS_syncfs:
      return FileCall::kSync;
    case SYS_close:
      return FileCall::kClose;
    case SYS_rename:
    case SYS_renameat:
    case SYS_renameat2:
      return FileCall::kRename;
    case SYS_mkdir:
    case SYS_mkdirat:
      return FileCall::kMakeFolder;
    case SYS_unlink:
    case SYS_unlinkat:
    case SYS_rmdir:
      return FileCall::kRemove;
    case SYS_stat:
    case SYS_lstat:
    case SYS_fstat:
    case SYS_newfstatat:
    case SYS_statx:
      return FileCall::kStat;
    case SYS_getdents:
    case SYS_getdents64:
      return FileCall::kList;
    default:
      return std::nullopt;
  }
}

// Follows a traced child from call to call, and makes one of them fail.
class Tracer {
 public:
  Tracer(pid_t child, const CallFault& fault) : child_(child), fault_(fault) {}

  CallOutcome Follow() {
    int status = 0;
    bool begun = false;
    for (;;) {
      if (::waitpid(child_, &status, 0) != child_) std::abort();
      if (WIFEXITED(status)) outcome_.rc = WEXITSTATUS(status);
      if (WIFEXITED(status) || WIFSIGNALED(status)) return outcome_;
      int signal = WSTOPSIG(status);
      if (signal == (SIGTRAP | 0x80)) {
        OnCall();
        signal = 0;
      } else if (!begun) {  // stopped by the child's own SIGSTOP
        begun = true;
        ::ptrace(PTRACE_SETOPTIONS, child_, nullptr,
                 PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
        signal = 0;
      }
      ::ptrace(PTRACE_SYSCALL, child_, nullptr, signal);
    }
  }

 private:
  void OnCall() {
    user_regs_struct regs;
    ::ptrace(PTRACE_GETREGS, child_, nullptr, &regs);
    within_ = !within_;
    if (within_) return OnEntry(regs);
    if (fails_) {
      regs.rax = static_cast<uint64_t>(-fault_.error);
      ::ptrace(PTRACE_SETREGS, child_, nullptr, &regs);
    } else if (static_cast<int64_t>(regs.rax) >= 0) {
      OnDone(static_cast<int>(regs.rdi));
    }
    fails_ = false;
  }

  void OnEntry(user_regs_struct& regs) {
    kind_ = KindOf(regs.orig_rax);
    if (!kind_ || (fault_.call && fault_.call != kind_)) return;
    if (++seen_ != fault_.n) return;
    outcome_.reached = true;
    switch (fault_.effect) {
      case CallFault::Effect::kKill:
        ::kill(child_, SIGKILL);
        return;
      case CallFault::Effect::kShort:
        regs.rdx = (regs.rdx + 1) / 2;
        break;
      case CallFault::Effect::kError:
        // No such call, so none is made.
        regs.orig_rax = static_cast<uint64_t>(-1);
        fails_ = true;
        break;
    }
    ::ptrace(PTRACE_SETREGS, child_, nullptr, &regs);
  }

  void OnDone(int fd) {
    if (kind_ == FileCall::kWrite) written_.insert(fd);
    if (kind_ == FileCall::kSync) written_.erase(fd);
    if (kind_ == FileCall::kClose) {
      outcome_.unsynced += static_cast<int>(written_.erase(fd));
    }
  }

  const pid_t child_;
  const CallFault& fault_;
  CallOutcome outcome_;
  bool within_ = false;  // between the two stops of a call
  bool fails_ = false;
  std::optional<FileCall> kind_;  // of the last call
  int seen_ = 0;
  std::set<int> written_;
};

constexpr int kNotTraced = 97;

}  // namespace

CallOutcome RunWithFault(const CallFault& fault,
                         const std::function<int()>& work) {
  const pid_t child = ::fork();
  if (child < 0) std::abort();
  if (child == 0) {
    if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(kNotTraced);
    ::raise(SIGSTOP);
    // An exception ends the child instead of continuing the caller's work.
    const auto without_throwing = [&work]() noexcept { return work(); };
    ::_exit(without_throwing());
  }
  return Tracer(child, fault).Follow();
}

bool CanTraceCalls() {
  const CallFault first = {.call = FileCall::kClose, .n = 1, .error = EIO};
  const CallOutcome outcome =
      RunWithFault(first, [] { return ::close(-1) != 0 && errno == EIO; });
  return outcome.reached && outcome.rc == 1;
}

#else

bool CanTraceCalls() { return false; }
CallOutcome RunWithFault(const CallFault&, const std::function<int()>&) {
  std::abort();
}

#endif

std::ostream& operator<<(std::ostream& out, const CallFault& fault) {
  static constexpr const char* kNames[] = {
      "open",   "read",  "write",  "fsync", "close",
      "rename", "mkdir", "unlink", "stat",  "getdents"};
  if (fault.effect == CallFault::Effect::kKill) out << "killed before ";
  if (fault.effect == CallFault::Effect::kShort) out << "half of ";
  if (fault.effect == CallFault::Effect::kError) {
    out << std::strerror(fault.error) << " at ";
  }
  return out << (fault.call ? kNames[static_cast<int>(*fault.call)] : "call")
             << " " << fault.n;
}

}  // namespace gossamer
