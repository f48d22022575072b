// A peer's options, as gossamer-peer and programs with a loop of their own take
// them, and what they stand for.

#ifndef GOSSAMER_RUNTIME_DAEMON_PEER_OPTIONS_H_
#define GOSSAMER_RUNTIME_DAEMON_PEER_OPTIONS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/command_line.h"
#include "runtime/daemon/peer_process.h"

namespace gossamer {

// The options as they are written; `process` has those that need no reading.
struct PeerFlags {
  PeerProcessOptions process;
  std::string config;
  std::vector<std::string> set;
  std::string certificates;
};

// `flags` outlives the command.
void AddPeerOptions(Command& program, PeerFlags& flags);

// Reads configuration and certificates.  kInvalidArgument and kNotFound say
// which option cannot be used, and why.
absl::StatusOr<PeerProcessOptions> ResolveOptions(PeerFlags flags);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_DAEMON_PEER_OPTIONS_H_
