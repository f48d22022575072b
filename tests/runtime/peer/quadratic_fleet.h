// The fleet that most tests of the round loop use: a noisy, heterogeneous
// quadratic game with OAdam.
//
// This header knows nothing of the faults of a test.

#ifndef GOSSAMER_TESTS_RUNTIME_PEER_QUADRATIC_FLEET_H_
#define GOSSAMER_TESTS_RUNTIME_PEER_QUADRATIC_FLEET_H_

#include <cstdint>
#include <memory>

#include "algorithms/game/quadratic_game.h"
#include "tests/testing/sim_fleet.h"

namespace gossamer {

inline std::unique_ptr<Game> Quadratic(int rank, int peers, double noise,
                                       double heterogeneity) {
  return *QuadraticGame::Create(
      {.dimension = 40, .noise = noise, .heterogeneity = heterogeneity}, rank,
      peers, 7);
}

inline SimFleetOptions QuadraticFleet(int peers = 4, uint64_t rounds = 60) {
  SimFleetOptions o;
  o.peers = peers;
  o.peer.rounds = rounds;
  o.step.generator = {.name = "oadam", .learning_rate = 1e-2};
  o.step.discriminator = {.name = "oadam", .learning_rate = 1e-2};
  o.game = [peers](int rank) { return Quadratic(rank, peers, 0.1, 0.5); };
  return o;
}

// Four peers that are far apart and choose an all-reduce: latency favours few
// steps.
inline SimFleetOptions FarCentralizedFleet() {
  SimFleetOptions o = QuadraticFleet(4, 60);
  o.peer.averaging = Averaging::kGradients;
  o.peer.all_reduce = "auto";
  o.peer.overlap_steps = 0;
  o.schedule.graph = "complete";
  o.network.link.latency = absl::Milliseconds(50);
  return o;
}

}  // namespace gossamer

#endif  // GOSSAMER_TESTS_RUNTIME_PEER_QUADRATIC_FLEET_H_
