// One process of a peer in virtual time: the parts of peer_process.h on a
// simulated network, disk and service, and the watches that check them.
//
// It registers, trains and leaves as gossamer-peer does, and hands each event
// to the watches that it concerns.  Of faults it knows only where it dies, and
// it knows nothing of other peers.

#ifndef GOSSAMER_TESTS_SIMULATION_SIM_PROCESS_H_
#define GOSSAMER_TESTS_SIMULATION_SIM_PROCESS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "runtime/base/task.h"
#include "runtime/checkpoint/checkpoint_store.h"
#include "runtime/daemon/last_view.h"
#include "runtime/membership/topology_client.h"
#include "runtime/peer/peer.h"
#include "runtime/peer/waiter.h"
#include "runtime/sim/sim_service.h"
#include "runtime/sim/virtual_loop.h"
#include "runtime/transport/nccl/nccl_sum.h"
#include "runtime/transport/nccl/nccl_transport.h"
#include "tests/simulation/checkpoint_watch.h"
#include "tests/simulation/edge_watch.h"
#include "tests/simulation/memory_disk.h"
#include "tests/simulation/parameter_watch.h"
#include "tests/simulation/sim_world.h"
#include "tests/simulation/view_watch.h"
#include "tests/testing/fake_nccl.h"

namespace gossamer::simulation {

class SimProcess final : private MetricsSink {
 public:
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
  // Whether another process has the same id: the service refuses one of the
  // two, which ends as a real one does, at once.
  void SetContested(bool contested) { contested_ = contested; }
  bool refused_for_twin() const {
    return contested_ && absl::IsAborted(refused_);
  }
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

  // Checks its invariants; called after each of its events.
  void Check();
  // Writes the state of its edges to the trace.
  void ReportEdges();

 private:
  class Compute;
  struct Observer;

  Task<absl::Status> Main();
  Task<absl::Status> Register();
  absl::Status MakePeer();
  std::unique_ptr<Transport> MakeTransport();
  void TellNccl(EventKind kind, const std::string& detail);
  uint64_t NewEpoch() const;
  uint64_t ReplicaMemory() const;
  std::string Address() const;
  std::vector<float> Brought();
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
  std::unique_ptr<ParameterWatch> parameter_watch_;
  std::unique_ptr<EdgeWatch> edge_watch_;
  CheckpointWatch checkpoint_watch_;
  ViewWatch view_watch_;
  std::unique_ptr<Compute> compute_;
  std::unique_ptr<VirtualCompute> disk_;
  std::unique_ptr<CheckpointStore> checkpoints_;
  std::unique_ptr<LastView> last_view_;  // null: its kind of run keeps none
  std::unique_ptr<FakeNccl::Rank> gpu_;  // null: it uses no NCCL
  NcclTransport* nccl_ = nullptr;        // of a gossiping fleet
  std::unique_ptr<MortalTransport> transport_;
  std::unique_ptr<NcclSum> nccl_sum_;  // of a centralized fleet
  std::unique_ptr<TopologyClient> client_;
  std::map<PeerId, std::unique_ptr<Observer>> observers_;
  std::unique_ptr<Peer> peer_;
  absl::Status refused_;
  bool contested_ = false;
  bool leaving_ = false;
  bool spoilt_ = false;  // and not healed yet
  bool missed_end_ = false;
  int spoils_ = 0;
  Task<absl::Status> main_;
};

}  // namespace gossamer::simulation

#endif  // GOSSAMER_TESTS_SIMULATION_SIM_PROCESS_H_
