// What one seed of the simulation is: a fleet, its network and the faults that
// it meets.
//
// A plain value and a pure function of the seed; knows nothing of how it is
// run.  Each kind of fault is on or off as a whole, so that seeds differ in
// what they try together (swarm testing: Groce, Zhang, Eide, Chen, Regehr,
// ISSTA 2012).

#ifndef GOSSAMER_TESTS_SIMULATION_SCENARIO_H_
#define GOSSAMER_TESTS_SIMULATION_SCENARIO_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "algorithms/optim/optimizer.h"
#include "runtime/neighborhood/deadline.h"
#include "runtime/sim/fault_plan.h"
#include "runtime/sim/sim_network.h"
#include "topology/mixing_schedule.h"

namespace gossamer::simulation {

inline constexpr int kMostParameters = 512;
inline constexpr int kFewestPeers = 4;
inline constexpr int kMostPeers = 64;
// Thirty times the most that 1,700 seeds took, and a few minutes.
inline constexpr uint64_t kMostEvents = 100'000'000;

// Beside FaultPlan's (lost connections, one-way stalls, frozen peers).  Rates
// are per interval, 0 is never; lengths in intervals.
struct Swarm {
  FaultPlan links;
  double flapping = 0;  // of one pair: breaks every so many intervals
  double partition_rate = 0;
  int longest_partition = 0;
  SimChaos chaos;
  // Of each peer: dies after a few more effects, anywhere in its code.
  double crash_rate = 0;
  int longest_downtime = 0;
  double power_loss = 0;   // share of crashes that lose what was not synced
  double new_disk = 0;     // share of crashes that lose the disk
  double outage_rate = 0;  // all peers at once
  double disk_error = 0;   // per file operation that writes
  double read_error = 0;   // per file operation that reads; passes
  double clock_jump = 0;   // seconds, between two lives of a peer
  double clock_drift = 0;  // at most, of a peer's clock
  double service_crash_rate = 0;
  int longest_service_downtime = 0;
  double service_old_disk = 0;    // share of its restarts
  double service_lost_disk = 0;   // likewise; nothing is left
  double service_disk_error = 0;  // per save
  double control_loss = 0;        // per call and answer
  // Some peers reach the service no longer, or hear nothing of it, or both.
  double service_cut_rate = 0;
  int longest_service_cut = 0;
  // Of the fleet: for some intervals peers die and come back at once, each
  // somewhere else, so that view follows view.
  double storm_rate = 0;
  bool moves = false;       // each life of a peer has an address of its own
  bool fleet_stop = false;  // all stop, and go on
  double leave_rate = 0;    // of each peer; it comes back
  double spoil_rate = 0;    // of each peer: its parameters become nonsense
};

struct Scenario {
  uint64_t seed = 0;
  int peers = kFewestPeers;
  int late = 0;  // of them, that join when the others have begun
  ScheduleSpec schedule;
  std::string codec;
  bool quantized = false;  // its payloads, though segments are small
  double clip_radius = 0;
  int replica_edges = 0;  // memory for the replicas of so many; 0: of all
  int overlap = 1;        // h, or kAutoOverlap
  int mixing_rounds = 1;
  bool chebyshev = false;  // of them
  bool step_then_mix = false;
  int steps_per_round = 1;
  DeadlinePolicy deadline;
  bool clockwork = false;  // every round has the same length
  std::string game;        // quadratic, bilinear
  int dimension = 8;
  double noise = 0;
  double heterogeneity = 0;
  OptimizerSpec optimizer;
  bool tracked = false;  // gradient-tracking: twice as many parameters
  // cp-oadam: what carries the gradients, and how; empty: gossip.
  std::string gradient_codec;
  std::string all_reduce;
  // Faults stop when the first peer has got to `fault_rounds`; once all peers
  // are there again, nothing but mixing moves parameters for `calm_rounds`.
  uint64_t fault_rounds = 0;
  uint64_t calm_rounds = 0;
  // The run ends at a round that the fleet agrees on, else at a given one.
  bool ends_by_stop = true;
  uint64_t checkpoint_every = 0;
  int checkpoints_kept = 2;
  SimLink link;
  double double_dial = 0;
  absl::Duration step_time;
  double step_jitter = 0;
  double slowness = 1;  // of the first peer
  absl::Duration heartbeat;
  absl::Duration lease;
  absl::Duration suspect_after;
  Swarm swarm;
  bool polite = false;  // nobody may leave late
  // Of a seed that comes to an end.
  uint64_t most_events = kMostEvents;

  bool centralized() const { return !gradient_codec.empty(); }
  // The last one of a run that nobody stops.
  uint64_t rounds() const;
  // About the length of a round, in which fault rates are.
  absl::Duration interval() const;
  // What a peer computes at a time: the steps of a round, or of the centralized
  // baseline a gradient or a step.
  absl::Duration TimeOfCompute() const;
  // No calm one takes longer.
  absl::Duration LongestRound() const;
  // mixing.liveness_limit, as for rounds of this length.
  absl::Duration LivenessLimit() const;
};

Scenario DrawScenario(uint64_t seed);

// One line for people.
std::string Describe(const Scenario& scenario);

}  // namespace gossamer::simulation

#endif  // GOSSAMER_TESTS_SIMULATION_SCENARIO_H_
