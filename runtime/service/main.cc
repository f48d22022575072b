// gossamer-topology: registers peers, hands out views, agrees on the end.

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "algorithms/base/status_macros.h"
#include "runtime/base/descriptor_limit.h"
#include "runtime/base/plain_file.h"
#include "runtime/base/protobuf_errors.h"
#include "runtime/base/real_loop.h"
#include "runtime/service/options.h"
#include "runtime/service/store.h"
#include "runtime/service/topology_service.h"
#include "runtime/transport/grpc/steady_deadline.h"

namespace gossamer {
namespace {

// Exit codes.
constexpr int kFailed = 1;
constexpr int kUsage = 2;
constexpr int kPeersLost = 3;

// The tick notices leases of peers and of this instance, which are seconds.
constexpr absl::Duration kTick = absl::Milliseconds(200);
// The time for the last answers when the service ends.
constexpr absl::Duration kShutdown = absl::Seconds(1);
constexpr absl::Duration kInsecureReminder = absl::Minutes(1);

void Say(const std::string& line) {
  std::cerr << absl::FormatTime("%H:%M:%S ", absl::Now(), absl::LocalTimeZone())
            << line << std::endl;
}

// Returns the name of this process for other instances and for people.
std::string NameOf(const std::string& listen) {
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  return absl::StrCat(listen, ", process ", getpid(), " of ", host);
}

// Returns true if SIGINT or SIGTERM came within a tick.
bool WaitForSignal(const sigset_t& signals) {
  const timespec tick = absl::ToTimespec(kTick);
  return sigtimedwait(&signals, nullptr, &tick) > 0;
}

// Serves until a signal or the end of the run.  Returns the exit code.
absl::StatusOr<int> Serve(const ServiceOptions& options,
                          const sigset_t& signals, const SteadyWallClock& clock,
                          TopologyService& service) {
  absl::Time reminded = clock.Now();
  // A stored run that has already ended is not the one to wait for: its peers
  // come back to go on from their checkpoints.  An instance that takes over a
  // run under way counts it as begun.
  bool began = false;
  while (!WaitForSignal(signals)) {
    // An instance that stands by ticks, too: it tries to take over.
    GOSSAMER_ASSIGN_OR_RETURN(const TopologyService::Progress progress,
                              service.Tick());
    began = began || !progress.finished;
    if (options.exposure.insecure &&
        clock.Now() - reminded > kInsecureReminder) {
      reminded = clock.Now();
      Say("warning: --insecure: anybody who reaches this port can steer the "
          "fleet");
    }
    if (!options.exit_when_finished || !began) continue;
    if (progress.finished) {
      Say("every peer has finished");
      return 0;
    }
    const int lost = static_cast<int>(progress.lost.size());
    // A silent peer ends the wait only once all others have finished; until
    // then it may come back.
    if (progress.some_finished && lost == progress.unfinished) {
      Say(absl::StrCat("giving up on peer ",
                       absl::StrJoin(progress.lost, ", ",
                                     [](std::string* out, PeerId id) {
                                       absl::StrAppend(out, id.value);
                                     }),
                       ": silent for a lease, and all others have finished"));
      return kPeersLost;
    }
  }
  Say("ending; peers go on with their last view");
  return 0;
}

// Warns if the peers do not fit beside unauthenticated connections: those that
// do not fit are shut down and try again.
void WarnOfRoom(const ServiceOptions& options, size_t room) {
  const std::string shortage =
      DescribeShortage(room,
                       static_cast<size_t>(std::max(options.fleet.expected,
                                                    options.fleet.max_peers)),
                       "peers");
  if (!shortage.empty()) Say(shortage);
}

absl::StatusOr<int> Run(const ServiceOptions& options) {
  // Every connection takes a descriptor, and the limiter counts them by the
  // limit.
  RaiseDescriptorLimit();
  // Signals are blocked before any thread starts, so that all threads inherit
  // it.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  GOSSAMER_ASSIGN_OR_RETURN(
      const std::shared_ptr<CertificateFolder> certificates,
      OpenCertificates(options.exposure, options.listen));
  GOSSAMER_ASSIGN_OR_RETURN(
      std::unique_ptr<Store> store,
      OpenStore(options.store, options.fleet.run_id, NameOf(options.listen)));
  const SteadyWallClock clock;
  GOSSAMER_ASSIGN_OR_RETURN(
      const std::unique_ptr<TopologyService> service,
      TopologyService::Create(
          options.fleet, std::move(store), [&clock] { return clock.Now(); },
          Say, certificates));
  GOSSAMER_ASSIGN_OR_RETURN(
      const TopologyServer server,
      StartTopologyServer(options.listen, service.get(), certificates));
  const FleetOptions& fleet = options.fleet;
  Say(absl::StrCat("run \"", fleet.run_id, "\": waiting for ", fleet.expected,
                   " peers on ", options.listen, " (port ", server.port, "), ",
                   fleet.schedule.graph));
  if (options.exposure.insecure) {
    Say("warning: --insecure: traffic is neither encrypted nor authenticated");
  }
  WarnOfRoom(options, service->limiter()->authenticated_capacity());
  // The file comes once the port answers: scripts wait for it.
  if (!options.port_file.empty()) {
    const absl::Status written =
        WriteTextFile(options.port_file, absl::StrCat(server.port, "\n"));
    if (!written.ok()) {
      return absl::UnavailableError(
          absl::StrCat("--port-file ", std::string(written.message())));
    }
  }
  // The answers that are under way are given before the process ends, also
  // after an error.
  const absl::StatusOr<int> code = Serve(options, signals, clock, *service);
  if (server.gate != nullptr) server.gate->StopAccepting();
  server.server->Shutdown(SteadyDeadline(kShutdown));
  return code;
}

int Main(int argc, const char* const* argv) {
  const absl::StatusOr<CommandLine> line = ParseCommandLine(argc, argv);
  if (!line.ok()) {
    std::cerr << "gossamer-topology: " << line.status().message() << "\n";
    return kUsage;
  }
  if (!line->text.empty()) {
    std::cout << line->text;
    return 0;
  }
  const absl::StatusOr<int> code = Run(line->options);
  if (code.ok()) return *code;
  std::cerr << "gossamer-topology: " << code.status().message() << "\n";
  return code.status().code() == absl::StatusCode::kInvalidArgument ? kUsage
                                                                    : kFailed;
}

}  // namespace
}  // namespace gossamer

int main(int argc, char** argv) {
  // gRPC's own log lines say less than the errors here; a setting of the user
  // stays.
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  // protobuf would log a line for every request that does not parse.
  gossamer::SilenceProtobuf();
  return gossamer::Main(argc, argv);
}
