// Dense gradients, all of them as floats: for ever (`dense-f32`), or in the
// first steps of a run, the warm-up of a method that leaves something out.
//
// While networks change fastest, what is sent late or coarsely leads them
// astray.  The number of a step says which of the two it is, so a resumed run
// needs no state beside the method's.  This header knows nothing of that
// method.

#ifndef GOSSAMER_ALGORITHMS_COMPRESS_DENSE_GRADIENTS_H_
#define GOSSAMER_ALGORITHMS_COMPRESS_DENSE_GRADIENTS_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "algorithms/compress/gradient_compressor.h"

namespace gossamer {

// The method that sends gradients of `n` values dense.
std::unique_ptr<GradientCompressor> MakeDense(size_t n);

// Every step has dense gradients: nothing in the layout is large enough to be
// left out.
inline constexpr uint64_t kAlwaysDense = ~uint64_t{0};

// Steps before `steps` have dense gradients of `n` values, those after are
// `method`'s, which begins as it was made.
std::unique_ptr<GradientCompressor> WithDenseWarmup(
    uint64_t steps, size_t n, std::unique_ptr<GradientCompressor> method);

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_COMPRESS_DENSE_GRADIENTS_H_
