// The part of the state that members keep in common beside x, and mixing moves
// with it: duals, whose sum is zero, and tracked gradients, whose sum is that
// of the gradients.
//
// Both ends of an edge have been given opposite parts of it, and what one loses
// with an incarnation the other must give back: else the sum of what is left
// pulls the solution away for ever.  Knows nothing of views or rounds.

#ifndef GOSSAMER_RUNTIME_PEER_COMMON_STATE_H_
#define GOSSAMER_RUNTIME_PEER_COMMON_STATE_H_

#include <map>
#include <span>
#include <vector>

#include "algorithms/base/ids.h"
#include "algorithms/base/parameter_layout.h"
#include "algorithms/edge/codec_side.h"
#include "algorithms/edge/edge.h"
#include "algorithms/optim/local_step.h"

namespace gossamer {

class CommonState final : public CorrectionObserver {
 public:
  // `step` outlives it.
  explicit CommonState(LocalStep* step) : step_(step) {}

  // The parameters whose corrections it takes part in; empty for methods that
  // keep nothing in common.
  Extent extent() const { return step_->common(); }

  void OnCorrection(ExchangeId id, const EdgeMessage& mine,
                    const EdgeMessage& theirs, float c,
                    std::span<const float> difference) override {
    step_->OnCorrection(c, difference);
  }
  // While a step is under way, on another thread, this waits for its end.
  void OnLost(std::span<const float> sum) override;
  void BeginStep() { stepping_ = true; }
  void EndStep();
  // After a checkpoint, of the edges that it has records of: gives back what
  // others had brought.
  void Restored(const SavedEdges& edges);

 private:
  LocalStep* const step_;
  bool stepping_ = false;
  std::vector<float> lost_;  // meanwhile; empty: nothing
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_PEER_COMMON_STATE_H_
