// The faults of a scenario, drawn interval by interval from its seed.
//
// Decides which fault comes when; its user makes a peer die and come back.
// This header knows nothing of what peers do.

#ifndef GOSSAMER_TESTS_SIMULATION_FAULT_SWARM_H_
#define GOSSAMER_TESTS_SIMULATION_FAULT_SWARM_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "runtime/sim/sim_network.h"
#include "runtime/sim/sim_service.h"
#include "runtime/sim/virtual_loop.h"
#include "tests/simulation/fault_counts.h"
#include "tests/simulation/fault_plan.h"
#include "tests/simulation/scenario.h"

namespace gossamer::simulation {

// The death of a peer after so many more effects, and the losses of its
// machine.
struct Death {
  uint64_t effects = 0;  // effects that the peer still has
  absl::Duration downtime;
  bool power_loss = false;
  bool new_disk = false;
};

class FaultSwarm {
 public:
  using Kill = std::function<void(PeerId, const Death&)>;
  using Act = std::function<void(PeerId)>;
  using Tell = std::function<void(const std::string&)>;

  // All arguments outlive it.  Faults come until it is destroyed, which heals
  // the network and starts the service.  It counts its own faults as they come,
  // and the network's as it is destroyed.
  FaultSwarm(VirtualLoop* loop, SimNetwork* network, SimService* service,
             const Scenario& scenario, Kill kill, Act leave, Act spoil,
             Act twin, Tell tell, FaultCounts* counts);
  ~FaultSwarm();
  FaultSwarm(const FaultSwarm&) = delete;

 private:
  void Tick();
  void TickLinks(RngKey draw);
  void TickPeers(RngKey draw);
  void TickService(RngKey draw);
  void CutFromService(RngKey draw);
  absl::Duration Intervals(int most, RngKey draw) const;

  VirtualPeerLoop loop_;
  SimNetwork* const network_;
  SimService* const service_;
  const Scenario& scenario_;
  const Kill kill_;
  const Act leave_;
  const Act spoil_;
  const Act twin_;
  const Tell tell_;
  FaultCounts& counts_;
  const RngKey key_;
  FaultInjector links_;
  uint64_t tick_ = 0;
  bool partitioned_ = false;
  bool service_cut_ = false;
  int storm_left_ = 0;  // intervals
};

}  // namespace gossamer::simulation

#endif  // GOSSAMER_TESTS_SIMULATION_FAULT_SWARM_H_
