// A fleet of peers that mix over edges under random faults, in ticks: the round
// loop reduced to what an edge sees of it (PROTOCOL.md 9).
//
// Everything is a function of the options, so a failing seed replays.

#ifndef GOSSAMER_TESTS_ALGORITHMS_EDGE_EDGE_FLEET_H_
#define GOSSAMER_TESTS_ALGORITHMS_EDGE_EDGE_FLEET_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace gossamer {

// Chances per edge (or peer) and round.
struct FaultRates {
  double loss = 0;   // all connections of an edge; closed for 0 to 20 rounds
  double twice = 0;  // a second dial, and the end of one of several connections
  double stall = 0;  // 5 to 25 rounds, one way or both
  double freeze = 0;  // a peer, for 20 to 100 rounds
  // A frame on a living connection comes twice, or before the one that was sent
  // before it.
  double repeat = 0, swap = 0;
};
inline constexpr FaultRates kFaulty = {
    .loss = 0.05, .twice = 0.02, .stall = 0.03, .freeze = 0.005};

// The fleet, its mixing and its faults; equal options give equal runs.
struct FleetOptions {
  std::string_view codec = "innov-int4";
  int peers = 6;
  bool permuted = false;     // a permuted ring; else a fixed one
  int overlap = 0;           // the overlap h
  uint64_t rounds = 300;     // rounds with faults
  uint64_t calm_rounds = 0;  // rounds after them
  bool quantized = false;  // 1,064 parameters, most quantized; else 64 in bf16
  double noise = 0;        // standard deviation of a local step
  bool slow_peer = false;  // peer 0 takes six times as long
  FaultRates faults;
  bool deadlines = true;  // waits for a round's exchanges have deadlines
  uint64_t seed = 0;
};

// The outcome of a run.
struct FleetReport {
  // The violation of a safety or liveness property; empty if there is none.
  std::string failure;
  // The distance when faults stop and at the end; it is 1 at the start.
  double consensus_in_faults = 0;
  double consensus = 0;
  // Root mean square change of the parameters' mean, less what local steps
  // added, over the root mean square of the parameters.
  double mean_change = 0;
  double share = 0;  // share of scheduled exchanges that became corrections
};

FleetReport RunFleet(const FleetOptions& options);

}  // namespace gossamer

#endif  // GOSSAMER_TESTS_ALGORITHMS_EDGE_EDGE_FLEET_H_
