#include "gan_models/evaluation/gan_evaluator.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "algorithms/base/status_macros.h"
#include "gan_models/compute.h"
#include "gan_models/evaluation/picture.h"

namespace gossamer {
namespace {

constexpr int kBatch = 64;
constexpr int kPiece = 2 * kBatch;  // examples that are in memory at once
constexpr int kColumns = 8;         // of a grid

// A sink that keeps all, for pictures of few.
auto Into(std::vector<float>& all) {
  return [&all](std::span<const float> piece) {
    all.insert(all.end(), piece.begin(), piece.end());
    return absl::OkStatus();
  };
}

// The classes in turns, from example `first` on.
std::vector<int64_t> Balanced(int64_t first, int count, int classes) {
  std::vector<int64_t> labels(count);
  for (int i = 0; i < count; ++i) labels[i] = (first + i) % classes;
  return labels;
}

at::Tensor AsTensor(std::span<const int64_t> labels) {
  // from_blob takes a pointer to non-const; nothing writes to the labels.
  return at::from_blob(const_cast<int64_t*>(labels.data()),
                       {static_cast<int64_t>(labels.size())}, at::kLong);
}

at::Tensor Latents(RngKey key, int count, int latent,
                   std::vector<float>& storage) {
  storage.resize(static_cast<size_t>(count) * latent);
  key.FillGaussian(storage);
  return at::from_blob(storage.data(), {count, latent});
}

}  // namespace

absl::StatusOr<std::unique_ptr<GanEvaluator>> GanEvaluator::Create(
    const NetworkSpec& network, std::shared_ptr<const Dataset> data,
    int samples, int threads) {
  GOSSAMER_ASSIGN_OR_RETURN(auto generator,
                            Network::Create(Player::kGenerator, network));
  std::vector<int64_t> shape = ExampleShape(network);
  if (data != nullptr && !std::ranges::equal(data->example_shape(), shape)) {
    if (shape.size() == 3 && data->example_shape().size() == 3) {
      return absl::InvalidArgumentError(absl::StrCat(
          "game.gan.resolution is ", network.resolution,
          ", and the images of game.gan.data have ", data->example_shape()[1],
          " pixels a side: let them agree"));
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "game.gan.model ", network.model, " makes ",
        shape.size() == 3 ? "images" : "points of the plane",
        ", and the data are not: take mlp with gaussian-mixture, and up, "
        "wgan-gp-resnet, dcgan or sagan with images"));
  }
  return std::unique_ptr<GanEvaluator>(
      new GanEvaluator(std::move(generator), std::move(shape), std::move(data),
                       network, samples, threads));
}

GanEvaluator::GanEvaluator(std::unique_ptr<Network> generator,
                           std::vector<int64_t> example_shape,
                           std::shared_ptr<const Dataset> data,
                           const NetworkSpec& network, int samples, int threads)
    : generator_(std::move(generator)),
      example_shape_(std::move(example_shape)),
      data_(std::move(data)),
      latent_(network.latent),
      classes_(network.classes),
      samples_(samples),
      threads_(threads),
      extractor_(RandomConvolutionFeatures()),
      parameters_(generator_->tensors().parameter_count()),
      statistics_(generator_->tensors().statistic_count()) {
  generator_->tensors().Bind(parameters_, {}, statistics_);
}

size_t GanEvaluator::example_size() const {
  size_t size = 1;
  for (int64_t d : example_shape_) size *= d;
  return size;
}

std::string_view GanEvaluator::score_name() const {
  return images() ? "proxy-fid" : "energy-distance";
}

std::string GanEvaluator::score_basis() const {
  return absl::StrCat(samples_, " generated, ",
                      data_ == nullptr ? 0 : data_->held_out_size(),
                      " held-out");
}

