// Looks at a generator: pictures, and the distance to held-out data.
//
// Has a generator of its own, so the one that trains never notices.  Knows
// nothing of discriminators or training.

#ifndef GOSSAMER_GAN_MODELS_EVALUATION_GAN_EVALUATOR_H_
#define GOSSAMER_GAN_MODELS_EVALUATION_GAN_EVALUATOR_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "algorithms/game/game.h"
#include "gan_models/data/dataset.h"
#include "gan_models/evaluation/features.h"
#include "gan_models/evaluation/metrics.h"
#include "gan_models/networks/network.h"

namespace gossamer {

// The evaluator of generators of one model.  It copies the parameters that it
// is given into a generator of its own, and keeps the features of the held-out
// examples.
class GanEvaluator : public Evaluator {
 public:
  // `samples` generated examples per score, all held-out ones.  Images score
  // "proxy-fid" (see RandomConvolutionFeatures), points of the plane
  // "energy-distance".  Without `data` there are samples but no scores.
  // kInvalidArgument: the network's, or data of another shape than it makes.
  static absl::StatusOr<std::unique_ptr<GanEvaluator>> Create(
      const NetworkSpec& network, std::shared_ptr<const Dataset> data,
      int samples, int threads);

  std::string_view score_name() const override;
  std::string score_basis() const override;
  absl::StatusOr<double> Score(std::span<const float> generator,
                               RngKey key) override;
  absl::Status WriteSamples(std::span<const float> generator, RngKey key,
                            const std::string& path) override;

  // Number of parameters that `generator` arguments have.
  size_t generator_size() const { return parameters_.size(); }
  bool images() const { return example_shape_.size() == 3; }
  // `count` examples, one after the other.  BatchNorm's statistics are
  // estimated anew for these parameters first: running ones belong to the
  // parameters of the steps they were gathered over, not to an average.
  absl::StatusOr<std::vector<float>> Generate(std::span<const float> generator,
                                              RngKey key, int count);
  // The held-out examples, the first `at_most` of them.  kFailedPrecondition
  // if there are none.
  absl::StatusOr<std::vector<float>> HeldOut(int64_t at_most) const;

 private:
  GanEvaluator(std::unique_ptr<Network> generator,
               std::vector<int64_t> example_shape,
               std::shared_ptr<const Dataset> data, int latent, int samples,
               int threads);
  absl::Status Adopt(std::span<const float> generator, RngKey key);
  absl::StatusOr<Features> FeaturesOf(std::span<const float> examples) const;
  size_t example_size() const;

  const std::unique_ptr<Network> generator_;
  const std::vector<int64_t> example_shape_;
  const std::shared_ptr<const Dataset> data_;  // may be null
  const int latent_, samples_, threads_;
  const std::unique_ptr<FeatureExtractor> extractor_;
  std::vector<float> parameters_, statistics_;
  Features real_;  // of the held-out examples, once a score has needed them
};

}  // namespace gossamer

#endif  // GOSSAMER_GAN_MODELS_EVALUATION_GAN_EVALUATOR_H_
