#include "algorithms/compress/shrinking_step.h"

#include <algorithm>

#include "algorithms/kernels/values.h"

namespace gossamer {

float ShrinkingStep::StepOf(uint64_t round) const {
  // Multiplications only: a library's pow differs between machines.
  double power = 1;
  for (double factor = decay; round != 0; round >>= 1, factor *= factor) {
    if (round & 1) power *= factor;
  }
  return NearestScale(static_cast<float>(std::max(scale * power, floor) / 2),
                      1);
}

}  // namespace gossamer
