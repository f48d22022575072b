// One seed of the simulation as a value: a fleet, its network and its faults.
//
// It is a pure function of the seed and knows nothing of how it is run.  Each
// kind of fault is on or off as a whole, so that seeds differ in what they try
// together (swarm testing: Groce, Zhang, Eide, Chen, Regehr, ISSTA 2012).

#ifndef GOSSAMER_TESTS_SIMULATION_SCENARIO_H_
#define GOSSAMER_TESTS_SIMULATION_SCENARIO_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "algorithms/optim/optimizer.h"
#include "runtime/neighborhood/deadline.h"
#include "runtime/sim/sim_network.h"
#include "tests/simulation/fault_plan.h"
#include "topology/mixing_schedule.h"

namespace gossamer::simulation {

inline constexpr int kMaxScenarioParameters = 512;
inline constexpr int kMinScenarioPeers = 4;
inline constexpr int kMaxScenarioPeers = 64;
// Thirty times the most events that 1,700 seeds needed; a few minutes.
inline constexpr uint64_t kMaxEvents = 100'000'000;

// The faults beside those of FaultPlan (lost connections, one-way stalls,
// frozen peers).  Rates are per interval, and 0 means never; lengths are in
// intervals.
struct Swarm {
  FaultPlan links;
  double flapping = 0;  // one pair breaks every so many intervals
  double partition_rate = 0;
  int longest_partition = 0;
  SimChaos chaos;
  // A peer dies after a few more effects, anywhere in its code.
  double crash_rate = 0;
  int longest_downtime = 0;
  double power_loss = 0;   // share of crashes that lose what was not synced
  double new_disk = 0;     // share of crashes that lose the disk
  double outage_rate = 0;  // all peers at once
  double disk_error = 0;   // per file operation that writes
  double read_error = 0;   // per file operation that reads; passes
  double clock_jump = 0;   // seconds, between two incarnations of a peer
  double clock_drift = 0;  // largest drift of a peer's clock
  double service_crash_rate = 0;
  int longest_service_downtime = 0;
  double service_old_disk = 0;    // share of its restarts
  double service_lost_disk = 0;   // likewise, with an empty disk
  double service_disk_error = 0;  // per save
  double control_loss = 0;        // per call and per answer
  // Some peers no longer reach the service, or do not hear it, or both.
  double service_cut_rate = 0;
  int longest_service_cut = 0;
  // A storm of the fleet: for some intervals peers die and come back at once at
  // other addresses, so that view follows view.
  double storm_rate = 0;
  bool moves = false;       // each incarnation has an address of its own
  bool fleet_stop = false;  // all peers stop and resume
  double leave_rate = 0;    // per peer, which comes back
  double spoil_rate = 0;    // per peer, whose parameters become nonsense
  // Per peer, of which a second process begins on another machine.
  double twin_rate = 0;
};

// NCCL between peers of one host (nccl_faults.h).  Rates are per operation, and
// of `making_fault` per communicator.
struct NcclScenario {
  bool used = false;
  int hosts = 1;
  bool shared_gpu = false;         // two peers are on one GPU
  bool other_version = false;      // one peer has another version
  absl::Duration connecting = {};  // two members, in their first operation
  absl::Duration operation = {};
  double hang = 0;
  double error = 0;
  double slow = 0;
  double partial = 0;  // sums that reach some peers alone
  double making_fault = 0;
};

struct Scenario {
  uint64_t seed = 0;
  int peers = kMinScenarioPeers;
  int late = 0;  // peers that join after the others have begun
  ScheduleSpec schedule;
  std::string codec;
  // Its payloads are quantized, though segments are small.
  bool quantized = false;
  double clip_radius = 0;
  int replica_edges = 0;  // edges that memory holds replicas for; 0: all
  int max_neighbors = kMaxNeighbors;  // PeerSpec::max_neighbors
  int overlap = 1;                    // h, or kAutoOverlap
  int mixing_rounds = 1;
  bool chebyshev = false;  // combines the mixing rounds
  bool step_then_mix = false;
  int steps_per_round = 1;
  DeadlinePolicy deadline;
  bool clockwork = false;  // every round has the same length
  std::string game;        // quadratic or bilinear
  int dimension = 8;
  double noise = 0;
  double heterogeneity = 0;
  OptimizerSpec optimizer;
  bool tracked = false;  // gradient-tracking: twice as many parameters
  // The gradient compressor of cp-oadam; empty for gossip.
  std::string gradient_codec;
  std::string all_reduce;
  // Faults stop when the first peer has reached `fault_rounds`.  Once all peers
  // are back, nothing but mixing moves parameters for `calm_rounds`.
  uint64_t fault_rounds = 0;
  uint64_t calm_rounds = 0;
  // True: the run ends at a round that the fleet agrees on, else at a given
  // one.
  bool ends_by_stop = true;
  uint64_t checkpoint_every = 0;
  int checkpoints_kept = 2;
  SimLink link;
  double double_dial = 0;
  absl::Duration step_time;
  double step_jitter = 0;
  double slowness = 1;  // factor on the first peer's step time
  absl::Duration heartbeat;
  absl::Duration lease;
  absl::Duration suspect_after;
  Swarm swarm;
  NcclScenario nccl = {};
  bool polite = false;  // no peer may leave late
  // The limit of a seed that comes to an end.
  uint64_t max_events = kMaxEvents;

  bool centralized() const { return !gradient_codec.empty(); }
  // Returns the last round of a run that is not stopped.
  uint64_t rounds() const;
  // Returns about the length of a round; fault rates are per interval.
  absl::Duration interval() const;
  // Returns the time of one piece of work on the compute engine: the steps of a
  // round, or one gradient or step of the centralized baseline.
  absl::Duration TimeOfCompute() const;
  // Returns a bound on the length of a calm round.
  absl::Duration LongestRound() const;
  // Returns mixing.liveness_limit for rounds of this length.
  absl::Duration LivenessLimit() const;
};

// `nccl`: its peers use NCCL.
Scenario DrawScenario(uint64_t seed, bool nccl = false);

// Returns a line for people.
std::string Describe(const Scenario& scenario);

}  // namespace gossamer::simulation

#endif  // GOSSAMER_TESTS_SIMULATION_SCENARIO_H_
