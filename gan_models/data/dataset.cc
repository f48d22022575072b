#include "gan_models/data/dataset.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "algorithms/base/status_macros.h"
#include "gan_models/data/cifar_files.h"
#include "gan_models/data/image_folder_dataset.h"
#include "gan_models/data/image_values.h"
#include "gan_models/data/shards.h"

namespace gossamer {
namespace {

class ImageDataset : public Dataset {
 public:
  ImageDataset(ImageData data, std::span<const int> shard, bool flip)
      : flip_(flip),
        held_out_(std::move(data.test)),
        shape_({3, held_out_.side, held_out_.side}),
        label_of_(data.class_names.size()) {
    for (int c : data.classes) {
      label_of_[c] = static_cast<int64_t>(class_names_.size());
      class_names_.push_back(data.class_names[c]);
    }
    train_.side = held_out_.side;
    train_.pixels.reserve(shard.size() * train_.image_bytes());
    // The images of the other peers are dropped here: memory is that of one
    // shard and the held-out part.
    for (int i : shard) {
      const auto image = data.train.image(i);
      train_.pixels.insert(train_.pixels.end(), image.begin(), image.end());
      train_.labels.push_back(data.train.labels[i]);
    }
  }

  std::span<const int64_t> example_shape() const override { return shape_; }
  std::span<const std::string> class_names() const override {
    return class_names_;
  }
  int64_t held_out_size() const override {
    return static_cast<int64_t>(held_out_.size());
  }
  int64_t held_out_label(int64_t index) const override {
    return label_of_[held_out_.labels[index]];
  }

  void FillBatch(RngKey key, std::span<float> out,
                 std::span<int64_t> labels) const override {
    const size_t size = train_.image_bytes();
    // Draws are with replacement: a batch is a function of its key, whatever
    // was drawn before.
    const RngKey choose = key.Fold("index"), mirror = key.Fold("flip");
    const RngKey noise = key.Fold("dequantisation");
    for (size_t i = 0; i * size < out.size(); ++i) {
      const size_t index = choose.Below(train_.size(), i);
      if (!labels.empty()) labels[i] = label_of_[train_.labels[index]];
      const bool flip = flip_ && mirror.Below(2, i) == 1;
      FillForTraining(train_.image(index), train_.side, flip, noise.Fold(i),
                      out.subspan(i * size, size));
    }
  }

  void FillHeldOut(int64_t begin, std::span<float> out) const override {
    const size_t size = held_out_.image_bytes();
    for (size_t i = 0; i * size < out.size(); ++i) {
      FillForScores(held_out_.image(begin + i), out.subspan(i * size, size));
    }
  }

 private:
  const bool flip_;
  ImageSet train_;  // this peer's shard
  const ImageSet held_out_;
  const std::array<int64_t, 3> shape_;
  std::vector<int64_t> label_of_;  // by the number of a class in the files
  std::vector<std::string> class_names_;
};

// Eight Gaussians of deviation 0.02 on a circle of radius 2: Metz et al.,
// Unrolled GANs, ICLR 2017.  Modes are the classes.
class GaussianMixture : public Dataset {
 public:
  static constexpr int kModes = 8;

  GaussianMixture(std::vector<double> wanted, std::vector<double> cumulative,
                  RngKey held_out)
      : wanted_(std::move(wanted)),
        cumulative_(std::move(cumulative)),
        held_out_(held_out) {
    for (int mode = 0; mode < kModes; ++mode) {
      const double below = mode == 0 ? 0 : wanted_[mode - 1];
      label_of_.push_back(static_cast<int64_t>(class_names_.size()));
      if (wanted_[mode] > below) class_names_.push_back(absl::StrCat(mode));
    }
  }

  std::span<const int64_t> example_shape() const override { return shape_; }
  std::span<const std::string> class_names() const override {
    return class_names_;
  }
  int64_t held_out_size() const override { return 2048; }
  int64_t held_out_label(int64_t index) const override {
    return label_of_[ModeOf(held_out_.Fold("mode"), wanted_, index)];
  }
  void FillBatch(RngKey key, std::span<float> out,
                 std::span<int64_t> labels) const override {
    Fill(key, cumulative_, 0, out);
    const RngKey choose = key.Fold("mode");
    for (size_t i = 0; i < labels.size(); ++i) {
      labels[i] =
          label_of_[ModeOf(choose, cumulative_, static_cast<int64_t>(i))];
    }
  }
  void FillHeldOut(int64_t begin, std::span<float> out) const override {
    Fill(held_out_, wanted_, begin, out);
  }

