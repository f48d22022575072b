// The primal-dual rule of COLD: a gradient step that a dual variable corrects
// for what sets this peer's game apart from the others'.
//
// Knows nothing of codecs, edges or rounds.

#ifndef GOSSAMER_ALGORITHMS_OPTIM_PRIMAL_DUAL_H_
#define GOSSAMER_ALGORITHMS_OPTIM_PRIMAL_DUAL_H_

#include <cstddef>
#include <span>
#include <vector>

#include "algorithms/kernels/kernels.h"
#include "algorithms/optim/optimizer.h"

namespace gossamer {

// COLD (Zhang, You, Xie, IEEE TAC 2023, algorithm 1; LEAD of Liu et al., ICLR
// 2021, is its twin): u = x − η g − y is exchanged, y ← y + ψ (x̂ − Σ w x̂_j),
// x ← x − η g − y.  On edges the last two are one thing: what mixing adds to u
// is exactly what it takes from y.  So a step is u = x − η(g + λ) with λ = y/η,
// mixing follows with γ = ψ, and each of its corrections c·D also goes to the
// dual: λ ← λ − (c/η) D.  At the fixed point all peers agree, λ is minus the
// own gradient, and a constant η leaves no error.
//
// Σ λ over the peers stays 0, as the mean of x stays where it is: c and D are
// opposite at the ends of an edge.  In floats it would not: near the solution D
// is below the last place of the larger of two duals, which lost it while the
// smaller one took it, round by round.  So λ has a second float.  In units of
// the gradient, so that a decaying learning rate leaves λ as right as it was.
class Cold final : public Optimizer, private MixingHooks {
 public:
  Cold(double learning_rate, size_t size, const Kernels& kernels);

  void Step(std::span<float> x, std::span<const float> gradient,
            double scale) override;
  MixingHooks* hooks() override { return this; }
  void VisitState(StateVisitor& visitor) override;

 private:
  Extent extent() const override { return {0, dual_.size()}; }
  bool in_turn() const override { return true; }
  void OnCorrection(float c, std::span<const float> difference) override;
  void OnEdgeEnd(std::span<const float> sum) override;
  void OnNewIncarnation() override;
  std::vector<float> Added() const override;

  const double learning_rate_;
  const Kernels& kernels_;
  std::vector<float> dual_, rest_;  // λ, and what it has no room for
};

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_OPTIM_PRIMAL_DUAL_H_
