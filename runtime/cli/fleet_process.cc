#include "runtime/cli/fleet_process.h"

#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "runtime/base/status_macros.h"

namespace gossamer {
namespace {

// Between fork and exec only calls that are safe in a signal handler.
[[noreturn]] void BecomeProgram(char* const* argv, int log, pid_t parent) {
  // Ctrl-C goes to the terminal's whole group; only the parent is to hear it.
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);  // it died before the line above
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  const int null = ::open("/dev/null", O_RDONLY);
  if (null >= 0) ::dup2(null, STDIN_FILENO);
  if (log >= 0) {
    ::dup2(log, STDOUT_FILENO);
    ::dup2(log, STDERR_FILENO);
  }
  ::execv(argv[0], argv);
  ::_exit(127);
}

absl::StatusOr<pid_t> Fork(const std::vector<std::string>& words,
                           const std::string& log_path) {
  if (::access(words[0].c_str(), X_OK) != 0) {
    return absl::NotFoundError(
        absl::StrCat(words[0], ": ", ::strerror(errno),
                     "; build all programs, they belong in one folder"));
  }
  int log = -1;
  if (!log_path.empty()) {
    log = ::open(log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
                 0644);
    if (log < 0) return absl::ErrnoToStatus(errno, log_path);
  }
  std::vector<char*> argv;
  for (const std::string& word : words) {
    argv.push_back(const_cast<char*>(word.c_str()));
  }
  argv.push_back(nullptr);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) BecomeProgram(argv.data(), log, parent);
  const int error = errno;
  if (log >= 0) ::close(log);
  if (pid < 0) return absl::ErrnoToStatus(error, "fork");
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
  ::pthread_sigmask(SIG_BLOCK, &signals_, &before_);
}

SignalWaiter::~SignalWaiter() {
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

std::optional<int> SignalWaiter::Wait(absl::Duration timeout) {
  const timespec limit = absl::ToTimespec(timeout);
  const int signal = ::sigtimedwait(&signals_, nullptr, &limit);
  if (signal < 0) return std::nullopt;
  return signal;
}

ProcessGroup::~ProcessGroup() {
  Signal(SIGKILL);
  for (const auto& [pid, process] : running_) ::waitpid(pid, nullptr, 0);
}

absl::Status ProcessGroup::Start(const ProcessSpec& spec) {
  GOSSAMER_ASSIGN_OR_RETURN(const pid_t pid, Fork(spec.argv, spec.log));
  running_[pid] = {spec.name, spec.log};
  return absl::OkStatus();
}

std::vector<ProcessExit> ProcessGroup::Reap() {
  std::vector<ProcessExit> exits;
  for (auto it = running_.begin(); it != running_.end();) {
    int status = 0;
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
  for (const auto& [pid, process] : running_) ::kill(pid, signal);
}

bool ProcessGroup::WaitAll(SignalWaiter& signals, absl::Duration timeout) {
  const absl::Time end = absl::Now() + timeout;
  for (Reap(); !running_.empty(); Reap()) {
    if (absl::Now() >= end) return false;
    signals.Wait(absl::Milliseconds(50));
  }
  return true;
}

absl::StatusOr<int> RunToEnd(const std::vector<std::string>& argv) {
  GOSSAMER_ASSIGN_OR_RETURN(const pid_t pid, Fork(argv, ""));
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return absl::ErrnoToStatus(errno, argv[0]);
  }
  const ProcessExit exit = ExitOf(status);
  return exit.signal != 0 ? 128 + exit.signal : exit.code;
}

std::string SiblingProgram(const std::string& name) {
  std::error_code error;
  const std::filesystem::path self =
      std::filesystem::read_symlink("/proc/self/exe", error);
  return (self.parent_path() / name).string();
}

std::string Tail(const std::string& path, int lines) {
  constexpr std::streamoff kMost = 16 << 10;
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return "";
  const std::streamoff size = file.tellg();
  file.seekg(std::max<std::streamoff>(0, size - kMost));
  std::string text(static_cast<size_t>(std::min(size, kMost)), '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  std::vector<absl::string_view> all =
      absl::StrSplit(absl::StripSuffix(text, "\n"), '\n');
  if (all.size() > static_cast<size_t>(lines)) {
    all.erase(all.begin(), all.end() - lines);
  }
  return absl::StrJoin(all, "\n");
}

}  // namespace gossamer