absl::Status GanEvaluator::Adopt(std::span<const float> generator, RngKey key) {
  if (generator.size() != parameters_.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the generator has ", parameters_.size(), " parameters, ",
                     generator.size(),
                     " are given; are model, width and latent the run's?"));
  }
  // The copy goes into the evaluator's own vector, of which its generator's
  // tensors are views.
  std::ranges::copy(generator, parameters_.begin());
  generator_->tensors().InitializeStatistics(statistics_);
  if (!generator_->has_batch_norm()) return absl::OkStatus();
  std::vector<float> storage;
  if (generator_->has_spectral_norm()) {
    // As many steps leave a singular value short by a few parts in a thousand
    // (of random matrices, whose values lie close together).
    constexpr int kPowerIterations = 64, kFew = 2;
    const std::vector<int64_t> labels = Balanced(0, kFew, classes_);
    for (int i = 0; i < kPowerIterations; ++i) {
      generator_->Forward(
          Latents(key.Fold("power iteration"), kFew, latent_, storage),
          AsTensor(labels), {.keep_power_iteration = true});
    }
  }
  // A thousand examples: the statistics of an average of parameters belong to
  // no step of training, so they are estimated from these parameters alone.
  constexpr int kBatches = 16;
  for (int i = 0; i < kBatches; ++i) {
    // The classes alike, as the step draws them.
    const std::vector<int64_t> labels =
        Balanced(int64_t{kBatch} * i, kBatch, classes_);
    // Weight 1 / (i + 1): the plain mean of all batches so far.
    generator_->Forward(Latents(key.Fold(i), kBatch, latent_, storage),
                        AsTensor(labels), {.momentum = 1.0 / (i + 1)});
  }
  return absl::OkStatus();
}

std::vector<int64_t> GanEvaluator::LabelsForScore(int count) const {
  const int64_t held_out = data_ == nullptr ? 0 : data_->held_out_size();
  if (held_out == 0 || !conditional()) return Balanced(0, count, classes_);
  std::vector<int64_t> labels(count);
  for (int64_t i = 0; i < count; ++i) {
    // Evenly over the held-out examples, not drawn: one source of a score's
    // variance less.
    labels[i] = data_->held_out_label(i * held_out / count);
  }
  return labels;
}

absl::Status GanEvaluator::Generate(std::span<const float> generator,
                                    RngKey key, int count, Sink sink) {
  return GenerateOf(LabelsForScore(count), generator, key, sink);
}

absl::Status GanEvaluator::GenerateOf(std::span<const int64_t> labels,
                                      std::span<const float> generator,
                                      RngKey key, Sink sink) {
  UseThreads(threads_);
  const auto count = static_cast<int>(labels.size());
  return GuardTorch([&]() -> absl::Status {
    const c10::AutoGradMode record(false);
    // Statistics and samples have latents of their own, so that the number of
    // samples changes no statistic.
    GOSSAMER_RETURN_IF_ERROR(Adopt(generator, key.Fold("statistics")));
    std::vector<float> examples, storage;
    for (int begin = 0; begin < count; begin += kBatch) {
      const int n = std::min(kBatch, count - begin);
      const at::Tensor batch =
          generator_
              ->Forward(
                  Latents(key.Fold("latent").Fold(begin), n, latent_, storage),
                  AsTensor(labels.subspan(begin, n)),
                  {.source = Normalization::Source::kRunning})
              .contiguous();
      const float* const values = batch.const_data_ptr<float>();
      examples.insert(examples.end(), values, values + batch.numel());
      if (examples.size() < kPiece * example_size() && begin + n < count) {
        continue;
      }
      GOSSAMER_RETURN_IF_ERROR(sink(examples));
      examples.clear();
    }
    return absl::OkStatus();
  });
}

absl::Status GanEvaluator::HeldOut(int64_t at_most, Sink sink) const {
  const int64_t count =
      data_ == nullptr ? 0 : std::min(at_most, data_->held_out_size());
  if (count == 0) {
    return absl::FailedPreconditionError(
        "there are no held-out examples of these classes to compare with");
  }
  std::vector<float> examples;
  for (int64_t begin = 0; begin < count; begin += kPiece) {
    examples.resize(std::min<int64_t>(kPiece, count - begin) * example_size());
    data_->FillHeldOut(begin, examples);
    GOSSAMER_RETURN_IF_ERROR(sink(examples));
  }
  return absl::OkStatus();
}

