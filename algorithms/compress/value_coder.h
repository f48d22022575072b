// An autoencoder of values, as the gradient methods see it: floats in, fewer
// floats out, and back.
//
// The learned parameters lie in one flat vector that the coder's user changes;
// the coder only says in which direction.  Decoding is linear, so the mean of
// codes is decoded to the mean of what each is decoded to.  This header knows
// nothing of what values mean, of ranks or of steps.

#ifndef GOSSAMER_ALGORITHMS_COMPRESS_VALUE_CODER_H_
#define GOSSAMER_ALGORITHMS_COMPRESS_VALUE_CODER_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace gossamer {

class ValueCoder {
 public:
  // Codes are so many floats for each so many values, or part of them.
  static constexpr size_t kBlock = 16;

  virtual ~ValueCoder() = default;
  // Floats of a code.
  virtual size_t code_size() const = 0;
  // First values are the same everywhere.
  virtual std::span<float> parameters() = 0;

  // Writes the gradient of |v − Decode(Encode(v))|² to the parameters.  Errors:
  // those of the library that computes it; `gradient` is then undefined.  May
  // write what is not finite.
  virtual absl::Status Gradient(std::span<const float> values,
                                std::span<float> gradient) = 0;
  // Errors and infinities as above.  Its bits may differ between machines.
  virtual absl::Status Encode(std::span<const float> values,
                              std::span<float> code) = 0;
  // The same bits on all machines.
  virtual void Decode(std::span<const float> code,
                      std::span<float> values) const = 0;
};

// A coder of `values` values, of `code` floats (1 to 8) for each kBlock.
using ValueCoderMaker =
    std::function<absl::StatusOr<std::unique_ptr<ValueCoder>>(size_t values,
                                                              size_t code)>;

}  // namespace gossamer

#endif  // GOSSAMER_ALGORITHMS_COMPRESS_VALUE_CODER_H_
