// From a resolved RunConfig to the game that a peer trains, and to what else
// needs networks.
//
// Apart from compose.h because a game of networks brings torch along.  This
// header knows nothing of how it is trained.

#ifndef GOSSAMER_RUNTIME_CONFIG_COMPOSE_GAME_H_
#define GOSSAMER_RUNTIME_CONFIG_COMPOSE_GAME_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "algorithms/compress/gradient_compressor.h"
#include "algorithms/game/game.h"
#include "algorithms/kernels/device_queue.h"
#include "proto/run.pb.h"

namespace gossamer {

// Whether the run has a game or a compressor of networks (HasNetworks).
bool NeedsNetworks(const RunConfig& config);

// The game of shard `shard` of config.peers(), paced if the configuration says
// so, on the device of `queue`.  `data` is this machine's data folder, used
// where the configuration names none.  kUnimplemented: only networks train on a
// device other than the host.
absl::StatusOr<std::unique_ptr<Game>> MakeGame(const RunConfig& config,
                                               const std::string& data,
                                               int shard,
                                               const DeviceQueue& queue);

// GradientCompressorOf, with the autoencoders of this build's networks.
absl::StatusOr<std::unique_ptr<GradientCompressor>> MakeGradients(
    const RunConfig& config, const ParameterLayout& layout);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_CONFIG_COMPOSE_GAME_H_
