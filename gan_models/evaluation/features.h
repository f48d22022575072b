// Features that scores compare instead of pixels.
//
// This header knows nothing of generators.

#ifndef GOSSAMER_GAN_MODELS_EVALUATION_FEATURES_H_
#define GOSSAMER_GAN_MODELS_EVALUATION_FEATURES_H_

#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gan_models/evaluation/metrics.h"

namespace gossamer {

// The features of some pictures, one row each.
struct Extracted {
  Features features;
  Features logits;  // dimension 0 if the extractor gives none
};

// A fixed function from pictures to features.  It has no state that a call
// changes, so scores of different times compare.
class FeatureExtractor {
 public:
  virtual ~FeatureExtractor() = default;
  // Appends the rows of `images`, which are [N, 3, side, side] in [-1, 1]: a
  // score of fifty thousand pictures never has all of them in memory.
  virtual absl::Status Extract(std::span<const float> images, int side,
                               Extracted& to) const = 0;
};

// The 64 means over an image of two layers of fixed random 4x4 stride-2
// convolutions (3 -> 32 -> 64) and ReLUs.  No training, no download; good
// enough to see a run improve, not to compare with published scores, so scores
// on it carry the prefix "proxy-".
std::unique_ptr<FeatureExtractor> RandomConvolutionFeatures();

// A TorchScript file of the user's: a function of images [N, 3, S, S], floats
// in [0, 255], to features [N, F] or a pair (features, logits).  Images are
// resized bilinearly to `size` (0: given as they are).
// kNotFound, kInvalidArgument (not TorchScript).
absl::StatusOr<std::unique_ptr<FeatureExtractor>> LoadTorchScriptFeatures(
    const std::string& path, int size);

}  // namespace gossamer

#endif  // GOSSAMER_GAN_MODELS_EVALUATION_FEATURES_H_