absl::Status GanEvaluator::Extract(std::span<const float> examples,
                                   Extracted& to) const {
  if (images()) return extractor_->Extract(examples, side(), to);
  Features& points = to.features;
  points.dimension = 2;
  points.values.insert(points.values.end(), examples.begin(), examples.end());
  return absl::OkStatus();
}

absl::StatusOr<double> GanEvaluator::Score(std::span<const float> generator,
                                           RngKey key) {
  UseThreads(threads_);
  // The held-out examples do not change, so their features are computed once.
  if (real_.dimension == 0) {
    // The energy distance compares all pairs, so as many points as are
    // generated suffice.
    constexpr int64_t kAll = std::numeric_limits<int64_t>::max();
    Extracted real;
    GOSSAMER_RETURN_IF_ERROR(
        HeldOut(images() ? kAll : samples_,
                [&](auto piece) { return Extract(piece, real); }));
    real_ = std::move(real.features);
  }
  Extracted fake;
  GOSSAMER_RETURN_IF_ERROR(Generate(generator, key, samples_, [&](auto piece) {
    return Extract(piece, fake);
  }));
  return images() ? FrechetDistance(real_, fake.features)
                  : EnergyDistance(real_, fake.features);
}

absl::Status GanEvaluator::WriteSamples(std::span<const float> generator,
                                        RngKey key, const std::string& path) {
  if (!images()) {
    // The modes of the mixture lie at radius 2; an extent of 3 also shows
    // samples that stray.
    constexpr int kPoints = 1000, kSize = 480;
    constexpr double kExtent = 3;
    std::vector<float> reference, points;
    GOSSAMER_RETURN_IF_ERROR(HeldOut(kPoints, Into(reference)));
    GOSSAMER_RETURN_IF_ERROR(Generate(generator, key, kPoints, Into(points)));
    return WritePng(Scatter(reference, points, kExtent, kSize), path);
  }
  std::vector<float> images;
  if (!conditional()) {
    GOSSAMER_RETURN_IF_ERROR(
        Generate(generator, key, kColumns * kColumns, Into(images)));
    return WriteGrid(images, path);
  }
  // A row for each class, or for some of many, evenly spaced.
  constexpr int kMaxRows = 10;
  const int rows = std::min(classes_, kMaxRows);
  std::vector<int64_t> labels;
  for (int64_t row = 0; row < rows; ++row) {
    labels.insert(labels.end(), kColumns, row * classes_ / rows);
  }
  GOSSAMER_RETURN_IF_ERROR(GenerateOf(labels, generator, key, Into(images)));
  return WriteGrid(images, path);
}

absl::Status GanEvaluator::WriteSamplesOf(int64_t label,
                                          std::span<const float> generator,
                                          RngKey key, const std::string& path) {
  if (!conditional()) {
    return absl::InvalidArgumentError(
        "this model is not conditional: it has no classes to choose from");
  }
  if (label < 0 || label >= classes_) {
    return absl::InvalidArgumentError(
        absl::StrCat("class ", label, " of a model that was trained on ",
                     classes_, "; they count from 0"));
  }
  const std::vector<int64_t> labels(kColumns * kColumns, label);
  std::vector<float> images;
  GOSSAMER_RETURN_IF_ERROR(GenerateOf(labels, generator, key, Into(images)));
  return WriteGrid(images, path);
}

absl::Status GanEvaluator::WriteGrid(std::span<const float> images,
                                     const std::string& path) const {
  // Small pictures are enlarged.
  const int scale = std::max(1, 96 / side());
  return WritePng(ImageGrid(images, side(), kColumns, scale), path);
}

}  // namespace gossamer
