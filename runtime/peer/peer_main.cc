// gossamer-peer: one participant of a run.

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/allocator.h"
#include "runtime/base/command_line.h"
#include "runtime/peer/peer_process.h"
#include "runtime/peer/run_config.h"

namespace gossamer {
namespace {

constexpr char kExamples[] = R"(Examples:
  gossamer-peer --topology 127.0.0.1:7700 --config run.textproto --data ./data
  gossamer-peer --topology 10.0.0.1:7700 --config run.textproto \
      --listen 10.0.0.2:7800 --insecure --data ./cifar-10-batches-bin
  gossamer-peer --topology 127.0.0.1:7700 --config run.textproto --id 3 \
      --run-dir runs/mine --resume
  gossamer-peer --topology 127.0.0.1:7700 --config run.textproto --id 3 \
      --run-dir runs/again --replay runs/mine/peer-2/decisions.log

Ctrl-C (SIGINT) asks the whole fleet to stop at a round that all agree on; every
peer saves a checkpoint there. SIGTERM makes this peer leave within ten seconds:
the others go on without it, unless they are sent one too or cannot. A second
signal ends this peer at once.

Exit status: 0 trained to the end or stopped in good order; 1 failed; 2 the
command line or the configuration cannot be used.)";

bool IsLoopback(const std::string& address) {
  return address.rfind("127.", 0) == 0 || address.rfind("localhost:", 0) == 0 ||
         address.rfind("[::1]", 0) == 0;
}

// Before any thread starts, so that all inherit it.
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
    sigwait(&signals, &signal);
    if (signal == SIGTERM) {
      process->RequestLeave();
    } else {
      process->RequestStop();
    }
    sigwait(&signals, &signal);
    _exit(128 + signal);
  }).detach();
}

int Fail(const absl::Status& status, int code) {
  std::fprintf(stderr, "gossamer-peer: %s\n",
               std::string(status.message()).c_str());
  return code;
}

void AddOptions(Command& program, PeerProcessOptions& options,
                std::string& config, std::vector<std::string>& set) {
  program.AddOption("--topology", &options.topology,
                    "host:port of gossamer-topology", {.required = true});
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
  program.AddOption("--resume", &options.resume,
                    "offer this folder's checkpoints to resume from");
  program.AddOption("--replay", &options.replay,
                    "repeat the decisions that another run of this peer made "
                    "by the clock; all peers must replay theirs",
                    {.value_name = "FILE"});
  program.AddOption("--insecure", &options.insecure,
                    "allow unencrypted connections beyond this machine");
}

int Run(PeerProcessOptions options, const std::string& config,
        const std::vector<std::string>& set) {
  absl::StatusOr<RunConfig> loaded = LoadRunConfig(config, set);
  if (!loaded.ok()) return Fail(loaded.status(), 2);
  options.config = *std::move(loaded);
  if (options.run_dir.empty()) {
    options.run_dir = "runs/" + options.config.name();
  }
  const bool remote =
      !IsLoopback(options.listen) || !IsLoopback(options.topology);
  if (remote && !options.insecure) {
    return Fail(absl::InvalidArgumentError(
                    "connections beyond this machine are not encrypted: use a "
                    "private network or an SSH tunnel and say --insecure"),
                2);
  }
  if (remote) {
    std::fprintf(
        stderr,
        "warning: --insecure: anybody who reaches these ports can read "
        "and change the model; use a private network or a tunnel\n");
  }
  const sigset_t signals = BlockSignals();
  PeerProcess process(std::move(options));
  HandleSignals(&process, signals);
  const absl::Status status = process.Run();
  if (status.ok()) return 0;
  return Fail(status,
              status.code() == absl::StatusCode::kInvalidArgument ? 2 : 1);
}

int Main(int argc, char** argv) {
  PeerProcessOptions options;
  std::string config;
  std::vector<std::string> set;
  Command program({.name = "gossamer-peer",
                   .about = "One participant of a run: trains and gossips.",
                   .footer = kExamples,
                   .run = [&] { return Run(options, config, set); }});
  AddOptions(program, options, config, set);
  return program.Run(argc, argv);
}

}  // namespace
}  // namespace gossamer

int main(int argc, char** argv) {
  gossamer::KeepFreedMemory();
  return gossamer::Main(argc, argv);
}
