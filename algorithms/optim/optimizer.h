// One player's update rule, as increments of its parameters.
//
// x changes by additions only, so that a correction that lands between two
// steps is never erased.  This header knows nothing of games, peers or mixing.

#ifndef GOSSAMER_ALGORITHMS_OPTIM_OPTIMIZER_H_
#define GOSSAMER_ALGORITHMS_OPTIM_OPTIMIZER_H_

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "algorithms/base/problems.h"
#include "algorithms/base/state.h"
#include "algorithms/game/mixing_hooks.h"
#include "algorithms/kernels/device_queue.h"

namespace gossamer {

class Optimizer;
struct OptimizerSpec;

// Makes a rule for a player of `size` parameters; the specification is in
// range.
using OptimizerMaker = std::unique_ptr<Optimizer> (*)(const OptimizerSpec& spec,
                                                      size_t size,
                                                      const DeviceQueue& queue);

// A rule by its name, with its numbers; a rule ignores those that it does not
// have.
struct OptimizerSpec {
  std::string name = "oadam";  // sgd, ogda, osg, adam, oadam
  // A method's own rule; null: the one of that name.
  OptimizerMaker make = nullptr;
  double learning_rate = 1e-4;
  double beta1 = 0.5;
  double beta2 = 0.9;
  double epsilon = 1e-8;
};

// Returns what of a spec is out of range or of no known name, under
// "optimizer", "learning_rate", "beta1", "beta2" and "epsilon".
Problems ProblemsOf(const OptimizerSpec& spec);

class Optimizer {
 public:
  // For a player of `size` parameters on the queue's device.  kInvalidArgument:
  // the spec's problems.
  static absl::StatusOr<std::unique_ptr<Optimizer>> Create(
      const OptimizerSpec& spec, size_t size,
      const DeviceQueue& queue = DeviceQueue::Host());
  static std::vector<std::string_view> Names();

  virtual ~Optimizer() = default;
  // Moves x to the point at which the gradient of this step is to be taken, and
  // leaves the rule's own vectors as they are.  Only `osg` (DPOSG's
  // z = x − η ĝ_prev) moves it.
  virtual void Extrapolate(DeviceSpan<float> x) {}
  // One step with the gradient taken there.  `scale` multiplies the learning
  // rate (decay).
  virtual void Step(DeviceSpan<float> x, DeviceSpan<const float> gradient,
                    double scale) = 0;
  virtual void VisitState(StateVisitor& visitor) = 0;
  // Null unless mixing changes more than x, as a dual variable; of all of x.
  virtual MixingHooks* hooks() { return nullptr; }
};

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_OPTIM_OPTIMIZER_H_
