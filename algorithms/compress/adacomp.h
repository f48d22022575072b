// AdaComp: of every bin what stands out, in ternary, with what is left in the
// residual; how much is sent adapts to how active a layer is.
//
//   G = r + g;   H = G + g;   g_max of each bin = max |G|
//   sent are the indices where |H| ≥ g_max, as sgn(G) · scale
//   scale = the mean of the layer's g_max;   r ← G − what is sent
//
// Source: Chen et al., AAAI 2018, algorithm 2.  Beyond it: a bin whose largest
// is far below the mean is sent with the scale halved up to three times, or not
// at all, as noise of the layer's scale would drown it; and of a bin at most
// `most` are sent, the largest.  This header knows nothing of messages or time.

#ifndef GOSSAMER_ALGORITHMS_COMPRESS_ADACOMP_H_
#define GOSSAMER_ALGORITHMS_COMPRESS_ADACOMP_H_

#include <cstddef>
#include <vector>

#include "algorithms/compress/options.h"

namespace gossamer {

struct AdaCompOptions {
  size_t bin = 500;  // values of a bin in dense layers, 2 to 32768
  size_t conv = 50;  // and in those of four dimensions or more
  size_t most = 32;  // sent of a bin at most, 1 to 63
  // Bins of `bin` go over the vector as a whole, nothing travels besides.
  bool flat = false;
};
std::vector<Option> FieldsOf(AdaCompOptions& options);

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_COMPRESS_ADACOMP_H_
