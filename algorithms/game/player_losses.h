// Values of a game's players by the players' names, for people to look at: what
// each has lost in a step, or how far apart its copies are.
//
// Names may come from other machines, so their number and length are bounded.
// This header knows nothing of files or messages.

#ifndef GOSSAMER_ALGORITHMS_GAME_PLAYER_LOSSES_H_
#define GOSSAMER_ALGORITHMS_GAME_PLAYER_LOSSES_H_

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/base/parameter_layout.h"

namespace gossamer {

struct PlayerValue {
  std::string player;  // "generator"
  double value = 0;    // NaN: not known
};

// In the order of the players' numbers.
using PlayerLoss = PlayerValue;
using PlayerLosses = std::vector<PlayerLoss>;
using PlayerDistances = std::vector<PlayerValue>;

// Returns whether a player may have this name.
inline bool IsPlayerName(std::string_view name) {
  return !name.empty() && name.size() <= kMaxPlayerNameBytes;
}

// Returns the losses without those whose name no player may have, and without
// those beyond the largest game.
inline PlayerLosses Bounded(PlayerLosses losses) {
  std::erase_if(losses, [](const PlayerLoss& loss) {
    return !IsPlayerName(loss.player);
  });
  if (losses.size() > kMaxPlayers) losses.resize(kMaxPlayers);
  return losses;
}

// Returns the value of one player; NaN if it is not among them.
inline double ValueOf(const PlayerLosses& losses, std::string_view player) {
  const auto own = std::ranges::find(losses, player, &PlayerLoss::player);
  return own == losses.end() ? std::numeric_limits<double>::quiet_NaN()
                             : own->value;
}

// Adds the players that `names` lacks, up to the largest game.
inline void AddPlayers(const PlayerLosses& losses,
                       std::vector<std::string>& names) {
  for (const PlayerLoss& loss : losses) {
    if (names.size() == kMaxPlayers) return;
    if (std::ranges::find(names, loss.player) != names.end()) continue;
    names.push_back(loss.player);
  }
}

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_GAME_PLAYER_LOSSES_H_
