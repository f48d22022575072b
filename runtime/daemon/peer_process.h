// A peer as a process: makes the parts of peer.h with real threads, sockets and
// files, runs them in their order and ends them in the reverse one.
//
// The process knows nothing of how its command line is spelled, and keeps
// nothing of what its parts keep.

#ifndef GOSSAMER_RUNTIME_DAEMON_PEER_PROCESS_H_
#define GOSSAMER_RUNTIME_DAEMON_PEER_PROCESS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "algorithms/game/game.h"
#include "algorithms/optim/local_step.h"
#include "proto/run.pb.h"
#include "runtime/base/real_loop.h"
#include "runtime/base/task.h"
#include "runtime/checkpoint/checkpoint_store.h"
#include "runtime/daemon/decisions_file.h"
#include "runtime/daemon/last_view.h"
#include "runtime/daemon/process_reports.h"
#include "runtime/daemon/process_transport.h"
#include "runtime/daemon/service_registration.h"
#include "runtime/daemon/trust_watch.h"
#include "runtime/daemon/voting_files.h"
#include "runtime/device/peer_device.h"
#include "runtime/identity/certificate_folder.h"
#include "runtime/membership/topology_client.h"
#include "runtime/peer/peer.h"
#include "runtime/peer/waiter.h"

namespace gossamer {

// Seconds: the least that the clouds leave a machine.
inline constexpr double kMinToLeave = 10;

struct PeerProcessOptions {
  RunConfig config;      // resolved and validated
  std::string topology;  // host:port[,host:port...] of the service
  uint64_t id = 0;       // 0: the service assigns one
  std::string listen = "127.0.0.1:0";
  std::string advertise;  // host:port for neighbours; empty: where it listens
  std::string run_dir;
  std::string data;
  bool resume = false;
  std::string replay;                 // file of decisions to repeat; or empty
  double leave_within = kMinToLeave;  // seconds, RequestLeave
  // MB of metrics.jsonl, and of events.jsonl, of which the oldest lines go; and
  // of decisions.log, which ends there.  0: none.
  double log_limit = 0;
  bool insecure = false;
  std::shared_ptr<CertificateFolder> certificates;  // null: none
  // Makes the game, of a program that has its own (game caller), and a hash of
  // the parameters with which it begins; empty: the configuration's game.
  std::function<std::unique_ptr<Game>(const DeviceQueue&)> game = nullptr;
  uint64_t initial_parameters_hash = 0;
};

class PeerProcess {
 public:
  explicit PeerProcess(PeerProcessOptions options);
  ~PeerProcess();

  // Trains on the calling thread; returns when the run has ended.  A process
  // that the service has refused may end with work under way: std::_Exit() is
  // what may follow then, and no destructor.
  absl::Status Run();
  bool cut_short() const { return cut_short_; }
  // The peer as its game sees it; called during a step.
  uint64_t id() const { return id_; }
  uint64_t round() const { return peer_->round(); }
  int members() const { return peer_->members(); }
  // Asks the fleet to stop at an agreed round.  Any thread.
  void RequestStop();
  // Leaves the fleet in good order if `leave_within` is enough, else as it is
  // then; the fleet goes on unless it cannot be without this peer, or all
  // leave.  Any thread.
  void RequestLeave();
  // Leaves as it is now.  Any thread.
  void LeaveNow();

 private:
  Task<absl::Status> Main();
  Task<absl::Status> Register();
  Task<absl::Status> Train();
  Task<absl::Status> Finish();
  void LeaveBy(absl::Time limit);
  absl::Status Prepare();
  absl::Status OpenDevice();
  // Makes game and local step of the id that the process has by now.
  absl::Status MakeGame();
  absl::Status Listen();
  void PrepareNccl();
  TopologyClientOptions ClientOptions() const;
  absl::StatusOr<std::shared_ptr<const ReceivedView>> FindLastView();
  void KeepView();
  absl::Status OpenFolder(const std::string& folder);
  absl::Status MakePeer();

  const PeerProcessOptions options_;
  const uint64_t incarnation_id_;
  uint64_t id_;
  RealLoop loop_;
  ProcessReports reports_;
  TrustWatch trust_;
  Waiter waiter_;
  ThreadCompute compute_;
  std::unique_ptr<PeerDevice> device_;
  std::unique_ptr<Game> game_;
  std::unique_ptr<LocalStep> step_;
  std::unique_ptr<CheckpointStore> checkpoints_;
  // They use what is above, and end before it.
  ThreadCompute disk_, scores_;
  VotingFiles voting_;
  DecisionsFile decisions_;
  std::unique_ptr<LastView> last_view_;  // null: its kind of run keeps none
  ServiceRegistration registration_;
  ProcessTransport transport_;
  std::unique_ptr<Peer> peer_;
  absl::Time leave_by_ = absl::InfiniteFuture();
  bool cut_short_ = false;
  Task<absl::Status> main_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_DAEMON_PEER_PROCESS_H_
