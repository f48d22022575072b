// AdaComp: of every bin what stands out, in ternary, with what is left in the
// residue; how much is sent adapts to how active a layer is.
//
//   G = r + g;   H = G + g;   g_max of each bin = max |G|
//   sent are the places where |H| ≥ g_max, as sgn(G) · scale
//   scale = the mean of the layer's g_max;   r ← G − what is sent
//
// Source: Chen et al., AAAI 2018, algorithm 2.  Beyond it: a bin whose largest
// is far below the mean is sent with the scale halved up to three times, or not
// at all, as noise of the layer's scale would drown it; and of a bin at most
// `most` are sent, the largest.  Knows nothing of messages or time.

#ifndef GOSSAMER_ALGORITHMS_COMPRESS_ADACOMP_H_
#define GOSSAMER_ALGORITHMS_COMPRESS_ADACOMP_H_

#include <memory>

#include "absl/status/statusor.h"
#include "algorithms/compress/gradient_compressor.h"
#include "algorithms/compress/method_options.h"

namespace gossamer {

// `adacomp`: bin, values of a bin in dense layers, and conv, in those of four
// dimensions or more, both 2 to 32768; most, 1 to 63; flat, 1: bins of `bin` go
// over the vector as a whole, nothing travels besides.
absl::StatusOr<std::unique_ptr<GradientCompressor>> MakeAdaComp(
    const MethodName& name, const ParameterLayout& layout,
    const Kernels& kernels);

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_COMPRESS_ADACOMP_H_
