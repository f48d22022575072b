// Brings a step's dual variable what mixing adds to the parameters.
//
// Knows nothing of rounds or edges.

#ifndef GOSSAMER_RUNTIME_PEER_DUAL_OBSERVER_H_
#define GOSSAMER_RUNTIME_PEER_DUAL_OBSERVER_H_

#include <span>

#include "algorithms/gossip/codec_side.h"
#include "algorithms/optim/local_step.h"

namespace gossamer {

class DualObserver final : public CorrectionObserver {
 public:
  // `step` outlives it.
  explicit DualObserver(LocalStep* step) : step_(step) {}
  void OnCorrection(ExchangeId id, const EdgeMessage& mine,
                    const EdgeMessage& theirs, float c,
                    std::span<const float> difference) override {
    step_->OnCorrection(c, difference);
  }

 private:
  LocalStep* const step_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_PEER_DUAL_OBSERVER_H_
