// QSGD (Alistarh et al., NIPS 2017): values rounded at random to a few levels
// of a bucket's norm, without bias; of edges and of gradients by one quantizer.
//
// For gradients nothing is remembered: rounding is right on average, and errors
// of ranks average out, since each draws for itself.  Both ends of an edge draw
// alike.  Knows nothing of how levels are coded.

#ifndef GOSSAMER_ALGORITHMS_COMPRESS_QSGD_H_
#define GOSSAMER_ALGORITHMS_COMPRESS_QSGD_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "algorithms/compress/blocks.h"
#include "algorithms/compress/compressor.h"
#include "algorithms/compress/options.h"
#include "algorithms/kernels/coding.h"

namespace gossamer {

struct QsgdOptions {
  uint8_t levels = 7;     // s: 1, 7 or 127, which fill 2, 4 or 8 bits
  uint16_t bucket = 512;  // values per scale
  // The scale is this norm of a bucket, over s.
  Coding::Norm norm = Coding::kMax;
  Coding::Kind raw = Coding::kBf16;  // of pieces that are not quantized
  // kNone, or Elias's variable-length codes on the wire.
  Packing coding = Packing::kNone;
  BlockOptions blocks = {};
};
std::vector<Option> FieldsOf(QsgdOptions& options);
// kInvalidArgument: two packings at once, or a value that an option may not
// have.
absl::Status CheckOptions(const QsgdOptions& options);

// The step size of consensus at which the quantizer's variance is borne:
// 1/(1 + ω), ω the largest E‖Q(v) − v‖² / ‖v‖² of any bucket of values v.
float GammaOf(const QsgdOptions& options);

// `text` is what name() returns.
MadeCodec MakeQsgd(std::string_view text, const QsgdOptions& options,
                   const ParameterLayout& layout, const Kernels& kernels);
// Pieces that are not quantized travel as floats: bf16 rounds to nearest, with
// a bias.
MadeGradients MakeQsgdGradients(QsgdOptions options,
                                const ParameterLayout& layout,
                                const Kernels& kernels);

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_COMPRESS_QSGD_H_
