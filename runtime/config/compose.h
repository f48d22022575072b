// From a resolved RunConfig to the parts of a peer: the one place that knows
// what a configuration's names stand for.
//
// This header knows nothing of addresses, processes or the fleet, nor of
// networks (compose_game.h).

#ifndef GOSSAMER_RUNTIME_CONFIG_COMPOSE_H_
#define GOSSAMER_RUNTIME_CONFIG_COMPOSE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "algorithms/game/bilinear_game.h"
#include "algorithms/game/game.h"
#include "algorithms/game/quadratic_game.h"
#include "algorithms/game/synthetic_game.h"
#include "algorithms/optim/local_step.h"
#include "gan_models/gan_spec.h"
#include "proto/run.pb.h"
#include "runtime/peer/peer.h"

namespace gossamer {

// No network that trains has a parameter of this magnitude, and sums of a
// fleet's corrections below it stay far from what a float can hold.
inline constexpr float kLargestParameter = 1e6f;

// `game`, or what the algorithm makes of it.
std::unique_ptr<Game> GameFor(const RunConfig& config,
                              std::unique_ptr<Game> game);

// The game of shard `shard` of config.peers(), as fast as it goes, without
// GameFor.  kInvalidArgument: it is not bilinear, quadratic or synthetic.
absl::StatusOr<std::unique_ptr<Game>> MakeClosedFormGame(
    const RunConfig& config, int shard);

// The specifications that a configuration stands for, which their parts check.
GanSpec GanSpecOf(const RunConfig& config);
BilinearSpec BilinearSpecOf(const RunConfig& config);
QuadraticSpec QuadraticSpecOf(const RunConfig& config);
SyntheticSpec SyntheticSpecOf(const RunConfig& config);
LocalStepSpec LocalStepSpecOf(const RunConfig& config);
// none, auto or a duration.
absl::StatusOr<DeadlinePolicy> DeadlinePolicyOf(const std::string& text);

// The compressor of averaged gradients; null: floats.  Without `coders` lgc is
// refused.
absl::StatusOr<std::unique_ptr<GradientCompressor>> GradientCompressorOf(
    const RunConfig& config, const ParameterLayout& layout,
    const ValueCoderMaker& coders = nullptr);

// Everything but who and where: self, epoch and folders are the caller's.
absl::StatusOr<PeerSpec> PeerSpecOf(const RunConfig& config);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_CONFIG_COMPOSE_H_
