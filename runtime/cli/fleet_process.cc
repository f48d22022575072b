#include "runtime/cli/fleet_process.h"

#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "algorithms/base/status_macros.h"
#include "runtime/base/steady_time.h"
#include "runtime/telemetry/progress.h"

namespace gossamer {
namespace {

// The data of a child, which must be ready before fork().
struct Child {
  std::vector<char*> argv;  // with a null pointer at the end
  std::vector<char*> env;
  int log = -1;
  int network = -1;
  bool silent = false;
  pid_t parent;  // as the child sees it
};

// Makes only calls that are safe in a signal handler, as needed between fork()
// and exec().
[[noreturn]] void BecomeProgram(const Child& child) {
  // The terminal sends Ctrl-C to its whole process group; only the parent is to
  // receive it.
  ::setpgid(0, 0);
  // The kernel kills the child when its parent's thread ends, in whatever way.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The parent may have died before the line above took effect.
  if (::getppid() != child.parent) ::_exit(127);
  if (child.network >= 0 && ::setns(child.network, CLONE_NEWNET) != 0) {
    ::_exit(127);
  }
  // The parent blocks the signals that SignalWaiter takes; a program expects
  // them to be free.
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  // Several processes must not read from one terminal.
  const int null = ::open("/dev/null", O_RDONLY);
  if (null >= 0) ::dup2(null, STDIN_FILENO);
  if (child.silent) ::dup2(::open("/dev/null", O_WRONLY), STDOUT_FILENO);
  if (child.log >= 0) {
    ::dup2(child.log, STDOUT_FILENO);
    ::dup2(child.log, STDERR_FILENO);
  }
  ::execve(child.argv[0], child.argv.data(), child.env.data());
  // The code is the shell's for a program that cannot be run.
  ::_exit(127);
}

// Forks with the child in the process namespace `processes`, or the own one if
// it is negative.
absl::StatusOr<pid_t> ForkInto(int processes, Child& child) {
  child.parent = ::getpid();
  int own = -1;
  if (processes >= 0) {
    // A parent outside the namespace has no number within it.
    child.parent = 0;
    // setns() is for children of this thread alone; the thread itself stays
    // where it is.
    own = ::open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
    if (own < 0 || ::setns(processes, CLONE_NEWPID) != 0) {
      const int error = errno;
      if (own >= 0) ::close(own);
      return absl::ErrnoToStatus(error, "cannot enter a process namespace");
    }
  }
  const pid_t pid = ::fork();
  if (pid == 0) BecomeProgram(child);
  const int error = errno;
  if (own >= 0) {
    // Undone for later children; returning to the own namespace always works.
    ::setns(own, CLONE_NEWPID);
    ::close(own);
  }
  if (pid < 0) return absl::ErrnoToStatus(error, "fork");
  return pid;
}

std::vector<char*> Pointers(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) {
    pointers.push_back(const_cast<char*>(word.c_str()));
  }
  return pointers;
}

// Returns `own` and the inherited variables.
std::vector<char*> Environment(const std::vector<std::string>& own) {
  std::vector<char*> result = Pointers(own);
  for (char** inherited = environ; *inherited != nullptr; ++inherited) {
    const bool replaced =
        std::any_of(own.begin(), own.end(), [&](const std::string& entry) {
          return absl::StartsWith(*inherited,
                                  entry.substr(0, entry.find('=') + 1));
        });
    if (!replaced) result.push_back(*inherited);
  }
  result.push_back(nullptr);
  return result;
}

absl::StatusOr<pid_t> Fork(const ProcessSpec& spec) {
  const std::vector<std::string>& words = spec.argv;
  // The check comes before fork(): a child could only report a missing program
  // by its exit code.
  if (::access(words[0].c_str(), X_OK) != 0) {
    return absl::NotFoundError(
        absl::StrCat(words[0], ": ", ::strerror(errno),
                     "; build all programs, they belong in one folder"));
  }
  Child child{.argv = Pointers(words),
              .env = Environment(spec.env),
              .log = -1,
              .network = spec.place.network,
              .silent = spec.silent,
              .parent = 0};
  if (!spec.log.empty()) {
    // The log is appended to: a resumed run keeps the lines of the time before.
    child.log = ::open(spec.log.c_str(),
                       O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (child.log < 0) return absl::ErrnoToStatus(errno, spec.log);
  }
  // All memory is ready: after fork() nothing may be allocated.
  child.argv.push_back(nullptr);
  absl::StatusOr<pid_t> pid = ForkInto(spec.place.processes, child);
  if (child.log >= 0) ::close(child.log);
  return pid;
}

ProcessExit ExitOf(int status) {
  ProcessExit exit;
  if (WIFSIGNALED(status)) {
    exit.signal = WTERMSIG(status);
  } else {
    exit.code = WEXITSTATUS(status);
  }
  return exit;
}

}  // namespace

std::string ProcessExit::Describe() const {
  return signal != 0 ? absl::StrCat("was killed by signal ", signal, " (",
                                    ::strsignal(signal), ")")
                     : absl::StrCat("ended with code ", code);
}

SignalWaiter::SignalWaiter() {
  ::sigemptyset(&signals_);
  for (int s : {SIGINT, SIGTERM, SIGCHLD}) ::sigaddset(&signals_, s);
  // Blocked signals wait for sigtimedwait(), and threads that start later
  // inherit the mask.
  ::pthread_sigmask(SIG_BLOCK, &signals_, &before_);
}

SignalWaiter::~SignalWaiter() {
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

std::optional<int> SignalWaiter::Wait(absl::Duration timeout) {
  const timespec limit = absl::ToTimespec(timeout);
  const int signal = ::sigtimedwait(&signals_, nullptr, &limit);
  if (signal < 0) return std::nullopt;
  if (signal == SIGCHLD || deduplicator_.IsDuplicate(signal, SteadyNow())) {
    return std::nullopt;
  }
  return signal;
}

ProcessGroup::~ProcessGroup() { Kill({}); }

absl::Status ProcessGroup::Start(const ProcessSpec& spec) {
  GOSSAMER_ASSIGN_OR_RETURN(const pid_t pid, Fork(spec));
  running_[pid] = {spec.name, spec.log};
  return absl::OkStatus();
}

std::vector<ProcessExit> ProcessGroup::Reap() {
  std::vector<ProcessExit> exits;
  for (auto it = running_.begin(); it != running_.end();) {
    int status = 0;
    // Each process is asked for by itself: another part of the program may have
    // children, too.
    if (::waitpid(it->first, &status, WNOHANG) != it->first) {
      ++it;
      continue;
    }
    ProcessExit exit = ExitOf(status);
    exit.name = it->second.name;
    exit.log = it->second.log;
    exits.push_back(std::move(exit));
    it = running_.erase(it);
  }
  return exits;
}

void ProcessGroup::Signal(int signal) {
  for (const auto& [pid, process] : running_) {
    // Each process leads a group of its own once it has started; before that,
    // only the process itself gets the signal.
    if (::kill(-pid, signal) != 0) ::kill(pid, signal);
  }
}

std::string ProcessGroup::Kill(absl::Duration since) {
  // A process that has ended by itself was not killed.
  Reap();
  Signal(SIGKILL);
  std::vector<std::string> killed;
  for (const auto& [pid, process] : std::exchange(running_, {})) {
    int status = 0;
    ::waitpid(pid, &status, 0);
    // A process may end by itself between the two lines.
    if (ExitOf(status).signal == SIGKILL) killed.push_back(process.name);
  }
  if (killed.empty()) return "";
  return absl::StrCat(absl::StrJoin(killed, ", "),
                      killed.size() == 1 ? " was" : " were", " killed, ",
                      HumanDuration(since), " after being asked to end");
}

std::string ProcessGroup::End(SignalWaiter& signals, absl::Duration grace) {
  // The time is measured from the request, so that the message says how long
  // the process was given.
  const absl::Time asked = SteadyNow();
  Signal(SIGTERM);
  if (WaitAll(signals, grace)) return "";
  return Kill(SteadyNow() - asked);
}

bool ProcessGroup::WaitAll(SignalWaiter& signals, absl::Duration timeout) {
  const absl::Time end = SteadyNow() + timeout;
  for (Reap(); !running_.empty(); Reap()) {
    if (SteadyNow() >= end) return false;
    if (signals.Wait(absl::Milliseconds(50))) return false;
  }
  return true;
}

absl::StatusOr<int> RunToEnd(const std::vector<std::string>& argv) {
  GOSSAMER_ASSIGN_OR_RETURN(const pid_t pid,
                            Fork({.name = argv[0], .argv = argv, .log = ""}));
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return absl::ErrnoToStatus(errno, argv[0]);
  }
  const ProcessExit exit = ExitOf(status);
  // A shell reports it so.
  return exit.signal != 0 ? 128 + exit.signal : exit.code;
}

absl::StatusOr<ProcessExit> RunPassingSignals(const ProcessSpec& spec,
                                              SignalWaiter& signals) {
  ProcessGroup process;
  GOSSAMER_RETURN_IF_ERROR(process.Start(spec));
  bool stopping = false;
  while (true) {
    const auto signal = signals.Wait(absl::Milliseconds(500));
    // The child leads a process group of its own, so Ctrl-C on the terminal
    // does not reach it by itself.
    if (signal) {
      stopping = true;
      process.Signal(*signal);
    }
    const std::vector<ProcessExit> exits = process.Reap();
    if (exits.empty()) continue;
    // The child's own code says nothing more: it was asked to end.
    if (stopping) return absl::AbortedError("stopped by a signal");
    return exits[0];
  }
}

std::string SiblingProgram(const std::string& name) {
  std::error_code error;
  const std::filesystem::path self =
      std::filesystem::read_symlink("/proc/self/exe", error);
  return (self.parent_path() / name).string();
}

std::string Tail(const std::string& path, int lines) {
  // The bound keeps a log of gigabytes out of memory.
  constexpr std::streamoff kMax = 16 << 10;
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return "";
  const std::streamoff size = file.tellg();
  file.seekg(std::max<std::streamoff>(0, size - kMax));
  std::string text(static_cast<size_t>(std::min(size, kMax)), '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  std::vector<absl::string_view> all =
      absl::StrSplit(absl::StripSuffix(text, "\n"), '\n');
  if (all.size() > static_cast<size_t>(lines)) {
    all.erase(all.begin(), all.end() - lines);
  }
  return absl::StrJoin(all, "\n");
}

}  // namespace gossamer
