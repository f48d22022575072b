// Scores and pictures of the generator, at the rounds that are due.
//
// Knows nothing of how a game is scored.

#ifndef GOSSAMER_RUNTIME_PEER_EVALUATION_H_
#define GOSSAMER_RUNTIME_PEER_EVALUATION_H_

#include "algorithms/game/game.h"
#include "runtime/base/event_loop.h"
#include "runtime/base/task.h"
#include "runtime/peer/peer_spec.h"
#include "runtime/peer/reporter.h"
#include "runtime/peer/training_state.h"

namespace gossamer {

class Evaluation {
 public:
  // All outlive it; `evaluator` may be null.
  Evaluation(const PeerSpec& spec, ComputeEngine* compute, Evaluator* evaluator,
             const TrainingState* state, Reporter* reporter)
      : spec_(spec),
        compute_(compute),
        evaluator_(evaluator),
        state_(state),
        reporter_(reporter) {}

  // After a round, the `last` or another; its score goes into the round's
  // metrics.  False: not due.
  Task<bool> Run(bool last);

 private:
  bool Due(bool last) const;

  const PeerSpec& spec_;
  ComputeEngine* const compute_;
  Evaluator* const evaluator_;
  const TrainingState* const state_;
  Reporter* const reporter_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_PEER_EVALUATION_H_
