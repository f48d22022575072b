// A linear autoencoder of blocks, its gradient by hand: LGC where there is no
// libtorch, in simulations and tests.
//
// This header knows nothing of where values come from.  For training take that
// of gan_models, whose encoder is not linear.

#ifndef GOSSAMER_ALGORITHMS_COMPRESS_LINEAR_CODER_H_
#define GOSSAMER_ALGORITHMS_COMPRESS_LINEAR_CODER_H_

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "algorithms/compress/value_coder.h"

namespace gossamer {

// A ValueCoderMaker.  As many weights to encode as to decode, in this order;
// at first both are the slowest cosines of a block, which keep what is alike
// in it.
absl::StatusOr<std::unique_ptr<ValueCoder>> MakeLinearCoder(size_t values,
                                                            size_t code);

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_COMPRESS_LINEAR_CODER_H_
