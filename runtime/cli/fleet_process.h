// The processes of a local fleet: started, watched, ended together.
//
// No child outlives its parent: the kernel kills it when the thread that
// started it dies.  This header knows nothing of what the processes do.

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
#include "runtime/base/signal_deduplicator.h"

namespace gossamer {

// The namespaces that a process is started in, as descriptors; -1: the
// caller's.
struct ProcessPlace {
  int network = -1;
  int processes = -1;
};

struct ProcessSpec {
  std::string name;               // "peer 3", for people
  std::vector<std::string> argv;  // argv[0]: path of the program
  // File that gets stdout and stderr, appended; empty: the caller's.
  std::string log;
  ProcessPlace place = {};
  std::vector<std::string> env = {};  // "NAME=value", beside the caller's
  bool silent = false;                // without a log: stdout is dropped
};

struct ProcessExit {
  std::string name;
  std::string log;
  int code = 0;    // of exit(), or
  int signal = 0;  // the signal that killed it
  bool ok() const { return code == 0 && signal == 0; }
  // Returns "ended with code 1" or "was killed by signal 9 (Killed)".
  std::string Describe() const;
};

// Takes SIGINT and SIGTERM of this process one by one, instead of in a handler.
// A process has one at a time, made before any thread.
class SignalWaiter {
 public:
  SignalWaiter();
  ~SignalWaiter();
  SignalWaiter(const SignalWaiter&) = delete;
  SignalWaiter& operator=(const SignalWaiter&) = delete;

  // Returns the next request to end, or nothing after `timeout`, a child's end
  // or a duplicate of the last request.
  std::optional<int> Wait(absl::Duration timeout);

 private:
  sigset_t signals_;
  sigset_t before_;
  SignalDeduplicator deduplicator_;
};

// Used only by the thread that made it.
class ProcessGroup {
 public:
  ProcessGroup() = default;
  // Kills the processes that still run, and waits for them.
  ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  // Returns kNotFound without such a program; kInternal with the system's
  // message.
  absl::Status Start(const ProcessSpec& spec);
  // Returns the processes that have ended since the last call.
  std::vector<ProcessExit> Reap();
  // Sends `signal` to all, and to their children that are still in their
  // process groups.
  void Signal(int signal);
  // Waits until all have ended, until a signal, and at most `timeout`; returns
  // true if they have ended.  Their exits are dropped.
  bool WaitAll(SignalWaiter& signals, absl::Duration timeout);
  // Kills the processes that still run, and waits for them.  Returns a line
  // that names them, `since` after all were asked to end; "" if none was left.
  std::string Kill(absl::Duration since);
  // Sends SIGTERM, then kills the processes that have not ended within `grace`,
  // or before a signal.
  std::string End(SignalWaiter& signals, absl::Duration grace);
  size_t running() const { return running_.size(); }

 private:
  struct Running {
    std::string name;
    std::string log;
  };
  std::map<pid_t, Running> running_;
};

// Waits for one program that uses this terminal.  Returns its exit code, or 128
// + signal.
absl::StatusOr<int> RunToEnd(const std::vector<std::string>& argv);

// Runs one program to its end, passing SIGINT and SIGTERM on to it.  Returns
// kAborted after one of these, otherwise its exit.
absl::StatusOr<ProcessExit> RunPassingSignals(const ProcessSpec& spec,
                                              SignalWaiter& signals);

// Returns the path of a program in the folder of this one.
std::string SiblingProgram(const std::string& name);

// Returns the last `lines` lines of a text file, at most 16 KiB.
std::string Tail(const std::string& path, int lines);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_CLI_FLEET_PROCESS_H_
