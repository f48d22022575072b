// The consensus distance of a fleet at one round, of all parameters and of each
// player.
//
// For people and pictures; nothing is decided from it.  This header knows
// nothing of how it is measured.

#ifndef GOSSAMER_TOPOLOGY_FLEET_CONSENSUS_H_
#define GOSSAMER_TOPOLOGY_FLEET_CONSENSUS_H_

#include <cstdint>

#include "algorithms/game/player_losses.h"

namespace gossamer {

struct Consensus {
  uint64_t round = 0;
  // 1/M Σ_i ‖x_i − x̄‖² over the M peers.
  double distance = 0;
  // The same of each player's parameters, which add up to it; empty of a game
  // of one player, and where players are not known.
  PlayerDistances players = {};
};

}  // namespace gossamer

#endif  // GOSSAMER_TOPOLOGY_FLEET_CONSENSUS_H_
