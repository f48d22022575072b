// Adam and its optimistic form.
//
// Knows nothing of names, specifications or which player it moves.

#ifndef GOSSAMER_ALGORITHMS_OPTIM_ADAM_H_
#define GOSSAMER_ALGORITHMS_OPTIM_ADAM_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "algorithms/kernels/kernels.h"
#include "algorithms/optim/optimizer.h"

namespace gossamer {

// x ← x − η p_t, with p_t the bias-corrected direction of Kingma, Ba (ICLR
// 2015), algorithm 1.
class Adam : public Optimizer {
 public:
  Adam(const OptimizerSpec& spec, size_t size, const Kernels& kernels);

  void Step(std::span<float> x, std::span<const float> gradient,
            double scale) override;
  void VisitState(StateVisitor& visitor) override;

 protected:
  // Counts the step.
  AdamStep NextStep(double scale);

  const Kernels& kernels_;
  std::vector<float> m_, v_;

 private:
  const OptimizerSpec spec_;
  uint64_t steps_ = 0;
};

// x ← x − 2η p_t + η p_{t−1}, p_0 = 0, η that of this step in both terms
// (Daskalakis, Ilyas, Syrgkanis, Zeng, ICLR 2018, algorithm 1).
class OAdam final : public Adam {
 public:
  OAdam(const OptimizerSpec& spec, size_t size, const Kernels& kernels);

  void Step(std::span<float> x, std::span<const float> gradient,
            double scale) override;
  void VisitState(StateVisitor& visitor) override;

 private:
  std::vector<float> previous_;  // p_{t−1}
};

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_OPTIM_ADAM_H_
