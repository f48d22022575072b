// The command line of gossamer-topology.
//
// Knows flags and the run's configuration; starts nothing.

#ifndef GOSSAMER_RUNTIME_SERVICE_OPTIONS_H_
#define GOSSAMER_RUNTIME_SERVICE_OPTIONS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/run.pb.h"
#include "runtime/identity/certificate_folder.h"
#include "runtime/service/store.h"
#include "topology/fleet/fleet.h"

namespace gossamer {

struct ServiceOptions {
  FleetOptions fleet;
  std::string listen;     // host:port
  std::string port_file;  // empty: none
  StoreOptions store;
  Exposure exposure;
  bool exit_when_finished = false;
};

struct CommandLine {
  ServiceOptions options;
  // Set by --help and --version: print this and end well.
  std::string text;
};

// What a configuration says of its fleet.
FleetOptions FleetOptionsOf(const RunConfig& config);

// kInvalidArgument says which flag or line of the configuration is wrong.
absl::StatusOr<CommandLine> ParseCommandLine(int argc, const char* const* argv);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_SERVICE_OPTIONS_H_
