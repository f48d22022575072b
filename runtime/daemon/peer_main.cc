#include "runtime/daemon/peer_main.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "algorithms/base/status_macros.h"
#include "gan_models/make_game.h"
#include "runtime/base/address.h"
#include "runtime/base/allocator.h"
#include "runtime/base/command_line.h"
#include "runtime/base/descriptor_limit.h"
#include "runtime/base/signal_echo.h"
#include "runtime/base/steady_time.h"
#include "runtime/config/compose_game.h"
#include "runtime/config/run_config.h"
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
cannot. A second signal ends this peer at once; the same one again within two
seconds is the first.

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

// Waits for signals on a thread of its own.
void HandleSignals(PeerProcess* process, sigset_t signals) {
  std::thread([process, signals] {
    int signal = 0;
    // A handler could do almost nothing safely; a thread that waits may post to
    // the loop.
    sigwait(&signals, &signal);
    SignalEcho echo;
    echo.Is(signal, SteadyNow());
    if (signal == SIGTERM) {
      process->RequestLeave();
    } else {
      process->RequestStop();
    }
    do {
      sigwait(&signals, &signal);
    } while (echo.Is(signal, SteadyNow()));
    // The second signal ends the process without its destructors, which may
    // wait for the very work that hangs.
    _exit(128 + signal);
  }).detach();
}

int Fail(const absl::Status& status, int code) {
  std::fprintf(stderr, "gossamer-peer: %s\n",
               std::string(status.message()).c_str());
  return code;
}

void AddOptions(Command& program, PeerProcessOptions& options,
                std::string& config, std::vector<std::string>& set,
                std::string& certificates) {
  program.AddOption("--topology", &options.topology,
                    "gossamer-topology; of several instances all",
                    {.required = true, .value_name = "HOST:PORT[,...]"});
  program.AddOption("--config", &config,
                    "configuration file, the same at all peers",
                    {.required = true});
  program.AddOption("--set", &set, "override a field: mixing.codec=innov-int8",
                    {.one_at_a_time = true});
  program.AddOption(
      "--id", &options.id,
      "this peer's number; one above the configuration's peers joins, with the "
      "data of peer (id - 1) modulo peers (default: the service's choice)");
  program.AddOption("--listen", &options.listen, "host:port for neighbours",
                    {.show_default = true});
  program.AddOption("--advertise", &options.advertise,
                    "host:port at which neighbours reach it, if that differs");
  program.AddOption("--run-dir", &options.run_dir,
                    "folder for metrics, samples and checkpoints (default: "
                    "runs/<name>)");
  program.AddOption("--data", &options.data, "folder of the data files");
  program.AddOption("--log-limit", &options.log_limit,
                    "MB that metrics.jsonl, and events.jsonl, may take: the "
                    "oldest lines go; and decisions.log, which ends there and "
                    "cannot be replayed. Those of earlier processes "
                    "(--resume) together take no more: the oldest are "
                    "removed, but not that of the run's beginning (0: all are "
                    "kept, 330 bytes a round)",
                    {.value_name = "MB"});
  program.AddOption("--leave-within", &options.leave_within,
                    "time that SIGTERM leaves, at least 10: some five rounds "
                    "and seven heartbeats are needed to leave in good order",
                    {.show_default = true,
                     .value_name = "SECONDS",
                     .range = {{kLeastToLeave, 3600}}});
  program.AddOption("--resume", &options.resume,
                    "offer this folder's checkpoints to resume from");
  program.AddOption("--replay", &options.replay,
                    "repeat the decisions that another run of this peer made "
                    "by the clock; all peers must replay theirs",
                    {.value_name = "FILE"});
  program.AddOption("--certs", &certificates,
                    "folder of this peer's certificates; they say its --id",
                    {.value_name = "DIR"});
  program.AddOption("--insecure", &options.insecure,
                    "allow connections beyond this machine without "
                    "certificates");
}

// Takes the certificates of `folder`, and this peer's number from them.
absl::Status OpenCertificatesOf(PeerProcessOptions& options,
                                const std::string& folder) {
  GOSSAMER_ASSIGN_OR_RETURN(
      options.certificates,
      OpenCertificates(
          {.certificates = folder, .insecure = options.insecure},
          IsLoopback(options.listen) ? options.topology : options.listen));
  // Without certificates there is no identity to agree with.
  if (options.certificates == nullptr) return absl::OkStatus();
  const Identity& identity = options.certificates->identity();
  if (identity.role != Role::kPeer || identity.run != options.config.name()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--certs: they are of ", ToUri(identity),
                     ", and this is a peer of "
                     "run \"",
                     options.config.name(), "\""));
  }
  // The certificate says whose it is; the flag may repeat it, and not differ.
  if (options.id == 0) options.id = identity.peer.value;
  if (options.id == identity.peer.value) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--id ", options.id, ", but --certs are of ", Describe(identity)));
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

int Run(PeerProcessOptions options, const std::string& config,
        const std::vector<std::string>& set, const std::string& certificates,
        char** argv) {
  absl::StatusOr<RunConfig> loaded = LoadRunConfig(config, set);
  if (!loaded.ok()) return Fail(loaded.status(), 2);
  options.config = *std::move(loaded);
  if (NeedsNetworks(options.config) && !HasNetworks()) {
    return Fail(BecomeNetworks(config, argv), 2);
  }
  if (!(options.log_limit >= 0 && options.log_limit < 1e9)) {
    return Fail(absl::InvalidArgumentError(absl::StrCat(
                    "--log-limit ", options.log_limit,
                    ": it must be 0 or a number of MB below a thousand "
                    "million")),
                2);
  }
  if (options.run_dir.empty()) {
    options.run_dir = "runs/" + options.config.name();
  }
  const absl::Status opened = OpenCertificatesOf(options, certificates);
  if (!opened.ok()) return Fail(opened, 2);
  // The threads of PeerProcess start below.
  const sigset_t signals = BlockSignals();
  PeerProcess process(std::move(options));
  HandleSignals(&process, signals);
  const absl::Status status = process.Run();
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
  // Both settings are the process's, and are made before the first thread.
  KeepFreedMemory();
  RaiseDescriptorLimit();
  PeerProcessOptions options;
  std::string config;
  std::vector<std::string> set;
  std::string certificates;
  Command program(
      {.name = "gossamer-peer",
       .about = "One participant of a run: trains and gossips.",
       .footer = kExamples,
       .run = [&] { return Run(options, config, set, certificates, argv); }});
  AddOptions(program, options, config, set, certificates);
  return program.Run(argc, argv);
}

}  // namespace gossamer
