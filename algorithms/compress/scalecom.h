// The options of ScaleCom: one value of every chunk, chosen by one rank for
// all.
//
// This header knows nothing of how the leader's message travels.

#ifndef GOSSAMER_ALGORITHMS_COMPRESS_SCALECOM_H_
#define GOSSAMER_ALGORITHMS_COMPRESS_SCALECOM_H_

#include <vector>

#include "algorithms/compress/options.h"
#include "algorithms/compress/sparse_gradients.h"

namespace gossamer {

struct ScaleComOptions {
  SparseOptions sparse = {};
  // The leader chooses by |m| alone, which it knows before the step's gradient,
  // so that its message has the time of a gradient to arrive.
  bool ahead = false;
};
std::vector<Option> FieldsOf(ScaleComOptions& options);

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_COMPRESS_SCALECOM_H_
