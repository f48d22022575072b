// One process of a peer in virtual time: the parts of peer_process.h on a
// simulated network, disk and service, with checks of everything it does.
//
// It registers, trains and leaves as gossamer-peer does.  Of faults it knows
// only where it dies, and it knows nothing of other peers.

#ifndef GOSSAMER_TESTS_SIMULATION_SIM_PROCESS_H_
#define GOSSAMER_TESTS_SIMULATION_SIM_PROCESS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "runtime/base/task.h"
#include "runtime/checkpoint/checkpoint_store.h"
#include "runtime/membership/topology_client.h"
#include "runtime/peer/peer.h"
#include "runtime/peer/waiter.h"
#include "runtime/sim/sim_service.h"
#include "runtime/sim/virtual_loop.h"
#include "runtime/transport/nccl/nccl_transport.h"
#include "tests/simulation/correction_ledger.h"
#include "tests/simulation/memory_disk.h"
#include "tests/simulation/parameter_watch.h"
#include "tests/simulation/scenario.h"
#include "tests/testing/fake_nccl.h"

namespace gossamer::simulation {

// The views of living peers, by generation and epoch.  A service whose clock is
// wrong may number its views as an earlier one did, if neither its old disk nor
// any living peer knows of those: therefore the pointers are weak.
using KnownViews =
    std::map<std::pair<uint64_t, uint64_t>, std::weak_ptr<const View>>;

// The state that all processes of a simulation share.
struct SimWorld {
  const Scenario& scenario;
  VirtualLoop& loop;
  SimNetwork& network;
  SimService& service;
  FakeNccl& nccl;
  CorrectionLedger& ledger;
  const std::shared_ptr<const Codec>& codec;
  const DiskSession::Errors& disk_errors;
  KnownViews& views;
  const bool& calm;  // nothing but mixing moves parameters
  // Least and largest value of each parameter in the states that members gave.
  std::vector<std::pair<float, float>>& given;
  // Reports a violation of an invariant.
  std::function<void(const std::string&)> violation;
  // Writes a line of a peer to the trace.
  std::function<void(PeerId, const std::string& what)> tell;
  // Folds a value into the trace's hash.
  std::function<void(uint64_t)> note;
};

// The state of a machine, which outlives its processes.
struct SimMachine {
  PeerId id;
  MemoryDisk disk;
  uint64_t lives = 0;
  // Round of the newest checkpoint that was reported as saved and not given up.
  uint64_t saved_round = 0;
  // Incarnations that ended well and left no record to the next: they have left
  // the fleet, or the disk did not take their last checkpoint.
  std::set<uint64_t> unsaved;
  uint64_t rounds_done = 0;    // peer-rounds, over all processes
  std::vector<float> last;     // parameters at the end of the last process
  std::vector<float> brought;  // MixingHooks::Added, without resting edges
};

class SimProcess final : private MetricsSink {
 public:
  static constexpr char kCheckpoints[] = "checkpoints";
  // Both outlive it.  It starts at once; `resume` is as --resume.
  SimProcess(SimWorld& world, SimMachine& machine, bool resume);
  ~SimProcess() override;
  SimProcess(const SimProcess&) = delete;

