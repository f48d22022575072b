// A round of a centralized fleet: steps along the exact mean of all members'
// gradients, or steps of each peer by itself and then the exact mean of their
// parameters.  An all-reduce brings either mean.
//
// This header knows nothing of edges or mixing.

#ifndef GOSSAMER_RUNTIME_PEER_CENTRALIZED_TRAINER_H_
#define GOSSAMER_RUNTIME_PEER_CENTRALIZED_TRAINER_H_

#include <cstdint>
#include <vector>

#include "algorithms/compress/gradient_compressor.h"
#include "algorithms/game/game.h"
#include "algorithms/optim/local_step.h"
#include "runtime/base/event_loop.h"
#include "runtime/peer/adopted_view.h"
#include "runtime/peer/all_reducer.h"
#include "runtime/peer/health.h"
#include "runtime/peer/lifecycle.h"
#include "runtime/peer/peer_spec.h"
#include "runtime/peer/reporter.h"
#include "runtime/peer/step_runner.h"
#include "runtime/peer/stop_rule.h"
#include "runtime/peer/trainer.h"
#include "runtime/peer/training_state.h"
#include "runtime/peer/waiter.h"
#include "runtime/replay/decisions.h"
#include "runtime/transport/nccl/nccl_sum.h"

namespace gossamer {

class CentralizedTrainer final : public Trainer {
 public:
  struct Parts {
    EventLoop* loop = nullptr;
    Waiter* waiter = nullptr;
    Transport* transport = nullptr;
    Decisions* decisions = nullptr;
    AdoptedView* views = nullptr;
    Lifecycle* lifecycle = nullptr;
    TrainingState* state = nullptr;
    Health* health = nullptr;
    StepRunner* runner = nullptr;
    const StopRule* stop = nullptr;
    Reporter* reporter = nullptr;
    Game* game = nullptr;
    LocalStep* step = nullptr;
    GradientCompressor* gradients = nullptr;  // null: floats
    NcclSum* nccl_sum = nullptr;              // null: none
  };
  // All of them outlive this object.
  CentralizedTrainer(const PeerSpec& spec, Parts parts);

  absl::Status OnView(bool first, const SavedEdges& saved) override;
  void Reset() override {}
  Task<absl::Status> Round() override;
  uint64_t NextRound() override { return parts_.state->round() + 1; }
  bool Abandoned() const override {
    return all_reducer_.Abandoned(Operation());
  }
  void AnnounceEnd() override { all_reducer_.AnnounceEnd(); }
  std::vector<PeerId> NotEnded() const override {
    return all_reducer_.NotEnded();
  }
  absl::Duration DrainLimit() const override;
  bool AtBoundary() const override;
  absl::Status OnFrame(PeerId peer, const Frame& frame) override {
    return all_reducer_.OnFrame(peer, frame);
  }
  void OnUp(PeerId peer) override { all_reducer_.OnUp(peer); }

 private:
  bool averages_parameters() const {
    return spec_.averaging == Averaging::kParameters;
  }
  // The number of the exact mean that is under way, or is next.
  uint64_t Operation() const {
    return averages_parameters() ? parts_.state->round()
                                 : parts_.state->steps();
  }
  // NCCL may bring the next mean.
  bool ByNccl();
  // One step of all peers along the mean of their gradients.
  Task<absl::Status> AverageGradients();
  // The steps of a round at each peer by itself, then the mean of all
  // parameters.
  Task<absl::Status> AverageParameters();
  // Sends this peer's share and waits for the mean, or ends the rounds if it
  // will not come because the run ends before this round.
  Task<absl::Status> AwaitMean(absl::Time started);
  // Waits for the mean that is under way, or what ends the wait; false: the
  // liveness limit does.
  Pending<bool> MeanOrEnd();
  // Runs on the compute engine.
  void BeginGradient(bool by_nccl);
  // The same; false: no peer steps.
  bool ApplyMean();
  // The same: takes the mean as the parameters if it is finite.  False: no
  // peer steps.
  absl::StatusOr<bool> TakeMean();
  absl::Status EndRounds();
  void FinishReduce(double seconds);
  absl::Status NobodySteps() const;
  absl::Status NotReduced() const;

  const PeerSpec& spec_;
  const Parts parts_;
  AllReducer all_reducer_;
  bool by_nccl_ = false;
  bool averaging_ = false;  // x has been stepped and is not averaged yet
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_PEER_CENTRALIZED_TRAINER_H_
