// Faults drawn from a seed, as rates per pair or peer and interval.
//
// The defaults are the mixture of the edge protocol's search: lost connections,
// stalled links and frozen peers, with an interval of about a round.  This
// header knows nothing of crashes of peers: tests make those.

#ifndef GOSSAMER_TESTS_SIMULATION_FAULT_PLAN_H_
#define GOSSAMER_TESTS_SIMULATION_FAULT_PLAN_H_

#include <cstdint>

#include "absl/time/time.h"
#include "algorithms/base/rng.h"
#include "runtime/sim/sim_network.h"
#include "runtime/sim/virtual_loop.h"

namespace gossamer::simulation {

struct FaultPlan {
  uint64_t seed = 1;
  absl::Duration interval = absl::Milliseconds(100);
  // Per pair and interval.  A lost connection stays closed for up to
  // `longest_closed` intervals.  A stall takes `shortest_stall` to
  // `longest_stall`, in one direction or in both.
  double break_rate = 0.05;
  int longest_closed = 20;
  double stall_rate = 0.03;
  int shortest_stall = 5;
  int longest_stall = 25;
  // Per peer and interval.
  double freeze_rate = 0.005;
  int shortest_freeze = 20;
  int longest_freeze = 100;
};

// Applies a plan from now on until it is destroyed.  Faults under way end by
// themselves.
class FaultInjector {
 public:
  // `network` and `loop` outlive the injector.
  FaultInjector(VirtualLoop* loop, SimNetwork* network, FaultPlan plan);
  FaultInjector(const FaultInjector&) = delete;
  FaultInjector& operator=(const FaultInjector&) = delete;

  uint64_t breaks() const { return breaks_; }
  uint64_t stalls() const { return stalls_; }
  uint64_t freezes() const { return freezes_; }

 private:
  void Tick();
  void Break(PeerId a, PeerId b, RngKey draw);
  void Stall(PeerId a, PeerId b, RngKey draw);

  VirtualPeerLoop loop_;
  SimNetwork* const network_;
  const FaultPlan plan_;
  uint64_t tick_ = 0;
  uint64_t breaks_ = 0;
  uint64_t stalls_ = 0;
  uint64_t freezes_ = 0;
};

}  // namespace gossamer::simulation

#endif  // GOSSAMER_TESTS_SIMULATION_FAULT_PLAN_H_
