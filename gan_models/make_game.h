// The factory of games of networks: plain specifications in, a Game out.  It
// includes no torch, so that mains may include it beside protobuf.

#ifndef GOSSAMER_GAN_MODELS_MAKE_GAME_H_
#define GOSSAMER_GAN_MODELS_MAKE_GAME_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "algorithms/game/game.h"
#include "algorithms/kernels/device_queue.h"
#include "gan_models/gan_spec.h"

namespace gossamer {

// Whether this program has networks; without them all functions of this folder
// that make one return kUnimplemented.
bool HasNetworks();

// The game of peer `rank` of `peers`.  All peers of a run start from the same
// parameters (a function of `seed`); each image is in exactly one shard.  The
// game trains on the device of `queue`.
// Errors: kInvalidArgument (the spec's problems), kNotFound (a data file,
// saying how to make it), kDataLoss (truncated or wrong-size),
// kFailedPrecondition (a GPU that torch cannot use), kResourceExhausted (memory
// that the device lacks).
absl::StatusOr<std::unique_ptr<Game>> MakeGan(
    const GanSpec& spec, int rank, int peers, uint64_t seed, int threads,
    const DeviceQueue& queue = DeviceQueue::Host());

}  // namespace gossamer

#endif  // GOSSAMER_GAN_MODELS_MAKE_GAME_H_
