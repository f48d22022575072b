// A whole fleet on this machine: a topology service and every peer, from start
// to end, with its progress shown.
//
// This header knows processes and folders; nothing of what is trained.

#ifndef GOSSAMER_RUNTIME_CLI_LOCAL_FLEET_H_
#define GOSSAMER_RUNTIME_CLI_LOCAL_FLEET_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/run.pb.h"
#include "runtime/cli/fleet_client.h"
#include "runtime/cli/fleet_process.h"
#include "runtime/cli/run_folder.h"
#include "runtime/telemetry/jsonl_sink.h"
#include "runtime/telemetry/progress.h"

namespace gossamer {

// The place and the address of a process of the fleet.
struct FleetHost {
  std::string address = "127.0.0.1";
  ProcessPlace place = {};
};

struct FleetSpec {
  RunConfig config;  // resolved
  std::string run_folder;
  std::string data;  // folder; may be empty for games without data
  bool resume = false;
  std::string replay = {};  // folder of the run to repeat; empty: none
  std::string conditions;   // text of conditions.json
  std::string title;
  // One per rank; the topology service is on the first.  Empty: all processes
  // are on loopback.
  std::vector<FleetHost> hosts = {};
};

class LocalFleet {
 public:
  // `signals` was made before any thread; both outlive this.
  LocalFleet(FleetSpec spec, SignalWaiter& signals, ProgressDisplay& display);

  // Starts the fleet, waits for it, and cleans up.  Returns OK if every peer
  // ended well: after the last round, or at the round that the peers agreed on
  // after a first signal.  Returns kAborted after a second signal.  Other
  // errors name the process that failed, with the end of its log and what to
  // do.
  absl::Status Run();

 private:
  const FleetHost& HostOf(uint32_t rank) const;
  // Returns `argv` with the options that the place of the process requires.
  ProcessSpec ProcessOn(const FleetHost& host, const std::string& name,
                        const std::string& log,
                        std::vector<std::string> argv) const;
  absl::Status StartTopology();
  absl::Status StartPeers();
  // Returns OK, and sets `done` once every peer has ended well.
  absl::Status HandleExits(bool& done);
  absl::Status HandleSignal();
  void Poll();
  // Ends the service; returns a message if it had to be killed.
  std::string EndTopology();
  // Shows the final state, since the last heartbeats may be older.
  void ShowEnd();
  std::optional<absl::Status> RefusalOf(const ProcessExit& exit);
  absl::Status DescribeFailure(const ProcessExit& exit);

  const FleetSpec spec_;
  const RunFolder folder_;
  SignalWaiter& signals_;
  ProgressDisplay& display_;
  ProcessGroup topology_;
  ProcessGroup peers_;
  std::string address_;
  std::unique_ptr<FleetClient> client_;
  std::unique_ptr<LineFile> consensus_;
  uint64_t consensus_round_ = 0;
  FleetProgress progress_;
  int stops_ = 0;                                // signals so far
  absl::Time stopped_ = absl::InfiniteFuture();  // the time of the first
  bool stop_sent_ = false;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_CLI_LOCAL_FLEET_H_
