// The hooks of a method that keeps something beside the parameters which mixing
// changes with them: a dual variable, or tracked gradients.
//
// Both ends of an edge add opposite parts to it, so its sum over all peers
// stays what it was.  This header knows nothing of edges, codecs or rounds.

#ifndef GOSSAMER_ALGORITHMS_GAME_MIXING_HOOKS_H_
#define GOSSAMER_ALGORITHMS_GAME_MIXING_HOOKS_H_

#include <vector>

#include "algorithms/base/parameter_layout.h"
#include "algorithms/kernels/device_span.h"

namespace gossamer {

// Callbacks around the corrections of one peer, on the thread of its round
// loop.  A class whose state must follow corrections implements them once, for
// all edges together.
class MixingHooks {
 public:
  virtual ~MixingHooks() = default;
  // The parameters whose corrections concern it; each edge keeps the sum of
  // those that it has added.
  virtual Extent extent() const = 0;
  // True if every step must be followed by its own mixing, of all parameters
  // and before the next step.
  virtual bool mixes_every_step() const { return false; }
  // Mixing has added c times `difference` to all parameters.
  virtual void OnCorrection(float c, DeviceSpan<const float> difference) {}
  // An edge has ended that had added `sum` to extent(); the opposite at its
  // other end is lost, so it is taken back.
  virtual void OnEdgeEnd(DeviceSpan<const float> sum) = 0;
  // An incarnation of the peer begins between two steps, with whatever
  // parameters; its edges have added nothing.
  virtual void OnNewIncarnation() = 0;
  // The sum of all that edges have added to extent() and not taken back, up to
  // rounding; a copy of the host's.
  virtual std::vector<float> Added() const = 0;
};

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_GAME_MIXING_HOOKS_H_
