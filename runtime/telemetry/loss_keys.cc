#include "runtime/telemetry/loss_keys.h"

#include <cstring>
#include <limits>
#include <utility>

#include "nlohmann/json.hpp"

namespace gossamer {
namespace {

constexpr char kSuffix[] = "_loss";

}  // namespace

void AddLossKeys(const PlayerLosses& losses, nlohmann::ordered_json& json) {
  for (const PlayerLoss& loss : losses) {
    json[loss.player + kSuffix] = loss.value;
  }
}

PlayerLosses LossesIn(const nlohmann::ordered_json& json) {
  PlayerLosses losses;
  for (const auto& [key, value] : json.items()) {
    if (!key.ends_with(kSuffix)) continue;
    losses.push_back({key.substr(0, key.size() - std::strlen(kSuffix)),
                      value.is_number()
                          ? value.get<double>()
                          : std::numeric_limits<double>::quiet_NaN()});
  }
  return Bounded(std::move(losses));
}

}  // namespace gossamer
