// Looks at a generator: pictures, and the distance to held-out data.
//
// Has a generator of its own, so the one that trains never notices.  This
// header knows nothing of discriminators or training.

#ifndef GOSSAMER_GAN_MODELS_EVALUATION_GAN_EVALUATOR_H_
#define GOSSAMER_GAN_MODELS_EVALUATION_GAN_EVALUATOR_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
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
  // "energy-distance".  Without `data` there are samples but no scores.  A grid
  // of samples has a class in each row if the model is conditional.
  // kInvalidArgument: the network cannot be made, or the data have another
  // shape than it generates.
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
  bool conditional() const { return generator_->conditional(); }
  // Pixels of an image's side; 2 for points.
  int side() const { return static_cast<int>(example_shape_.back()); }
  // Takes some whole examples, until the call returns.
  using Sink = absl::FunctionRef<absl::Status(std::span<const float>)>;
  // Gives `count` examples to `sink`, at most 128 at once: a score's do not
  // fit into memory.  BatchNorm's statistics and spectral norms are estimated
  // anew for these parameters first: running ones belong to the parameters of
  // the steps they were gathered over, not to an average.  Classes of a
  // conditional generator have the held-out examples' shares, or equal ones
  // without data.
  absl::Status Generate(std::span<const float> generator, RngKey key, int count,
                        Sink sink);
  // The same, one example for each label; of a conditional generator.
  absl::Status GenerateOf(std::span<const int64_t> labels,
                          std::span<const float> generator, RngKey key,
                          Sink sink);
  // WriteSamples() of one class; the labels that a model knows are below
  // `classes`.  kInvalidArgument: another label, or an unconditional model.
  absl::Status WriteSamplesOf(int64_t label, std::span<const float> generator,
                              RngKey key, const std::string& path);
  // Gives the held-out examples, the first `at_most` of them, to `sink` in the
  // same way.  kFailedPrecondition if there are none.
  absl::Status HeldOut(int64_t at_most, Sink sink) const;

 private:
  GanEvaluator(std::unique_ptr<Network> generator,
               std::vector<int64_t> example_shape,
               std::shared_ptr<const Dataset> data, const NetworkSpec& network,
               int samples, int threads);
  absl::Status Adopt(std::span<const float> generator, RngKey key);
  // Labels of `count` examples for a score.
  std::vector<int64_t> LabelsForScore(int count) const;
  absl::Status WriteGrid(std::span<const float> images,
                         const std::string& path) const;
  // Appends what a score compares of the examples.
  absl::Status Extract(std::span<const float> examples, Extracted& to) const;
  size_t example_size() const;

  const std::unique_ptr<Network> generator_;
  const std::vector<int64_t> example_shape_;
  const std::shared_ptr<const Dataset> data_;  // may be null
  const int latent_, classes_, samples_, threads_;
  const std::unique_ptr<FeatureExtractor> extractor_;
  std::vector<float> parameters_, statistics_;
  Features real_;  // of the held-out examples, once a score has needed them
};

}  // namespace gossamer

#endif  // GOSSAMER_GAN_MODELS_EVALUATION_GAN_EVALUATOR_H_
