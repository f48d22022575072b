// Scores and pictures of the generator, at the rounds that are due.
//
// They are taken from a copy of the generator by an engine of their own, so no
// round waits for them.  This header knows nothing of how a game is scored.

#ifndef GOSSAMER_RUNTIME_PEER_EVALUATION_H_
#define GOSSAMER_RUNTIME_PEER_EVALUATION_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "algorithms/base/throttle.h"
#include "algorithms/game/game.h"
#include "runtime/base/event_loop.h"
#include "runtime/base/task.h"
#include "runtime/peer/peer_spec.h"
#include "runtime/peer/reporter.h"
#include "runtime/peer/training_state.h"

namespace gossamer {

class Evaluation {
 public:
  // All outlive it; `evaluator` may be null.  It is used on `compute`, and the
  // round waits, or on `scores` unless that is null.
  Evaluation(const PeerSpec& spec, ComputeEngine* compute,
             ComputeEngine* scores, Evaluator* evaluator,
             const TrainingState* state, Reporter* reporter);

  // Takes the memory of a generator's copy: new pages would cost the first
  // round that has a score more than the copy.
  void Reserve();
  // After a round, the `last` or another: scores that have come since the round
  // before go into its metrics, and the generator is taken if it is due.
  Task<bool> Run(bool last);
  // After all rounds: waits for the scores that are missing, and reports them
  // with the last round once more.
  Task<bool> Finish();

  // Most generators that wait for their scores.
  static constexpr int kMaxWaiting = 8;

 private:
  // The score and the picture of one generator.
  struct Job {
    uint64_t round = 0;
    std::vector<float> generator;
    absl::StatusOr<double> score = 0.0;
    absl::Status drawn;
  };
  bool Due(bool last) const;
  // Moves the scores that have come into the metrics, which are of `round`.
  bool TakeScores(uint64_t round);
  // Set once no generator waits for its score.
  Pending<bool> AllOver();
  void Begin(bool last);
  void End(const Job& job);

  const PeerSpec& spec_;
  ComputeEngine* const engine_;
  const bool waits_;
  Evaluator* const evaluator_;
  const TrainingState* const state_;
  Reporter* const reporter_;
  std::vector<float> spare_;  // the memory of a generator that is scored
  int waiting_ = 0;
  Pending<bool> over_;
  std::vector<RoundScore> came_;
  uint64_t skipped_ = 0;
  Throttle skips_;
  // Callbacks hold it weakly.
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>();
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_PEER_EVALUATION_H_