  uint64_t number() const { return number_; }
  CrashPoint& crash() { return crash_; }
  VirtualPeerLoop& loop() { return loop_; }
  bool ended() const { return main_.done(); }
  const absl::Status& status() const { return main_.value(); }
  bool stopped() const { return peer_ && peer_->stopped(); }
  bool left() const { return peer_ && peer_->left(); }
  // Makes the peer leave as a notice of preemption does, within `limit` or else
  // within a time that is enough under the scenario's faults.
  void Leave(std::optional<absl::Duration> limit = std::nullopt);
  // Spoils parameters as a flipped bit of memory does, at most as often as a
  // process bears.
  void Spoil();
  bool spoilt() const { return spoilt_; }
  // Null if it uses no NCCL.
  const FakeNccl::Rank* gpu() const { return gpu_.get(); }
  const NcclTransport* nccl() const { return nccl_; }
  // Returns whether an error may end the process, to be started again: the peer
  // was away until its run was over, or has no parameters in a fleet that
  // begins anew.
  bool may_fail() const;
  // Returns whether it is a member of its view, trains by it, and knows of no
  // stop.  The service cannot answer that: with an old disk it may not know of
  // a coming stop.
  bool joined() const {
    return peer_ && !leaving_ && !spoilt_ && !client_->outside() &&
           client_->stop().round == 0 && client_->view().RankOf(machine_.id) &&
           peer_->round() >= client_->view().from_round;
  }
  uint64_t round() const { return peer_ ? peer_->round() : 0; }
  const View& view() const { return client_->view(); }
  std::span<const float> parameters() const { return game_->parameters(); }
  const Edge* edge(PeerId other) const {
    return peer_ ? peer_->neighborhood().edge(other) : nullptr;
  }

  // Checks the invariants of its edges; called after each of its events.
  void Check();
  // Writes the state of its edges to the trace.
  void ReportEdges();

 private:
  class Compute;
  struct Observer;
  struct Seen {  // of an edge, at the last check
    uint64_t epoch = 0, peer_epoch = 0;
    ExchangeId decided = 0, heard = 0, done = 0, peer_done = 0;
    int mine = 0, theirs = 0;
    friend bool operator==(const Seen&, const Seen&) = default;
  };

  Task<absl::Status> Main();
  Task<absl::Status> Register();
  absl::Status MakePeer();
  std::unique_ptr<Transport> MakeTransport();
  uint64_t NewEpoch() const;
  std::vector<float> Brought();
  DiskSession SoundDisk();
  void CheckEdges();
  void CheckEdge(const Edge& edge, Seen& seen);
  void CheckMemory(const Edge& edge);
  void CheckReplicas();
  uint64_t ReplicaMemory() const;
  void CheckView();
  void NoteGiven();
  void CheckReceived();
  std::string Address() const;
  void CheckSaved();
  void CheckSetAside(const std::string& told);
  void NotePast(uint64_t round);
  void BeginIncarnation();
  void Violation(const std::string& what);
  void OnRound(const RoundMetrics& metrics) override;
  void OnEvent(const Event& event) override;

  SimWorld& world_;
  SimMachine& machine_;
  uint64_t number_;
  const RngKey key_;
  const bool resume_;
  CrashPoint crash_;
  VirtualPeerLoop loop_;
  Waiter waiter_;
  DiskSession files_;
  std::unique_ptr<Game> game_;
  std::unique_ptr<LocalStep> step_;
  std::unique_ptr<ParameterWatch> watch_;
  std::unique_ptr<Compute> compute_;
  std::unique_ptr<VirtualCompute> disk_;
  std::unique_ptr<CheckpointStore> checkpoints_;
  std::unique_ptr<FakeNccl::Rank> gpu_;
  NcclTransport* nccl_ = nullptr;  // null: it uses none
  std::unique_ptr<MortalTransport> transport_;
  std::unique_ptr<TopologyClient> client_;
  std::map<PeerId, std::unique_ptr<Observer>> observers_;
  std::unique_ptr<Peer> peer_;
  absl::Status refused_;
  bool leaving_ = false;
  bool spoilt_ = false;  // and not healed yet
  bool missed_end_ = false;
  int spoils_ = 0;
  std::map<PeerId, Seen> seen_;
  std::set<PeerId> excused_;  // edges whose codec this view has not chosen
  View seen_view_;
  // All since its incarnation began.
  std::vector<std::shared_ptr<const View>> views_;
  Task<absl::Status> main_;
};

}  // namespace gossamer::simulation

#endif  // GOSSAMER_TESTS_SIMULATION_SIM_PROCESS_H_
