// gossamer-peer: one participant of a run.

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/allocator.h"
#include "runtime/peer/peer_process.h"
#include "runtime/peer/run_config.h"

namespace gossamer {
namespace {

constexpr char kExamples[] = R"(
Examples:
  gossamer-peer --topology 127.0.0.1:7700 --config run.textproto --data ./data
  gossamer-peer --topology 10.0.0.1:7700 --config run.textproto \
      --listen 10.0.0.2:7800 --insecure --data ./cifar-10-batches-bin
  gossamer-peer --topology 127.0.0.1:7700 --config run.textproto --id 3 \
      --run-dir runs/mine --resume

SIGTERM or Ctrl-C asks the whole fleet to stop at a round that all agree on;
every peer saves a checkpoint there. A second signal ends this peer at once.

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
    process->RequestStop();
    sigwait(&signals, &signal);
    _exit(128 + signal);
  }).detach();
}

int Fail(const absl::Status& status, int code) {
  std::fprintf(stderr, "gossamer-peer: %s\n",
               std::string(status.message()).c_str());
  return code;
}

int Main(int argc, char** argv) {
  PeerProcessOptions options;
  std::string config;
  std::vector<std::string> set;
  CLI::App app("One participant of a run: trains and gossips.");
  app.footer(kExamples);
  app.add_option("--topology", options.topology,
                 "host:port of gossamer-topology")
      ->required();
  app.add_option("--config", config,
                 "configuration file, the same at all peers")
      ->required();
  app.add_option("--set", set, "override a field: mixing.codec=innov-int8")
      ->allow_extra_args(false);
  app.add_option(
      "--id", options.id,
      "this peer's number, 1 to peers (default: the service's choice)");
  app.add_option("--listen", options.listen, "host:port for neighbours")
      ->capture_default_str();
  app.add_option("--advertise", options.advertise,
                 "host:port at which neighbours reach it, if that differs");
  app.add_option("--run-dir", options.run_dir,
                 "folder for metrics, samples and checkpoints (default: "
                 "runs/<name>)");
  app.add_option("--data", options.data, "folder of the data files");
  app.add_flag("--resume", options.resume,
               "offer this folder's checkpoints to resume from");
  app.add_flag("--insecure", options.insecure,
               "allow unencrypted connections beyond this machine");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
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

}  // namespace
}  // namespace gossamer

int main(int argc, char** argv) {
  gossamer::KeepFreedMemory();
  return gossamer::Main(argc, argv);
}
