// Players' losses as keys of a JSON object, one key a player:
// "generator_loss".
//
// This header knows nothing of the object's other keys, none of which ends in
// "_loss".

#ifndef GOSSAMER_RUNTIME_TELEMETRY_LOSS_KEYS_H_
#define GOSSAMER_RUNTIME_TELEMETRY_LOSS_KEYS_H_

#include "algorithms/game/player_losses.h"
#include "nlohmann/json_fwd.hpp"

namespace gossamer {

// Adds the keys behind those that are there.  A loss that is not finite becomes
// null when the object is written.
void AddLossKeys(const PlayerLosses& losses, nlohmann::ordered_json& json);

// Returns the losses in the order of their keys, NaN where a value is no
// number.  Keys beyond the largest game, or with too long a name, are left out.
PlayerLosses LossesIn(const nlohmann::ordered_json& json);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TELEMETRY_LOSS_KEYS_H_
