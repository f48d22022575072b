// Top-k of gradients with memory: of every chunk one value is sent, the rest
// stays in the residual m.
//
//   p = m + g;   q = p on the chosen places;   m ← (1 − β)m + β(p − q)
//
// β = 1 is error feedback, less filters it.  Two ways to choose: every rank for
// itself (`top-k`), so that payloads go to all; or one rank for all
// (`scalecom`: CLT-k, the leader is step mod M), so that values at the same
// places are summed by any all-reduce, and compressing commutes with averaging.
// Source: Chen et al., ScaleCom, NeurIPS 2020, algorithm 1.  Knows nothing of
// messages or time.

#ifndef GOSSAMER_ALGORITHMS_COMPRESS_SPARSE_GRADIENTS_H_
#define GOSSAMER_ALGORITHMS_COMPRESS_SPARSE_GRADIENTS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "algorithms/compress/gradient_compressor.h"
#include "algorithms/compress/method_options.h"

namespace gossamer {

// `top-k`: rate, 2 to 65536 values of which one is sent; beta, above 0 up to 1;
// flat, 1: chunks go over the vector as a whole, nothing travels besides.
absl::StatusOr<std::unique_ptr<GradientCompressor>> MakeTopK(
    const MethodName& name, const ParameterLayout& layout,
    const Kernels& kernels);
// `scalecom`: the same, and ahead, 1: the leader chooses by |m| alone, which it
// knows before the step's gradient, so that its word has the time of a gradient
// to arrive.
absl::StatusOr<std::unique_ptr<GradientCompressor>> MakeScaleCom(
    const MethodName& name, const ParameterLayout& layout,
    const Kernels& kernels);

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_COMPRESS_SPARSE_GRADIENTS_H_
