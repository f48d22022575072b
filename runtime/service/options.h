// The command line of gossamer-topology.
//
// This header knows flags and the run's configuration; starts nothing.

#ifndef GOSSAMER_RUNTIME_SERVICE_OPTIONS_H_
#define GOSSAMER_RUNTIME_SERVICE_OPTIONS_H_

#include <string>

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
  // Set by --help and --version: the text to print before a successful end.
  std::string text;
};

// Returns the fleet's options from a configuration.
FleetOptions FleetOptionsOf(const RunConfig& config);

// kInvalidArgument names the flag or the line of the configuration that is
// wrong.
absl::StatusOr<CommandLine> ParseCommandLine(int argc, const char* const* argv);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_SERVICE_OPTIONS_H_
