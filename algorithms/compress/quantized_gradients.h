// QSGD of gradients: every rank rounds its own at random, without bias, and
// sends it to all.
//
// Nothing is remembered: what rounding takes it gives back on average, and
// errors of ranks average out, since each draws for itself.  Source: Alistarh
// et al., NIPS 2017.  Knows nothing of how values are coded (the codec does).

#ifndef GOSSAMER_ALGORITHMS_COMPRESS_QUANTIZED_GRADIENTS_H_
#define GOSSAMER_ALGORITHMS_COMPRESS_QUANTIZED_GRADIENTS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "algorithms/compress/gradient_compressor.h"
#include "algorithms/compress/method_options.h"

namespace gossamer {

// `qsgd`, with the options that the codec of this name has for gradients.
absl::StatusOr<std::unique_ptr<GradientCompressor>> MakeQuantized(
    const MethodName& name, const ParameterLayout& layout,
    const Kernels& kernels);

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_COMPRESS_QUANTIZED_GRADIENTS_H_
