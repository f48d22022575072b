// The autoencoder of LGC: a few convolutions of one dimension over gradient
// values, and one transposed one back.
//
// This header includes no torch, and knows nothing of where the values come
// from.

#ifndef GOSSAMER_GAN_MODELS_LEARNED_CODER_H_
#define GOSSAMER_GAN_MODELS_LEARNED_CODER_H_

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "algorithms/compress/value_coder.h"

namespace gossamer {

// A coder of `values` values, `code` floats (1 to 8) for each 16; one thread of
// libtorch.  kUnimplemented in a build without it.
absl::StatusOr<std::unique_ptr<ValueCoder>> MakeLearnedCoder(size_t values,
                                                             size_t code);

}  // namespace gossamer

#endif  // GOSSAMER_GAN_MODELS_LEARNED_CODER_H_
