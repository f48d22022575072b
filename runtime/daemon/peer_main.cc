#include "runtime/daemon/peer_main.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "algorithms/base/mutex.h"
#include "gan_models/make_game.h"
#include "runtime/base/allocator.h"
#include "runtime/base/command_line.h"
#include "runtime/base/descriptor_limit.h"
#include "runtime/base/signal_deduplicator.h"
#include "runtime/base/steady_time.h"
#include "runtime/config/compose_game.h"
#include "runtime/daemon/peer_options.h"
#include "runtime/daemon/peer_process.h"

namespace gossamer {
namespace {

constexpr char kExamples[] = R"(Examples:
  gossamer-peer --topology 127.0.0.1:7700 --config run.textproto --data ./data
  gossamer-peer --topology 10.0.0.1:7700 --config run.textproto \
      --listen 10.0.0.2:7800 --certs certs/peer-2 --data ./cifar-10-batches-bin
  gossamer-peer --topology 127.0.0.1:7700 --config run.textproto --id 3 \
      --run-dir runs/mine --resume
  gossamer-peer --topology 127.0.0.1:7700 --config run.textproto --id 3 \
      --run-dir runs/again --replay runs/mine/peer-3/decisions.log

Ctrl-C (SIGINT) asks the whole fleet to stop at a round that all agree on; every
peer saves a checkpoint there. SIGTERM makes this peer leave within ten seconds
(--leave-within): the others go on without it, unless they are sent one too or
cannot. A second SIGTERM ends that wait: this peer saves what it has and goes. Any
other second signal, or a third, ends the process at once. The same signal again
within two seconds is no second one.

Exit status: 0 trained to the end or stopped in good order; 1 failed; 2 the
command line or the configuration cannot be used.)";

// Blocks the signals before any thread starts, so that all threads inherit it.
sigset_t BlockSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

// The process that signals are for, until it has run: the thread that waits for
// them outlives it.
struct Running {
  Mutex mu;
  PeerProcess* process ABSL_GUARDED_BY(mu) = nullptr;

  void Ask(void (PeerProcess::*request)()) {
    MutexLock lock(&mu);
    if (process != nullptr) (process->*request)();
  }
  void Set(PeerProcess* now) {
    MutexLock lock(&mu);
    process = now;
  }
};

// Waits for signals on a thread of its own.
void HandleSignals(std::shared_ptr<Running> running, sigset_t signals) {
  std::thread([running = std::move(running), signals] {
    SignalDeduplicator deduplicator;
    // A handler could do almost nothing safely; a thread that waits may post to
    // the loop.
    const auto next = [&] {
      int signal = 0;
      do {
        sigwait(&signals, &signal);
      } while (deduplicator.IsDuplicate(signal, SteadyNow()));
      return signal;
    };
    int signal = next();
    if (signal == SIGTERM) {
      running->Ask(&PeerProcess::RequestLeave);
      signal = next();
      if (signal == SIGTERM) {
        running->Ask(&PeerProcess::LeaveNow);
        signal = next();
      }
    } else {
      running->Ask(&PeerProcess::RequestStop);
      signal = next();
    }
    // The process ends without its destructors, which may wait for the very
    // work that hangs.
    _exit(128 + signal);
  }).detach();
}

int Fail(const absl::Status& status, int code) {
  std::fprintf(stderr, "gossamer-peer: %s\n",
               std::string(status.message()).c_str());
  return code;
}

// Returns only if that is not possible, with the reason.
absl::Status BecomeNetworks(const std::string& config, char** argv) {
  std::error_code error;
  const std::filesystem::path self =
      std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) {
    return absl::UnavailableError(
        absl::StrCat("/proc/self/exe: ", error.message()));
  }
  // The other program reads the configuration anew.
  if (!std::filesystem::is_regular_file(config, error)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--config ", config, ": a run of networks needs it as a file"));
  }
  const std::string program = self.parent_path() / "gossamer-peer-networks";
  ::execv(program.c_str(), argv);
  return absl::UnavailableError(absl::StrCat(
      program, ": ", std::strerror(errno),
      "; a run of networks needs it beside this program (a build without "
      "libtorch has none: configure with -DGOSSAMER_TORCH=ON)"));
}

int Run(const PeerFlags& flags, char** argv) {
  absl::StatusOr<PeerProcessOptions> options = ResolveOptions(flags);
  if (!options.ok()) return Fail(options.status(), 2);
  if (NeedsNetworks(options->config) && !HasNetworks()) {
    return Fail(BecomeNetworks(flags.config, argv), 2);
  }
  // The threads of PeerProcess start below.
  const sigset_t signals = BlockSignals();
  PeerProcess process(*std::move(options));
  const auto running = std::make_shared<Running>();
  running->Set(&process);
  HandleSignals(running, signals);
  const absl::Status status = process.Run();
  running->Set(nullptr);
  if (status.ok()) return 0;
  const int code =
      Fail(status, status.code() == absl::StatusCode::kInvalidArgument ? 2 : 1);
  if (process.cut_short()) std::_Exit(code);
  return code;
}

}  // namespace

int PeerMain(int argc, char** argv) {
  // gRPC's own lines say less than the log; a setting of the user stays.
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  // Without it the bits of libtorch's matrix products depend, on an AMD EPYC,
  // on where their operands lie in memory, and a replay's would be others.
  setenv("MKL_CBWR", "AUTO", /*overwrite=*/0);
  // Both settings are the process's, and are made before the first thread.
  KeepFreedMemory();
  RaiseDescriptorLimit();
  PeerFlags flags;
  Command program({.name = "gossamer-peer",
                   .about = "One participant of a run: trains and gossips.",
                   .footer = kExamples,
                   .run = [&] { return Run(flags, argv); }});
  AddPeerOptions(program, flags);
  return program.Run(argc, argv);
}

}  // namespace gossamer
