// The state that a peer trains: parameters, the generator's moving average, the
// optimizer's and the game's own, round and steps.
//
// The compute engine owns the parameters between BeginStep() and EndStep(), the
// loop otherwise.  This header knows nothing of edges, views or files.

#ifndef GOSSAMER_RUNTIME_PEER_TRAINING_STATE_H_
#define GOSSAMER_RUNTIME_PEER_TRAINING_STATE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "algorithms/base/state.h"
#include "algorithms/compress/gradient_compressor.h"
#include "algorithms/game/game.h"
#include "algorithms/kernels/device_queue.h"
#include "algorithms/optim/local_step.h"
#include "runtime/base/event_loop.h"
#include "runtime/base/task.h"
#include "runtime/peer/peer_spec.h"
#include "runtime/peer/waiter.h"

namespace gossamer {

class TrainingState {
 public:
  // All outlive it; `gradients` may be null.
  TrainingState(const PeerSpec& spec, Game* game, LocalStep* step,
                GradientCompressor* gradients);

  // The next round to emit.
  uint64_t round() const { return round_; }
  void set_round(uint64_t round) { round_ = round; }
  // Local steps so far, those that were skipped included.
  uint64_t steps() const { return steps_; }
  void set_steps(uint64_t steps) { steps_ = steps; }

  const ParameterLayout& layout() const { return game_->layout(); }
  // The queue of the device on which vectors lie.
  const DeviceQueue& queue() const { return game_->queue(); }
  DeviceSpan<float> parameters() const { return game_->device_parameters(); }
  // The moving average of the generator, or its parameters without.
  DeviceSpan<const float> generator() const;
  // No parameter is beyond PeerSpec::limits.largest, or not finite, and the
  // device works.  Waits for the device, unless BeginValidityCheck() came
  // before and what was enqueued then is done.
  bool Sound() const;
  // Begins the check that the next Sound() answers from, of the parameters as
  // they are now.
  void BeginValidityCheck() const;

  void BeginStep() { stepping_ = true; }
  void EndStep() { stepping_ = false; }
  bool stepping() const { return stepping_; }
  // The parameters have been moved by the steps of a round.
  void UpdateAverage();

  // Adds state that a trainer keeps beside, under names with this prefix.
  void AddState(std::string prefix, std::function<void(StateVisitor&)> visit);
  // Game::PrepareState.
  bool Prepare() const { return game_->PrepareState(); }
  // Waits until Prepare() or `enough` holds: a program may write gigabytes out,
  // and the loop goes on meanwhile.  `enough` outlives the wait.
  Pending<bool> Prepared(Waiter& waiter, EventLoop& loop,
                         const std::function<bool()>& enough) const;
  // All that a checkpoint has of it, by name; saved once Prepare() holds.
  void VisitState(StateVisitor& visitor);
  // The vectors whose names begin so are constant while a gradient is computed:
  // `call` is called, once, before they change (LocalStep::BeforeChange).
  static constexpr std::string_view kStableDuringGradient = "optimizer.";
  void BeforeChange(std::function<void()> call);

 private:
  const PeerSpec& spec_;
  Game* const game_;
  LocalStep* const step_;
  GradientCompressor* const gradients_;
  uint64_t round_ = 1;
  uint64_t steps_ = 0;
  bool stepping_ = false;
  DeviceVector<float> ema_;
  mutable std::optional<Readback<uint32_t>> validity_;
  std::map<std::string, std::function<void(StateVisitor&)>> added_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_PEER_TRAINING_STATE_H_
