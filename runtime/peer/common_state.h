// State that corrections change along with x: duals, whose sum over peers is
// zero, and tracked gradients, whose sum is that of the gradients.
//
// The two ends of an edge add opposite amounts.  When one end loses its part
// with an incarnation, the other takes its own back, or the remaining sum
// biases the solution.  This header knows nothing of views or rounds.

#ifndef GOSSAMER_RUNTIME_PEER_COMMON_STATE_H_
#define GOSSAMER_RUNTIME_PEER_COMMON_STATE_H_

#include "algorithms/base/parameter_layout.h"
#include "algorithms/edge/edge.h"
#include "algorithms/edge/edge_codec_state.h"
#include "algorithms/game/mixing_hooks.h"
#include "algorithms/kernels/device_queue.h"

namespace gossamer {

class CommonState final : public CorrectionObserver {
 public:
  // `hooks`, of vectors on the queue's device, outlive it; null for methods
  // that keep nothing in common.
  explicit CommonState(MixingHooks* hooks,
                       const DeviceQueue& queue = DeviceQueue::Host())
      : hooks_(hooks), queue_(queue) {}

  // The parameters whose corrections concern it; empty: none.
  Extent extent() const {
    return hooks_ == nullptr ? Extent{} : hooks_->extent();
  }

  void OnCorrection(const Correction& correction) override {
    hooks_->OnCorrection(correction.c, correction.difference);
  }
  // While a step is under way, on another thread, this waits for its end.
  void OnEdgeEnd(DeviceSpan<const float> sum) override;
  void BeginStep() { stepping_ = true; }
  void EndStep();
  void OnNewIncarnation() {
    if (hooks_ != nullptr) hooks_->OnNewIncarnation();
  }
  // After a checkpoint, with the edges that it has records of: what other edges
  // had added is taken back.
  void Restored(const SavedEdges& edges);

 private:
  MixingHooks* const hooks_;
  const DeviceQueue queue_;
  bool stepping_ = false;
  DeviceVector<float> ended_;  // sums of edges that ended meanwhile, or empty
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_PEER_COMMON_STATE_H_
