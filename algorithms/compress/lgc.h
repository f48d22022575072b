// LGC: of the values that one rank chose for all, what an autoencoder makes of
// them, which learns from them while they travel as they are.
//
//   p = m + g;  v = p on the leader's indices, in its units;  z = a·E(v)
//   mean of z by all-reduce;  q = D(mean z) in units;  m ← p − D(z) in units
//
// a is the least-squares factor, so that no coder, however stale, adds error:
// |v − a·D(E(v))| ≤ |v|.  D is linear, so what ranks subtract is what the mean
// has.  While the coder learns its gradient is averaged beside the values, and
// all ranks take the same step with the same bits.  Source: Abrahamyan et al.,
// Learned Gradient Compression for Distributed Deep Learning, IEEE TNNLS 2021;
// page lgc.md says what is ours.  This header knows
// nothing of networks or messages.

#ifndef GOSSAMER_ALGORITHMS_COMPRESS_LGC_H_
#define GOSSAMER_ALGORITHMS_COMPRESS_LGC_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "algorithms/compress/gradient_compressor.h"
#include "algorithms/compress/options.h"
#include "algorithms/compress/value_coder.h"

namespace gossamer {

struct LgcOptions {
  size_t rate = 100;  // values of which one is sent, 2 to 65536
  size_t code = 4;    // floats for 16 of these, 1 to 8
  // Steps in which the coder learns, and the largest error of codes, squared,
  // over the values' squares.
  uint64_t learn = 300;
  double worst = 0.75;
  // One of so many cycles of all leaders has values instead of codes and goes
  // on learning; 0: none.
  uint64_t again = 16;
  // Only the leader's code travels, with its message, and each rank says what
  // is new of it, one of `novel` values.
  bool server = false;
  size_t novel = 100;
  // Chunks go over the vector as a whole, nothing travels besides.
  bool flat = false;
};
std::vector<Option> FieldsOf(LgcOptions& options);

// `coders` may be empty if the layout is; else kFailedPrecondition.
absl::StatusOr<std::unique_ptr<GradientCompressor>> MakeLgc(
    const LgcOptions& options, const ParameterLayout& layout,
    const Kernels& kernels, const ValueCoderMaker& coders);

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_COMPRESS_LGC_H_
