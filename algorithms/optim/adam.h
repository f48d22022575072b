// Adam and its optimistic form.
//
// This header knows nothing of names, specifications or which player it moves.

#ifndef GOSSAMER_ALGORITHMS_OPTIM_ADAM_H_
#define GOSSAMER_ALGORITHMS_OPTIM_ADAM_H_

#include <cstddef>
#include <cstdint>

#include "algorithms/kernels/device_queue.h"
#include "algorithms/optim/optimizer.h"

namespace gossamer {

// x ← x − η p_t, with p_t the bias-corrected direction of Kingma, Ba (ICLR
// 2015), algorithm 1.
class Adam : public Optimizer {
 public:
  Adam(const OptimizerSpec& spec, size_t size, const DeviceQueue& queue);

  void Step(DeviceSpan<float> x, DeviceSpan<const float> gradient,
            double scale) override;
  void VisitState(StateVisitor& visitor) override;

 protected:
  // Counts the step.
  AdamStep NextStep(double scale);

  const DeviceQueue queue_;
  DeviceVector<float> m_, v_;

 private:
  const OptimizerSpec spec_;
  uint64_t steps_ = 0;
};

// x ← x − 2η p_t + η p_{t−1}, p_0 = 0, η that of this step in both terms
// (Daskalakis, Ilyas, Syrgkanis, Zeng, ICLR 2018, algorithm 1).
class OAdam final : public Adam {
 public:
  OAdam(const OptimizerSpec& spec, size_t size, const DeviceQueue& queue);

  void Step(DeviceSpan<float> x, DeviceSpan<const float> gradient,
            double scale) override;
  void VisitState(StateVisitor& visitor) override;

 private:
  DeviceVector<float> previous_;  // p_{t−1}
};

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_OPTIM_ADAM_H_
