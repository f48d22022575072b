// A whole fleet in virtual time with the real topology service: peers, edges
// and control plane as fleet_swarm runs them, with exactly the faults that a
// test asks for.
//
// Every correction, step and view is checked as in fleet_swarm, and the first
// violation is kept.  This header knows nothing of the kinds of faults.

#ifndef GOSSAMER_TESTS_TESTING_SERVICED_FLEET_H_
#define GOSSAMER_TESTS_TESTING_SERVICED_FLEET_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "runtime/sim/sim_network.h"
#include "runtime/sim/sim_service.h"
#include "runtime/sim/virtual_loop.h"
#include "tests/simulation/correction_ledger.h"
#include "tests/simulation/given_states.h"
#include "tests/simulation/hosts.h"
#include "tests/simulation/scenario.h"
#include "tests/simulation/sim_process.h"
#include "tests/testing/fake_nccl.h"

namespace gossamer {

// Returns a scenario of peers on the quadratic game: the heartbeats, leases and
// suspicion times of real fleets, and innovations in int4 on a permuted ring.
simulation::Scenario UsualFleet(int peers);

class ServicedFleet {
 public:
  // The scenario's swarm is ignored.
  explicit ServicedFleet(simulation::Scenario scenario);
  ~ServicedFleet();

  // Runs until `holds` is true.  Returns false after `limit` of virtual time,
  // or once an invariant is violated.
  bool Until(const std::function<bool()>& holds, absl::Duration limit);
  // Returns whether every peer is a member and trains by the newest view.
  bool Together() const;
  // Runs until every process has ended well and every correction has its
  // opposite; returns "", or the first violation.
  std::string Finish(absl::Duration limit);
  // Does the same for a fleet that agrees on its end now.
  std::string Stop();

  // Starts one of the scenario's late peers, its last ones.
  void Join(uint64_t id);
  // Kills the process as by kill -9, and starts it again at once from its
  // checkpoints.
  void Restart(uint64_t id);

  VirtualLoop& loop() { return loop_; }
  SimNetwork& network() { return network_; }
  simulation::SimService& service() { return service_; }
  simulation::SimProcess& peer(uint64_t id) { return *hosts_[id - 1].process; }
  // Sets whether nothing but mixing moves parameters.
  void SetCalm(bool calm) { calm_ = calm; }

  // Returns the smallest and the largest round of these peers.
  std::pair<uint64_t, uint64_t> RoundsOf(const std::set<PeerId>& ids) const;
  std::vector<double> MeanOf(const std::set<PeerId>& ids) const;
  // Returns 1/M sum_i ||x_i - mean||^2 of these peers.
  double ConsensusDistance(const std::set<PeerId>& ids) const;
  std::set<PeerId> Everybody() const;
  // Returns the rounds that this peer has ended; jumped ones do not count.
  uint64_t RoundsDone(uint64_t id) const {
    return hosts_[id - 1].machine->rounds_done;
  }
  // Returns the parameters at the end of a peer's last process, once it has
  // ended.
  const std::vector<float>& Last(uint64_t id) const {
    return hosts_[id - 1].machine->last;
  }

  uint64_t corrections() const { return ledger_.corrections(); }
  const std::string& violation() const { return violation_; }
  // Returns the number of events of one kind, at all peers.
  int Count(const std::string& kind) const;
  // Returns the number of events whose text has `words`.
  int CountText(const std::string& words) const;

 private:
  void AfterEvent();
  void Violation(const std::string& what);

  const simulation::Scenario scenario_;
  VirtualLoop loop_;
  SimNetwork network_;
  simulation::SimService service_;
  FakeNccl nccl_;
  simulation::CorrectionLedger ledger_;
  const std::shared_ptr<const Codec> codec_;
  const simulation::DiskSession::Errors disk_errors_;
  simulation::KnownViews views_;
  bool calm_ = false;
  simulation::GivenStates given_;
  simulation::FaultCounts counts_;
  std::string violation_;
  std::vector<std::string> told_;
  simulation::SimWorld world_;
  std::vector<simulation::SimHost> hosts_;
};

}  // namespace gossamer

#endif  // GOSSAMER_TESTS_TESTING_SERVICED_FLEET_H_
