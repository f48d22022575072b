// The step of codes without scales, which shrinks from round to round by
// itself.
//
// This header knows nothing of what is coded with it.

#ifndef GOSSAMER_ALGORITHMS_COMPRESS_SHRINKING_STEP_H_
#define GOSSAMER_ALGORITHMS_COMPRESS_SHRINKING_STEP_H_

#include <cstdint>

namespace gossamer {

// The step of kUnit in a round, the same on every machine: Dyna-COLD's s_k / 2
// with s_k = max(scale · decay^round, floor), as a bf16.  The floor stays above
// the resolution of floats: a step that no longer moves x̂ would leave D where
// it is, and the dual would follow it for ever.
struct ShrinkingStep {
  double scale = 1;
  double decay = 0.99;
  double floor = 1e-5;
  float StepOf(uint64_t round) const;
};

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_COMPRESS_SHRINKING_STEP_H_
