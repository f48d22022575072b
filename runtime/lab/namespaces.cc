#include "runtime/lab/namespaces.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "algorithms/base/status_macros.h"
#include "runtime/base/steady_time.h"

namespace gossamer {
namespace {

// The limit is longer than the kernel needs to end all processes of a
// namespace.
constexpr absl::Duration kMaxWait = absl::Seconds(10);
constexpr char kOwnNetwork[] = "/proc/thread-self/ns/net";

absl::Status Failure(int error, const std::string& what) {
  if (error == EPERM || error == EACCES) {
    return absl::PermissionDeniedError(absl::StrCat(
        what,
        ": not permitted; the lab makes network namespaces, which needs root "
        "(CAP_SYS_ADMIN and CAP_NET_ADMIN).  Run it with sudo; as root in a "
        "container with --cap-add SYS_ADMIN --cap-add NET_ADMIN --device "
        "/dev/net/tun; or, where user namespaces are allowed, with: unshare "
        "--user --map-root-user --net --pid --fork --mount-proc gossamer lab "
        "..."));
  }
  return absl::ErrnoToStatus(error, what);
}

absl::StatusOr<FileDescriptor> Open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return Failure(errno, path);
  return FileDescriptor(fd);
}

// Ends the process if it cannot return: in a wrong namespace it would do harm
// without notice.
void ReturnTo(int ns, int type) {
  if (::setns(ns, type) == 0) return;
  std::perror("gossamer: cannot return to its own namespace");
  std::abort();
}

// Runs the first process of a process namespace, with which all others die.  It
// makes only calls that are safe after fork().
[[noreturn]] void BeInit(int lifeline) {
  ::setpgid(0, 0);  // Ctrl-C must not reach it
  // The kernel sends this when the thread that made the lab ends; the pipe
  // below closes when the process does.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::prctl(PR_SET_NAME, "gossamer-lab");
  ::signal(SIGCHLD, SIG_IGN);  // orphans leave no zombies
  // Descriptors that it inherited would stay open until it ends.
  ::dup2(lifeline, STDIN_FILENO);
  ::close_range(1, ~0u, 0);
  char byte;
  // The read returns when no process holds the other end any more.
  while (::read(STDIN_FILENO, &byte, 1) < 0 && errno == EINTR) {
  }
  // The kernel kills all processes of the namespace with its first one.
  ::_exit(0);
}

}  // namespace

absl::StatusOr<FileDescriptor> MakeNetwork() {
  GOSSAMER_ASSIGN_OR_RETURN(const FileDescriptor own, Open(kOwnNetwork));
  // A thread that may not return must not leave: entering its own network first
  // shows that it may.
  if (::setns(own.get(), CLONE_NEWNET) != 0 || ::unshare(CLONE_NEWNET) != 0) {
    return Failure(errno, "cannot make a network namespace");
  }
  absl::StatusOr<FileDescriptor> made = Open(kOwnNetwork);
  ReturnTo(own.get(), CLONE_NEWNET);
  return made;
}

absl::StatusOr<ScopedNetwork> ScopedNetwork::Enter(int network) {
  GOSSAMER_ASSIGN_OR_RETURN(FileDescriptor own, Open(kOwnNetwork));
  // Only the calling thread goes there.
  if (::setns(network, CLONE_NEWNET) != 0) {
    return Failure(errno, "cannot enter a network namespace");
  }
  return ScopedNetwork(std::move(own));
}

ScopedNetwork::~ScopedNetwork() {
  if (before_.get() >= 0) ReturnTo(before_.get(), CLONE_NEWNET);
}

absl::StatusOr<ProcessNamespace> ProcessNamespace::Make() {
  GOSSAMER_ASSIGN_OR_RETURN(const FileDescriptor own,
                            Open("/proc/self/ns/pid"));
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "pipe");
  const FileDescriptor read_end(ends[0]);
  FileDescriptor write_end(ends[1]);
  // unshare() concerns only the children, of which one is made before it is
  // undone.
  if (::setns(own.get(), CLONE_NEWPID) != 0 || ::unshare(CLONE_NEWPID) != 0) {
    return Failure(errno, "cannot make a process namespace");
  }
  const pid_t init = ::fork();
  if (init == 0) BeInit(read_end.get());
  const int error = errno;
  ReturnTo(own.get(), CLONE_NEWPID);
  if (init < 0) return absl::ErrnoToStatus(error, "fork");
  // The descriptor keeps the namespace open for children to come.
  absl::StatusOr<FileDescriptor> fd =
      Open(absl::StrCat("/proc/", init, "/ns/pid"));
  ProcessNamespace made(init, std::move(write_end),
                        fd.ok() ? *std::move(fd) : FileDescriptor());
  if (!fd.ok()) return fd.status();
  return made;
}

ProcessNamespace::ProcessNamespace(ProcessNamespace&& other) noexcept
    : init_(std::exchange(other.init_, -1)),
      lifeline_(std::move(other.lifeline_)),
      fd_(std::move(other.fd_)) {}

ProcessNamespace::~ProcessNamespace() {
  if (init_ < 0) return;
  ::kill(init_, SIGKILL);
  // The kernel lets the first process end only after all others have been
  // reaped.
  const absl::Time limit = SteadyNow() + kMaxWait;
  while (::waitpid(init_, nullptr, WNOHANG) == 0 && SteadyNow() < limit) {
    absl::SleepFor(absl::Milliseconds(1));
  }
}

}  // namespace gossamer
