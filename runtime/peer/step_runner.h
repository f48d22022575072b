// Runs the local steps of a peer on the compute engine, and notes what comes of
// them: losses, steps that are skipped, the moving average.
//
// This header knows nothing of mixing or of gradients of others.

#ifndef GOSSAMER_RUNTIME_PEER_STEP_RUNNER_H_
#define GOSSAMER_RUNTIME_PEER_STEP_RUNNER_H_

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "algorithms/base/rng.h"
#include "algorithms/game/game.h"
#include "algorithms/optim/local_step.h"
#include "runtime/base/event_loop.h"
#include "runtime/base/task.h"
#include "runtime/peer/health.h"
#include "runtime/peer/peer_spec.h"
#include "runtime/peer/reporter.h"
#include "runtime/peer/training_state.h"

namespace gossamer {

class StepRunner {
 public:
  // All of them outlive this object.
  StepRunner(const PeerSpec& spec, EventLoop* loop, ComputeEngine* compute,
             LocalStep* step, TrainingState* state, Health* health,
             Reporter* reporter);

  // co_await resumes on the loop, once `work` is done on the compute engine.
  Pending<bool> Run(std::function<void()> work);

  // These run on the compute engine, for the member with this rank:
  //
  // All local steps of a round.
  void LocalSteps(int rank);
  // Its key of the step to come, or of one `ahead` of it.
  RngKey KeyOf(int rank, uint64_t ahead = 0) const;
  // A step has been made, or is skipped for a reason.
  void NoteStep(const absl::StatusOr<Losses>& losses);

 private:
  const PeerSpec& spec_;
  EventLoop* const loop_;
  ComputeEngine* const compute_;
  LocalStep* const step_;
  TrainingState* const state_;
  Health* const health_;
  Reporter* const reporter_;
  const RngKey key_;
  // A callback that the compute engine posts after this has gone holds it
  // weakly.
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_PEER_STEP_RUNNER_H_