 private:
  static ptrdiff_t ModeOf(RngKey choose, const std::vector<double>& cumulative,
                          int64_t index) {
    const double u = choose.Uniform(static_cast<uint64_t>(index));
    // The last mode takes what rounding leaves below one.
    return std::upper_bound(cumulative.begin(), cumulative.end() - 1, u) -
           cumulative.begin();
  }

  static void Fill(RngKey key, const std::vector<double>& cumulative,
                   int64_t begin, std::span<float> out) {
    constexpr double kRadius = 2, kDeviation = 0.02;
    const RngKey choose = key.Fold("mode"), noise = key.Fold("noise");
    for (size_t i = 0; i < out.size() / 2; ++i) {
      const auto mode =
          ModeOf(choose, cumulative, begin + static_cast<int64_t>(i));
      const double angle =
          2 * std::numbers::pi * static_cast<double>(mode) / kModes;
      // The draw is of the example's number, so that a part of the held-out
      // points is the same as in the whole.
      const uint64_t draw = 2 * (begin + i);
      out[2 * i] = static_cast<float>(kRadius * std::cos(angle) +
                                      kDeviation * noise.Gaussian(draw));
      out[2 * i + 1] = static_cast<float>(
          kRadius * std::sin(angle) + kDeviation * noise.Gaussian(draw + 1));
    }
  }

  const std::vector<double> wanted_, cumulative_;
  const RngKey held_out_;
  const std::array<int64_t, 1> shape_ = {2};
  std::vector<int64_t> label_of_;  // by mode
  std::vector<std::string> class_names_;
};

std::vector<double> Cumulative(std::vector<double> weights) {
  double sum = 0;
  for (double& w : weights) w = sum += w;
  for (double& w : weights) w /= sum;
  return weights;
}

absl::StatusOr<std::unique_ptr<Dataset>> OpenMixture(const DataSpec& spec,
                                                     int rank, int peers,
                                                     RngKey key) {
  constexpr int kModes = GaussianMixture::kModes;
  std::vector<double> wanted(kModes, spec.classes.empty() ? 1.0 : 0.0);
  for (const std::string& c : spec.classes) {
    int mode = 0;
    if (!absl::SimpleAtoi(c, &mode) || mode < 0 || mode >= kModes) {
      return absl::InvalidArgumentError(absl::StrCat(
          "game.gan.data.classes has \"", c,
          "\"; the modes of gaussian-mixture are 0 to ", kModes - 1));
    }
    wanted[mode] = 1;
  }
  std::vector<double> mine = wanted;
  if (spec.dirichlet_alpha > 0) {
    for (int m = 0; m < kModes; ++m) {
      mine[m] *=
          SampleDirichlet(peers, spec.dirichlet_alpha, key.Fold(m))[rank];
    }
    // At a very small alpha all of a peer's shares may round to 0.
    if (*std::max_element(mine.begin(), mine.end()) <= 0) mine = wanted;
  }
  // The held-out points are of no run's seed: scores of all runs are against
  // the same points.
  return std::make_unique<GaussianMixture>(Cumulative(std::move(wanted)),
                                           Cumulative(std::move(mine)),
                                           RngKey(0).Fold("held out"));
}

absl::StatusOr<std::unique_ptr<Dataset>> OpenImages(const DataSpec& spec,
                                                    int rank, int peers,
                                                    RngKey key) {
  GOSSAMER_ASSIGN_OR_RETURN(ImageData data,
                            ReadImages(spec.name, spec.path, spec.classes));
  GOSSAMER_ASSIGN_OR_RETURN(
      std::vector<int> shard,
      ShardOf(static_cast<int>(data.train.size()), data.train.labels,
              spec.dirichlet_alpha, rank, peers, spec.path, key));
  return std::make_unique<ImageDataset>(std::move(data), shard,
                                        spec.flip);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Dataset>> Dataset::Open(const DataSpec& spec,
                                                       int rank, int peers,
                                                       uint64_t seed) {
  if (peers < 1 || rank < 0 || rank >= peers) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", rank, " of ", peers, " peers"));
  }
  GOSSAMER_RETURN_IF_ERROR(ProblemsOf(spec).ToStatus());
  const RngKey key = RngKey(seed).Fold("shards");
  if (spec.name == "gaussian-mixture") {
    return OpenMixture(spec, rank, peers, key);
  }
  if (spec.name == "image-folder") {
    return OpenImageFolder(spec, rank, peers, key);
  }
  return OpenImages(spec, rank, peers, key);
}

absl::StatusOr<std::vector<ImageClass>> ClassesOf(const DataSpec& spec) {
  if (spec.name == "image-folder") return ReadImageFolderClasses(spec);
  return ReadClasses(spec.name, spec.path, spec.classes);
}

}  // namespace gossamer
