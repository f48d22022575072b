// The processes of a local fleet: started, watched, ended together.
//
// No child outlives its parent: the kernel kills it when the thread that
// started it dies.  Knows nothing of what the processes do.

#ifndef GOSSAMER_RUNTIME_CLI_FLEET_PROCESS_H_
#define GOSSAMER_RUNTIME_CLI_FLEET_PROCESS_H_

#include <signal.h>
#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/base/signal_echo.h"

namespace gossamer {

// Namespaces that a process is started in, as descriptors; -1: ours.
struct ProcessPlace {
  int network = -1;
  int processes = -1;
};

struct ProcessSpec {
  std::string name;               // "peer 3", for people
  std::vector<std::string> argv;  // argv[0]: path of the program
  std::string log;  // file that gets stdout and stderr, appended; empty: ours
  ProcessPlace place = {};
  std::vector<std::string> env = {};  // "NAME=value", besides ours
  bool silent = false;                // without a log: stdout goes nowhere
};

struct ProcessExit {
  std::string name;
  std::string log;
  int code = 0;    // of exit(), or
  int signal = 0;  // what killed it
  bool ok() const { return code == 0 && signal == 0; }
  // "ended with code 1", "was killed by signal 9 (Killed)".
  std::string Describe() const;
};

// SIGINT, SIGTERM and SIGCHLD of this process, taken one by one instead of in
// a handler.  One at a time, made before any thread.
class SignalWaiter {
 public:
  SignalWaiter();
  ~SignalWaiter();
  SignalWaiter(const SignalWaiter&) = delete;
  SignalWaiter& operator=(const SignalWaiter&) = delete;

  // The next signal, or nothing within `timeout` or where it was an echo of the
  // first that asked this process to end.
  std::optional<int> Wait(absl::Duration timeout);

 private:
  sigset_t signals_;
  sigset_t before_;
  SignalEcho echo_;
};

// Used by the thread that made it.
class ProcessGroup {
 public:
  ProcessGroup() = default;
  // Kills what still runs, and waits for it.
  ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  // kNotFound: no such program.  kInternal: what the system said.
  absl::Status Start(const ProcessSpec& spec);
  // Those that ended since the last call.
  std::vector<ProcessExit> Reap();
  // To all, and to what they started that is still in their process groups.
  void Signal(int signal);
  // Waits until all have ended, at most `timeout`; true if they have.  Their
  // exits are dropped.
  bool WaitAll(SignalWaiter& signals, absl::Duration timeout);
  // Kills who still runs, and waits for it.  Who that was, for people, where
  // all were asked to end so long ago; "" if nobody had to be.
  std::string Kill(absl::Duration since);
  // SIGTERM; then Kill() for who has not ended within `grace`.
  std::string End(SignalWaiter& signals, absl::Duration grace);
  size_t running() const { return running_.size(); }

 private:
  struct Running {
    std::string name;
    std::string log;
  };
  std::map<pid_t, Running> running_;
};

// Waits for one program with our terminal; its exit code, or 128 + signal.
absl::StatusOr<int> RunToEnd(const std::vector<std::string>& argv);

// Runs one program to its end, passing SIGINT and SIGTERM on to it.  kAborted
// after one of these; else how it ended.
absl::StatusOr<ProcessExit> RunPassingSignals(const ProcessSpec& spec,
                                              SignalWaiter& signals);

// A program that lies next to this one.
std::string SiblingProgram(const std::string& name);

// The last `lines` lines of a text file, at most 16 KiB.
std::string Tail(const std::string& path, int lines);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_CLI_FLEET_PROCESS_H_
