// Rules that follow the gradient itself: plain, optimistic, and DPOSG's.
//
// This header knows nothing of names, specifications or which player it moves.

#ifndef GOSSAMER_ALGORITHMS_OPTIM_GRADIENT_DESCENT_H_
#define GOSSAMER_ALGORITHMS_OPTIM_GRADIENT_DESCENT_H_

#include <cstddef>
#include <cstdint>

#include "algorithms/kernels/device_queue.h"
#include "algorithms/optim/optimizer.h"

namespace gossamer {

// x ← x − η g.  Diverges on bilinear games; the baseline that shows why the
// others are optimistic.
class Sgd final : public Optimizer {
 public:
  Sgd(double learning_rate, const DeviceQueue& queue);

  void Step(DeviceSpan<float> x, DeviceSpan<const float> gradient,
            double scale) override;
  void VisitState(StateVisitor& visitor) override {}

 private:
  const double learning_rate_;
  const DeviceQueue queue_;
};

// x ← x − 2η g_t + η g_{t−1}, g_0 = 0 (Daskalakis, Ilyas, Syrgkanis, Zeng, ICLR
// 2018, section 2).
class Ogda final : public Optimizer {
 public:
  Ogda(double learning_rate, size_t size, const DeviceQueue& queue);

  void Step(DeviceSpan<float> x, DeviceSpan<const float> gradient,
            double scale) override;
  void VisitState(StateVisitor& visitor) override;

 private:
  const double learning_rate_;
  const DeviceQueue queue_;
  DeviceVector<float> previous_;  // g_{t−1}
};

// The optimistic stochastic gradient step of DPOSG (Liu et al., NeurIPS 2020),
// whose mixed anchor y is never stored: Extrapolate makes z = y − η ĝ_{t−1} of
// it in place, and Step, given ĝ_t at z, adds η ĝ_{t−1} − η ĝ_t, which leaves
// y − η ĝ_t.  Step takes back what Extrapolate took, also when η has changed in
// between; a second Extrapolate after a step that was skipped (its gradient was
// not finite) moves nothing.  Without mixing, z follows OGDA.
class Osg final : public Optimizer {
 public:
  Osg(double learning_rate, size_t size, const DeviceQueue& queue);

  void Extrapolate(DeviceSpan<float> x) override;
  void Step(DeviceSpan<float> x, DeviceSpan<const float> gradient,
            double scale) override;
  void VisitState(StateVisitor& visitor) override;

 private:
  const double learning_rate_;
  const DeviceQueue queue_;
  DeviceVector<float> previous_;  // ĝ_{t−1}
  float previous_rate_ = 0;       // the η of step t − 1
  uint64_t extrapolated_ = 0;     // 1 between Extrapolate and Step
};

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_OPTIM_GRADIENT_DESCENT_H_
