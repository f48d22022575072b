// One local step of a peer: the gradients of its players and their updates.
//
// n_critic, learning-rate decay and clipping live here; each player has an
// optimizer of its own over its extent.  This header knows nothing of mixing.

#ifndef GOSSAMER_ALGORITHMS_OPTIM_LOCAL_STEP_H_
#define GOSSAMER_ALGORITHMS_OPTIM_LOCAL_STEP_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "algorithms/base/rng.h"
#include "algorithms/base/state.h"
#include "algorithms/game/game.h"
#include "algorithms/kernels/device_queue.h"
#include "algorithms/optim/optimizer.h"

namespace gossamer {

// The rules of both players, and the parts of a step that are neither's own.
struct LocalStepSpec {
  OptimizerSpec generator;
  OptimizerSpec discriminator;
  // n − 1 steps of the discriminator alone, then one of both.
  int n_critic = 1;
  // Bound on the Euclidean norm of each player's gradient; 0: none.
  double gradient_clip = 0;
  // Learning rates fall linearly from this round on, to 0 after `last_round`;
  // 0: never.
  uint64_t decay_from_round = 0;
  uint64_t last_round = 0;
};

// Returns what of a spec is out of range: that of the optimizers, the learning
// rates under "generator_learning_rate" and "discriminator_learning_rate", and
// "n_critic", "gradient_clip" and "decay_from_round".
Problems ProblemsOf(const LocalStepSpec& spec);

class LocalStep {
 public:
  ~LocalStep();
  // `game` outlives it; the optimizers' vectors lie on its device.
  // kInvalidArgument: the spec's problems.
  static absl::StatusOr<std::unique_ptr<LocalStep>> Create(
      const LocalStepSpec& spec, Game* game);

  // Step number `step` (from 0) in round `round`: gradient, then update.
  // Errors of Game::Gradient; the step is then skipped, and the optimizers are
  // as before.
  absl::StatusOr<Losses> Run(uint64_t step, uint64_t round, RngKey key);

  // Game::PrefetchBatch: the key of the step after the next one.
  void PrefetchBatch(RngKey key) { game_->PrefetchBatch(key); }

  // The two halves, for methods that average gradients in between.
  absl::StatusOr<Losses> Gradient(uint64_t step, RngKey key);
  void Apply(uint64_t step, uint64_t round, DeviceSpan<const float> gradient);

  // The hooks of the players' rules, or else the game's; null: mixing changes
  // nothing but the players' parameters.
  MixingHooks* hooks();

  void VisitState(StateVisitor& visitor);
  // Registers a callback that runs once, right before the optimizers' vectors
  // next change; until then any thread may read them.  Registering again first
  // runs the earlier callback; null registers none.  Called by the owner of the
  // parameters.
  void BeforeChange(std::function<void()> call);

 private:
  class PlayersHooks;
  LocalStep(const LocalStepSpec& spec, Game* game);
  Players PlayersOf(uint64_t step) const;
  double RateScale(uint64_t round) const;
  void ToChange();
  void StepPlayer(Player player, Optimizer& optimizer,
                  DeviceSpan<const float> gradient, double scale);

  const LocalStepSpec spec_;
  Game* const game_;
  const DeviceQueue queue_;
  std::unique_ptr<Optimizer> generator_;
  std::unique_ptr<Optimizer> discriminator_;
  std::unique_ptr<MixingHooks> hooks_;  // null unless both rules have some
  std::function<void()> before_change_;
  // Empty unless clipping: a gradient that is cut, and its squared norm.
  DeviceVector<float> clipped_;
  DeviceVector<double> squares_;
};

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_OPTIM_LOCAL_STEP_H_
