// A peer as a process: the parts of peer.h with real threads, sockets and
// files, from the command line's options to an exit status.
//
// Knows nothing of how its command line is spelled.

#ifndef GOSSAMER_RUNTIME_DAEMON_PEER_PROCESS_H_
#define GOSSAMER_RUNTIME_DAEMON_PEER_PROCESS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "algorithms/base/throttle.h"
#include "proto/run.pb.h"
#include "runtime/base/real_loop.h"
#include "runtime/base/task.h"
#include "runtime/checkpoint/privacy_ledger.h"
#include "runtime/device/peer_device.h"
#include "runtime/identity/certificate_folder.h"
#include "runtime/identity/file_lock.h"
#include "runtime/membership/topology_client.h"
#include "runtime/neighborhood/connection_problems.h"
#include "runtime/peer/peer.h"
#include "runtime/peer/waiter.h"
#include "runtime/replay/decision_log.h"
#include "runtime/replay/decisions.h"
#include "runtime/telemetry/counting_sink.h"
#include "runtime/telemetry/jsonl_sink.h"
#include "runtime/telemetry/telling_sink.h"
#include "runtime/transport/nccl/nccl_sum.h"
#include "runtime/transport/nccl/nccl_transport.h"
#include "runtime/transport/transport.h"
#include "topology/fleet/event_tally.h"

namespace gossamer {

// Seconds: the least that the clouds leave a machine.
inline constexpr double kLeastToLeave = 10;

struct PeerProcessOptions {
  RunConfig config;      // resolved and validated
  std::string topology;  // host:port[,host:port...] of the service
  uint64_t id = 0;       // 0: the service assigns one
  std::string listen = "127.0.0.1:0";
  std::string advertise;  // host:port for neighbours; empty: where it listens
  std::string run_dir;
  std::string data;
  bool resume = false;
  std::string replay;                   // file of decisions to repeat; or empty
  double leave_within = kLeastToLeave;  // seconds, RequestLeave
  // MB of metrics.jsonl, and of events.jsonl, of which the oldest lines go; and
  // of decisions.log, which ends there.  0: none.
  double log_limit = 0;
  bool insecure = false;
  std::shared_ptr<CertificateFolder> certificates;  // null: none
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
  // Asks the fleet to stop at an agreed round.  Any thread.
  void RequestStop();
  // Leaves the fleet in good order if `leave_within` is enough, else as it is
  // then; the fleet goes on unless it cannot be without this peer, or all
  // leave.  Any thread.
  void RequestLeave();

 private:
  Task<absl::Status> Main();
  Task<absl::Status> Train();
  absl::Status OpenDevice();
  absl::Status MakeGameFor(int shard);
  absl::Status Prepare();
  absl::Status Listen();
  Task<absl::Status> Register();
  absl::StatusOr<std::vector<uint64_t>> WholeCheckpoints() const;
  // Noise, and the ledger in `folder`, of a run that learns from votes
  // (peer_voting.cc).
  absl::StatusOr<VotingParts> OpenVoting(const std::string& folder);
  TopologyClientOptions Registration() const;
  void ListenToService();
  void PrepareNccl();
  absl::Status MakePeer();
  // Returns whether this process was asked to stop or leave: before the service
  // knows of this peer, nobody else has to learn it.
  bool ToEnd() const {
    return stop_requested_ || leave_by_ != absl::InfiniteFuture();
  }
  // The decisions to repeat, or the file of those made (peer_decisions.cc).
  absl::Status OpenDecisions(const std::string& folder);
  // Log and events (peer_reports.cc).
  //
  // Warns if fewer connections have room than there may be.
  void WarnOfRoom(size_t room) const;
  // Writes into events.jsonl, once there is one.
  void Report(EventKind kind, const std::string& detail, uint64_t times = 1);
  void ReportAndLog(EventKind kind, const std::string& detail);
  // Reports a refusal by this peer in events.jsonl.
  void NoteRefused(EventKind kind, PeerId from, const absl::Status& why);
  // Reports files that cannot be read again, and each minute that nothing is
  // encrypted.
  void CheckTrust();
  // A line for the log of this process.
  void Log(const std::string& line) const;

  std::string trust_problem_;
  absl::Time reminds_at_ = absl::InfinitePast();
  const PeerProcessOptions options_;
  const uint64_t boot_id_;
  RealLoop loop_;
  Waiter waiter_;
  ThreadCompute compute_;
  std::unique_ptr<PeerDevice> device_;
  std::unique_ptr<Game> game_;
  std::unique_ptr<LocalStep> step_;
  EventTally events_;  // of this process
  std::unique_ptr<JsonlSink> sink_;
  std::unique_ptr<CountingSink> counting_;  // into sink_
  std::unique_ptr<TellingSink> telling_;    // into counting_
  std::unique_ptr<CheckpointStore> checkpoints_;
  // They use what is above, and end before it.
  ThreadCompute disk_, scores_;
  std::optional<FileLock> ledger_lock_;
  std::unique_ptr<PrivacyLedger> ledger_;  // of a student
  std::unique_ptr<Transport> transport_;
  NcclTransport* nccl_ = nullptr;  // transport_, if it uses NCCL
  // Of a centralized run whose peers NCCL may join; or null.
  std::unique_ptr<NcclSum> fabric_;
  int port_ = 0;  // of the transport; 0: none
  std::unique_ptr<Membership> membership_;
  TopologyClient* client_ = nullptr;  // membership_ by its own type
  std::unique_ptr<DecisionLog> decision_log_;
  Decisions decisions_;
  std::unique_ptr<Peer> peer_;
  uint64_t id_ = 0;
  bool stop_requested_ = false;
  absl::Time leave_by_ = absl::InfiniteFuture();
  absl::Status refused_;
  absl::Time refused_until_ = absl::InfiniteFuture();  // it ends by then
  bool cut_short_ = false;
  struct Refusals {
    uint64_t seen = 0;
    Throttle told;
  };
  std::map<std::pair<std::string_view, PeerId>, Refusals> refusals_;
  ConnectionProblems problems_;
  Task<absl::Status> main_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_DAEMON_PEER_PROCESS_H_
