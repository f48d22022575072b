// One seed under way: its fleet, its phases and its outcome.
//
// Simulate() of simulation.h is the interface.  The phases are in
// simulation.cc, the start and the end of processes in simulation_processes.cc.

#ifndef GOSSAMER_TESTS_SIMULATION_SIMULATION_RUN_H_
#define GOSSAMER_TESTS_SIMULATION_SIMULATION_RUN_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "algorithms/base/rng.h"
#include "algorithms/compress/codec.h"
#include "runtime/sim/sim_network.h"
#include "runtime/sim/sim_service.h"
#include "runtime/sim/virtual_loop.h"
#include "tests/simulation/correction_ledger.h"
#include "tests/simulation/fault_counts.h"
#include "tests/simulation/fault_swarm.h"
#include "tests/simulation/given_states.h"
#include "tests/simulation/hosts.h"
#include "tests/simulation/memory_disk.h"
#include "tests/simulation/sim_process.h"
#include "tests/simulation/sim_world.h"
#include "tests/simulation/simulation.h"
#include "tests/simulation/view_watch.h"
#include "tests/testing/fake_nccl.h"

namespace gossamer::simulation {

class Simulation {
 public:
  Simulation(const Scenario& scenario,
             std::function<void(const std::string&)> trace);
  ~Simulation();
  Outcome Run();

 private:
  enum class Phase { kFaults, kGathering, kCalm, kEnding, kDone };

  void StartProcess(SimHost& host);
  void EndProcess(SimHost& host);
  void Bury(SimHost& host);
  void ComeBack(SimHost& host);
  void Kill(PeerId id, const Death& death);
  void StartTwin(PeerId id);
  void LookAtOlder(SimHost& host);
  void EndOlder(SimHost& host);
  void AfterEvent();
  void Advance();
  void StopFaults();
  void CheckCircle(const FakeNccl::Circle& circle);
  // Enters a phase, which may take so many of the longest rounds.
  void Enter(Phase phase, uint64_t rounds);
  void RestartStopped();
  void SettleInCalm();
  void CheckEnd();
  void CheckDistance(const std::vector<std::span<const float>>& all);
  void CountMembers();
  void Violation(const std::string& what);
  void Tell(const std::string& who, const std::string& what);
  void Note(uint64_t value) {
    hash_ = (hash_ ^ value) * 0x9e3779b97f4a7c15u;
    hash_ ^= hash_ >> 29;
  }

  const Scenario scenario_;
  const std::function<void(const std::string&)> trace_;
  const RngKey key_;
  Outcome outcome_;
  VirtualLoop loop_;
  VirtualPeerLoop control_;
  SimNetwork network_;
  SimService service_;
  FakeNccl nccl_;
  CorrectionLedger ledger_;
  const std::shared_ptr<const Codec> codec_;
  DiskSession::Errors disk_errors_;
  KnownViews views_;
  bool calm_ = false;
  GivenStates given_;
  SimWorld world_;
  std::vector<SimHost> hosts_;
  std::unique_ptr<FaultSwarm> swarm_;
  Phase phase_ = Phase::kFaults;
  absl::Time give_up_;
  uint64_t calm_from_ = 0;
  uint64_t stop_at_ = 0;  // the round at which all stop and resume; 0: none
  absl::Time stopping_ = absl::InfiniteFuture();
  uint64_t hash_ = 0;
};

}  // namespace gossamer::simulation

#endif  // GOSSAMER_TESTS_SIMULATION_SIMULATION_RUN_H_
