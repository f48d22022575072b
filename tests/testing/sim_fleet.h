// A whole fleet in virtual time: the real peers, edges, schedules and
// checkpoints over the simulated network, on a closed-form game.
//
// It has no service, no crashes and no disks; a test adds the faults of the
// network.

#ifndef GOSSAMER_TESTS_TESTING_SIM_FLEET_H_
#define GOSSAMER_TESTS_TESTING_SIM_FLEET_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "algorithms/game/game.h"
#include "algorithms/optim/local_step.h"
#include "runtime/checkpoint/checkpoint_store.h"
#include "runtime/peer/peer.h"
#include "runtime/sim/sim_network.h"
#include "runtime/sim/virtual_loop.h"
#include "runtime/transport/nccl/nccl_sum.h"
#include "tests/testing/static_membership.h"

namespace gossamer {

// The options of a fleet; equal options give equal bits.
struct SimFleetOptions {
  int peers = 4;
  uint64_t seed = 1;
  ScheduleSpec schedule;
  std::string codec = "dense-f32";
  std::string gradient_codec = "dense-f32";
  ValueCoderMaker coders = nullptr;  // for gradient_codec
  PeerSpec peer;  // self, run_id, epoch and seed are filled in
  LocalStepSpec step;
  // Makes the game of a rank.
  std::function<std::unique_ptr<Game>(int rank)> game;
  SimOptions network;
  absl::Duration step_time = absl::Milliseconds(10);
  double step_jitter = 0.1;
  // The time of a rank's disk for each thing that it does; null: none.
  std::function<absl::Duration(int rank)> disk_time = {};
  // The time of a score, beside the rounds; nullopt: rounds wait for scores.
  std::optional<absl::Duration> score_time = {};
  std::map<int, double> slowness;  // by rank: factor on step_time
  // Length of the first step, by rank.
  std::map<int, absl::Duration> first_step;
  std::string checkpoints;  // folder; empty: none
  uint64_t resume_round = 0;
  uint64_t incarnation = 1;  // differs between two starts of the fleet
  // Returns the log of a rank's decisions; null: none is kept.
  std::function<Decisions*(int rank)> decisions = {};
  // Changes settings of a rank's `peer`.
  std::function<void(int rank, PeerSpec& spec)> spec_of = {};
  // A rank's noise and ledger, of Averaging::kVotes.
  std::function<VotingParts(int rank)> voting = {};
  // A rank's disk and transport, if they differ from the system's and the
  // network's.
  std::function<FileOps*(int rank)> files = {};
  std::function<std::unique_ptr<Transport>(int rank, EventLoop* loop,
                                           std::unique_ptr<Transport>)>
      transport = {};
  // The NCCL of a rank of a centralized fleet.
  std::function<std::unique_ptr<NcclSum>(int rank, EventLoop* loop,
                                         Transport* transport,
                                         const DeviceQueue& queue)>
      nccl_sum = {};
  // The place of a rank's parameters, as the view says (Member::device).
  std::function<std::string(int rank)> device = {};
  // A peer's knowledge of its fleet, if it differs from the fleet's.
  std::function<std::unique_ptr<Membership>(std::unique_ptr<Membership>)>
      membership = {};
};

// Keeps the events, in which a test looks for those that must or must not be
// there.
class EventRecorder final : public MetricsSink {
 public:
  void OnRound(const RoundMetrics& m) override { rounds.push_back(m); }
  void OnEvent(const Event& e) override { events.push_back(e); }
  int Count(EventKind kind) const;
  std::vector<RoundMetrics> rounds;
  std::vector<Event> events;
};

class SimFleet {
 public:
  explicit SimFleet(SimFleetOptions options);
  ~SimFleet();

  // Starts all peers.
  void Start();
  // Runs until all peers have ended or `limit` of virtual time has passed;
  // returns whether all have ended with OK.
  bool Run(absl::Duration limit = absl::Hours(1));
  // Returns the end of a rank's run.
  absl::Status StatusOf(int rank) const;

  VirtualLoop& loop() { return loop_; }
  SimNetwork& network() { return network_; }
  StaticFleet& fleet() { return fleet_; }
  int size() const { return options_.peers; }
  Peer& peer(int rank) { return *hosts_[rank]->peer; }
  Game& game(int rank) { return *hosts_[rank]->game; }
  EventRecorder& recorder(int rank) { return hosts_[rank]->recorder; }
  static PeerId IdOf(int rank) { return {static_cast<uint64_t>(rank) + 1}; }

  // Return 1/M Σ‖x_i − x̄‖², the mean of all parameters, and a hash of all
  // bits.
  double ConsensusDistance() const;
  std::vector<double> Mean() const;
  uint64_t Hash() const;

 private:
  struct Host {
    std::unique_ptr<VirtualPeerLoop> loop;
    std::unique_ptr<VirtualCompute> compute, scores;
    std::unique_ptr<ComputeEngine> disk;
    std::unique_ptr<Transport> transport;
    std::unique_ptr<NcclSum> nccl_sum;
    std::unique_ptr<Membership> membership;
    std::unique_ptr<Game> game;
    std::unique_ptr<LocalStep> step;
    std::unique_ptr<CheckpointStore> checkpoints;
    EventRecorder recorder;
    std::unique_ptr<Peer> peer;
    Task<absl::Status> run;
  };
  static View MakeView(const SimFleetOptions& options);
  std::unique_ptr<Host> MakeSeat(int rank);

  const SimFleetOptions options_;
  VirtualLoop loop_;
  SimNetwork network_;
  StaticFleet fleet_;
  std::vector<std::unique_ptr<Host>> hosts_;
};

}  // namespace gossamer

#endif  // GOSSAMER_TESTS_TESTING_SIM_FLEET_H_
