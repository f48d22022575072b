#include "runtime/service/options.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "algorithms/base/status_macros.h"
#include "runtime/base/address.h"
#include "runtime/base/command_line.h"
#include "runtime/config/composition_check.h"
#include "runtime/config/run_config.h"
#include "topology/graph.h"

namespace gossamer {
namespace {

constexpr char kAbout[] =
    "Registers the peers of a run, hands out who mixes with whom, and agrees "
    "on the end.\nNever on the data path: peers go on training while it is "
    "away, and it resumes\nfrom its state folder.";

constexpr char kExamples[] = R"(Examples:
  gossamer-topology --config cifar10.textproto --exit-when-finished
  gossamer-topology --config cifar10.textproto --set peers=16 --min-gap 0.3
  gossamer-topology --set name=trial --set peers=8 --set mixing.graph=torus
  gossamer-topology --listen 127.0.0.1:0 --port-file port.txt
  gossamer-topology --listen 10.0.0.1:7700 --certs certs/topology
  gossamer-topology --listen 10.0.0.2:7700 --certs certs/topology \
      --store etcd://10.0.1.1:2379,10.0.1.2:2379 --store-certs certs/etcd

With --store the state is in etcd, and several gossamer-topology share it: one
serves, the others stand by and take over once it has been silent for
--store-lease. Peers get the addresses of all: --topology HOST:PORT,HOST:PORT.)";

// The values of the command line.  An option that was left out takes the
// configuration's value, so it must be distinguishable from one that was given.
struct Flags {
  std::string config;
  std::vector<std::string> set;  // changes of the configuration
  double min_gap = 0;
  int max_peers = 0;
  double heartbeat = 1;
  double lease = 4;
  std::string store;
  int store_lease = 5;
  ServiceOptions service;
};

void AddFlags(Command& program, Flags& f) {
  ServiceOptions& s = f.service;
  // The default is of this machine alone: a service that other machines reach
  // has to be asked for, with certificates or --insecure.
  s.listen = "127.0.0.1:7700";
  program.AddOption("--config", &f.config,
                    "the run's configuration (text proto)");
  program.AddOption("--set", &f.set,
                    "KEY=VALUE over the file; gossamer config explain lists "
                    "the keys",
                    {.value_name = "KEY=VALUE", .one_at_a_time = true});
  program.AddOption("--max-peers", &f.max_peers,
                    "most members once the run is under way; 0: as many as "
                    "the graph allows; as many as found it: nobody joins",
                    {.show_default = true, .range = {{0, kMaxPeers}}});
  program.AddOption("--min-gap", &f.min_gap, "refuse a smaller spectral gap",
                    {.range = {{0, 1}}});
  program.AddOption("--listen", &s.listen, "host:port; port 0 takes a free one",
                    {.show_default = true});
  program.AddOption("--port-file", &s.port_file,
                    "write the port here when ready");
  program.AddOption("--state", &s.store.folder,
                    "folder of what survives a restart "
                    "[runs/<run>/topology]");
  program.AddOption("--store", &f.store,
                    "keep that in etcd instead, for several instances",
                    {.value_name = "etcd://HOST:PORT[,...]"});
  program.AddOption("--store-certs", &s.store.certificates,
                    "folder with ca.pem, cert.pem and key.pem for etcd; may be "
                    "replaced meanwhile",
                    {.value_name = "DIR"});
  program.AddOption("--store-lease", &f.store_lease,
                    "seconds of silence until another instance takes over",
                    {.show_default = true, .range = {{1, 60}}});
  program.AddOption("--heartbeat", &f.heartbeat, "seconds between heartbeats",
                    {.show_default = true, .range = {{0.01, 60}}});
  program.AddOption("--lease", &f.lease,
                    "seconds of silence until a peer is lost; removed from the "
                    "view if neighbours suspect it, too",
                    {.show_default = true, .range = {{0.1, 86400}}});
  program.AddOption("--certs", &s.exposure.certificates,
                    "folder of certificates: all who call must show theirs",
                    {.value_name = "DIR"});
  program.AddOption("--insecure", &s.exposure.insecure,
                    "serve beyond this machine without certificates");
  program.AddOption("--exit-when-finished", &s.exit_when_finished,
                    "end when every peer has trained to the end");
}

// The keys that FleetOptionsOf and MakeFleetOptions read, but the run's name.
std::vector<std::string> KeysOfFleetOptions() {
  return {"algorithm",     "mixing.clip_radius",
          "mixing.degree", "mixing.edge_probability",
          "mixing.edges",  "mixing.gamma",
          "mixing.graph",  "mixing.overlap_steps",
          "mixing.sites",  "mixing.variance_budget",
          "peers",         "seed"};
}

absl::StatusOr<FleetOptions> MakeFleetOptions(const Flags& f) {
  GOSSAMER_ASSIGN_OR_RETURN(const RunConfig config,
                            f.config.empty()
                                ? ParseRunConfig("", "no --config", f.set)
                                : LoadRunConfig(f.config, f.set));
  FleetOptions fleet = FleetOptionsOf(config);
  fleet.min_gap = f.min_gap;
  fleet.max_peers = f.max_peers;
  // The all-reduce of a centralized method needs every peer, so nobody joins a
  // run under way.
  fleet.elastic = !IsCentralized(config);
  fleet.heartbeat = absl::Seconds(f.heartbeat);
  fleet.lease = absl::Seconds(f.lease);
  // Peers must have this very configuration; without a file they must have the
  // same one among themselves, and of it what the service decides by.
  fleet.configuration = ConfigurationLines(config);
  if (f.config.empty()) {
    fleet.decides = KeysOfFleetOptions();
  } else {
    fleet.configuration_hash = ConfigurationHash(config);
  }
  return fleet;
}

// Completes the place of the state, and refuses options that exclude each
// other.
absl::Status CompleteStore(const Flags& flags, ServiceOptions& service) {
  StoreOptions& store = service.store;
  store.lease = absl::Seconds(flags.store_lease);
  if (flags.store.empty()) {
    if (!store.certificates.empty()) {
      return absl::InvalidArgumentError(
          "--store-certs without --store etcd://HOST:PORT");
    }
    if (store.folder.empty()) {
      store.folder = absl::StrCat("runs/", service.fleet.run_id, "/topology");
    }
    return absl::OkStatus();
  }
  absl::string_view endpoints = flags.store;
  if (!absl::ConsumePrefix(&endpoints, "etcd://") || !AreAddresses(endpoints)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--store ", flags.store,
                     " is not of the form etcd://HOST:PORT[,HOST:PORT...]"));
  }
  if (!store.folder.empty()) {
    return absl::InvalidArgumentError("--state and --store exclude each other");
  }
  store.etcd = std::string(endpoints);
  if (store.certificates.empty() && !IsLoopback(store.etcd) &&
      !service.exposure.insecure) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--store ", flags.store,
        " is not of this machine alone: give --store-certs DIR, or --insecure "
        "where everybody who reaches it may read and steer the run"));
  }
  return absl::OkStatus();
}

}  // namespace

