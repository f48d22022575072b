// Players' losses as two lists of a message, their names and their values.
//
// One message may be a heartbeat and another one a status: both have the lists
// under the same names.  This header knows nothing of what else a message has.

#ifndef GOSSAMER_TOPOLOGY_FLEET_LOSSES_MESSAGE_H_
#define GOSSAMER_TOPOLOGY_FLEET_LOSSES_MESSAGE_H_

#include <algorithm>

#include "algorithms/game/player_losses.h"

namespace gossamer {

// Adds the losses that a receiver takes.
template <typename Message>
void AddLosses(const PlayerLosses& losses, Message& message) {
  for (const PlayerLoss& loss : Bounded(losses)) {
    message.add_loss_player(loss.player);
    message.add_loss(loss.value);
  }
}

// Returns all losses that have both a name and a value, as they came.
template <typename Message>
PlayerLosses LossesOf(const Message& message) {
  PlayerLosses losses;
  const int n = std::min(message.loss_player_size(), message.loss_size());
  for (int i = 0; i < n; ++i) {
    losses.push_back({message.loss_player(i), message.loss(i)});
  }
  return losses;
}

}  // namespace gossamer

#endif  // GOSSAMER_TOPOLOGY_FLEET_LOSSES_MESSAGE_H_
