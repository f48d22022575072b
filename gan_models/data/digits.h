// scikit-learn's digits: 1,797 images of 8x8 handwritten digits (Alpaydin and
// Kaynak, UCI 1998), from the text that deploy/digits.sh fetches.
//
// This header knows nothing of networks or shards.

#ifndef GOSSAMER_GAN_MODELS_DATA_DIGITS_H_
#define GOSSAMER_GAN_MODELS_DATA_DIGITS_H_

#include <string>

#include "absl/status/statusor.h"
#include "algorithms/privacy/vote_message.h"

namespace gossamer {

inline constexpr int kDigitPixels = 64;
inline constexpr int kDigitClasses = 10;

struct Digits {
  ImageBatch train;
  ImageBatch held_out;  // every fifth, the same in every run
};

// Reads lines "v1,...,v64,class", values 0 to 16.  kNotFound says how to get
// the file; kDataLoss names the line that is not like that.
absl::StatusOr<Digits> ReadDigits(const std::string& path);

}  // namespace gossamer

#endif  // GOSSAMER_GAN_MODELS_DATA_DIGITS_H_