FleetOptions FleetOptionsOf(const RunConfig& config) {
  FleetOptions fleet;
  fleet.run_id = config.name();
  fleet.expected = static_cast<int>(config.peers());
  fleet.seed = config.seed();
  fleet.schedule = ScheduleSpecOf(config.mixing());
  if (config.mixing().clip_radius() > 0) {
    // The service refuses a graph that each of its peers would refuse.
    fleet.min_degree = kMinClippedDegree;
  }
  // Views carry both to the peers, so the service may choose another overlap
  // for all at one round.
  fleet.gamma = config.mixing().gamma();
  fleet.overlap_steps = static_cast<int>(config.mixing().overlap_steps());
  return fleet;
}

absl::StatusOr<CommandLine> ParseCommandLine(int argc,
                                             const char* const* argv) {
  Command program({.name = "gossamer-topology",
                   .about = kAbout,
                   .footer = kExamples,
                   .version = "gossamer-topology " GOSSAMER_VERSION});
  Flags flags;
  AddFlags(program, flags);
  GOSSAMER_ASSIGN_OR_RETURN(std::string text, program.Parse(argc, argv));
  // --help and --version end the program whatever else is wrong.
  if (!text.empty()) {
    return CommandLine{.options = {}, .text = std::move(text)};
  }
  CommandLine line{.options = flags.service, .text = {}};
  GOSSAMER_ASSIGN_OR_RETURN(line.options.fleet, MakeFleetOptions(flags));
  if (!AreAddresses(line.options.listen)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--listen ", line.options.listen, " is not of the form HOST:PORT"));
  }
  GOSSAMER_RETURN_IF_ERROR(CompleteStore(flags, line.options));
  return line;
}

}  // namespace gossamer
