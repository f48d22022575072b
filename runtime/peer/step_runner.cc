#include "runtime/peer/step_runner.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "runtime/peer/compute.h"

namespace gossamer {

StepRunner::StepRunner(const PeerSpec& spec, EventLoop* loop,
                       ComputeEngine* compute, LocalStep* step,
                       TrainingState* state, Health* health, Reporter* reporter)
    : spec_(spec),
      loop_(loop),
      compute_(compute),
      step_(step),
      state_(state),
      health_(health),
      reporter_(reporter),
      key_(RngKey(spec.seed).Fold("step")) {
  // Every round has a loss of every player, so that its keys in a log are the
  // same from the first line on.
  for (const std::string& player : state->layout().players()) {
    reporter->metrics().losses.push_back(
        {player, std::numeric_limits<double>::quiet_NaN()});
  }
}

Pending<bool> StepRunner::Run(std::function<void()> work) {
  return Compute(compute_, std::move(work));
}

RngKey StepRunner::KeyOf(int rank, uint64_t ahead) const {
  // The key depends on rank and step, never on time or thread: a run on another
  // machine, and a replay, draw the same.
  return key_.Fold(static_cast<uint64_t>(rank)).Fold(state_->steps() + ahead);
}

void StepRunner::LocalSteps(int rank) {
  for (int i = 0; i < spec_.steps_per_round; ++i) {
    step_->PrefetchBatch(KeyOf(rank, 1));
    const absl::StatusOr<Losses> losses =
        step_->Run(state_->steps(), state_->round(), KeyOf(rank));
    // A skipped step counts, too: the next one must not draw the same data.
    state_->set_steps(state_->steps() + 1);
    NoteStep(losses);
  }
}

void StepRunner::NoteStep(const absl::StatusOr<Losses>& losses) {
  health_->NoteStep(losses.ok());
  if (losses.ok()) {
    PlayerLosses& known = reporter_->metrics().losses;
    const size_t n = std::min(losses->size(), known.size());
    for (size_t i = 0; i < n; ++i) known[i].value = (*losses)[i];
    return;
  }
  // This runs on the compute engine, and sinks belong to the loop.
  loop_->Post([this, alive = std::weak_ptr<bool>(alive_),
               why = std::string(losses.status().message())] {
    if (!alive.expired()) reporter_->Report("step_skipped", why);
  });
}

}  // namespace gossamer
