// A game as gossip training sees it: one flat parameter vector of one or more
// players (of a GAN two: Players), a gradient oracle, and, if its generator
// makes pictures, a way to look at them.
//
// This header is the whole border to libtorch: no torch type crosses it.  It
// knows nothing of optimizers, peers or rounds.

#ifndef GOSSAMER_ALGORITHMS_GAME_GAME_H_
#define GOSSAMER_ALGORITHMS_GAME_GAME_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "algorithms/base/parameter_layout.h"
#include "algorithms/base/rng.h"
#include "algorithms/base/state.h"
#include "algorithms/game/mixing_hooks.h"
#include "algorithms/kernels/device_queue.h"

namespace gossamer {

// Each player's own loss by its number (Player), at the point and on the batch
// of one call; fewer, if a game does not say the rest.
using Losses = std::vector<double>;

class Student;
class TeacherGroup;

// The part of this peer's game in a run that learns from votes
// (algorithms/privacy/roles.h); both are null in other runs.
struct VotingRole {
  Student* student = nullptr;
  TeacherGroup* teachers = nullptr;
  // Of the images that are voted on.
  int dimensions = 0;
  int classes = 0;
};

// The players whose gradients one call computes.
enum class Players { kDiscriminator, kBoth };

// Uses of a generator besides training it.  `generator` is the
// generator's extent of a parameter vector (a moving average, say); the game's
// own parameters and statistics are as before after every call.  One thread at
// a time calls it, while the game steps on another.
class Evaluator {
 public:
  virtual ~Evaluator() = default;
  // "proxy-fid", "fid"; smaller is better.
  virtual std::string_view score_name() const = 0;
  // On what a score rests, to be printed with it: "1024 generated, 400
  // held-out".
  virtual std::string score_basis() const { return ""; }
  // kFailedPrecondition if there is no held-out data to compare with.
  virtual absl::StatusOr<double> Score(std::span<const float> generator,
                                       RngKey key) = 0;
  // Writes a grid of samples as PNG.  kUnimplemented: the game has none.
  virtual absl::Status WriteSamples(std::span<const float> generator,
                                    RngKey key, const std::string& path) = 0;
};

// One peer's game, on its own data and device.  It owns parameters, gradients
// and statistics; optimizers and edges write the parameters between two calls
// of Gradient(), in the order of its queue.
class Game {
 public:
  virtual ~Game() = default;
  virtual const ParameterLayout& layout() const = 0;
  // The queue of the device on which the vectors lie.
  virtual const DeviceQueue& queue() const { return DeviceQueue::Host(); }
  // The vectors of which the players' tensors are views; they stay where they
  // are for as long as the game lives.
  virtual DeviceSpan<float> device_parameters() = 0;
  virtual DeviceSpan<const float> device_gradients() const = 0;
  // The same of a game on the host; ends the program on another device.
  std::span<float> parameters() { return HostSpan(device_parameters()); }
  std::span<const float> gradients() const {
    return HostSpan(device_gradients());
  }

  // The gradients of the players' own losses (each descends its own) at the
  // parameters, both at the same point, on the batch and noise that `key`
  // picks.  Overwrites the extents of `players` in the gradients.
  // kDataLoss if a loss or a gradient is not finite, naming the tensor;
  // parameters and statistics are then as before.
  virtual absl::StatusOr<Losses> Gradient(Players players, RngKey key) = 0;
  // A hint: `key` is that of the call of Gradient() after the next one, as far
  // as the caller knows.  A game may draw that batch while a device computes
  // this one.
  virtual void PrefetchBatch(RngKey key) {}

  // Called before a visitor saves.  False: the state is being gathered on
  // another thread; ask again.  True holds until the next Gradient().
  virtual bool PrepareState() { return true; }
  // State beside the parameters: normalisation statistics.
  virtual void VisitState(StateVisitor& visitor) {}
  // Null unless parameters() holds more than the players' own, as the tracked
  // gradients of gradient tracking.
  virtual MixingHooks* hooks() { return nullptr; }
  // Null if this game has neither a score nor pictures.
  virtual Evaluator* evaluator() { return nullptr; }
  // Set if the players learn from votes; Gradient() is then kUnimplemented.
  virtual VotingRole voting() { return {}; }
};

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_GAME_GAME_H_
