// The scalar table: what every kernel means, and the tails of the vectorized
// ones, which do whole vectors and blocks and leave the rest to it.
//
// Knows nothing of instruction sets.

#ifndef GOSSAMER_ALGORITHMS_KERNELS_REFERENCE_KERNELS_H_
#define GOSSAMER_ALGORITHMS_KERNELS_REFERENCE_KERNELS_H_

#include <array>
#include <cstddef>
#include <span>

#include "algorithms/kernels/kernels.h"

namespace gossamer {

const Kernels& ReferenceKernels();

// The partial sums of squared_norm.
inline constexpr size_t kNormLanes = 16;
using NormLanes = std::array<double, kNormLanes>;

// Adds the squares of `rest` (rest[0] belongs to lane 0), then the lanes.
double FinishSquaredNorm(NormLanes& lanes, std::span<const float> rest);

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_KERNELS_REFERENCE_KERNELS_H_
