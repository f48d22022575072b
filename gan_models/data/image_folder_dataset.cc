#include "gan_models/data/image_folder_dataset.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "algorithms/base/status_macros.h"
#include "gan_models/data/image_cache.h"
#include "gan_models/data/image_values.h"
#include "gan_models/data/shards.h"

namespace gossamer {
namespace {

absl::StatusOr<ImageCache> OpenCache(const DataSpec& spec) {
  if (spec.path.empty()) {
    return absl::InvalidArgumentError(
        "no file of image-folder is given: set --data (or game.gan.data.path); "
        "make it with: gossamer data build --from FOLDER --out FILE "
        "--resolution N");
  }
  return ImageCache::Open(spec.path);
}

class ImageFolderDataset : public Dataset {
 public:
  ImageFolderDataset(ImageCache cache, std::vector<ImageClass> classes,
                     std::vector<int> shard, std::vector<int> held_out,
                     bool flip)
      : cache_(std::move(cache)),
        shard_(std::move(shard)),
        held_out_(std::move(held_out)),
        flip_(flip),
        shape_({3, cache_.side(), cache_.side()}),
        label_of_(cache_.class_names().size()) {
    for (ImageClass& c : classes) {
      label_of_[c.number] = static_cast<int64_t>(class_names_.size());
      class_names_.push_back(std::move(c.name));
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
    return LabelOf(held_out_[index]);
  }

  void FillBatch(RngKey key, std::span<float> out,
                 std::span<int64_t> labels) const override {
    // Draws are those of a data set in memory (dataset.cc).
    const RngKey choose = key.Fold("index"), mirror = key.Fold("flip");
    const RngKey noise = key.Fold("dequantisation");
    const size_t count = out.size() / image_size();
    std::vector<int> chosen(count);
    for (size_t i = 0; i < count; ++i) {
      chosen[i] = shard_[choose.Below(shard_.size(), i)];
      // The disk has all of the batch to read before the first is waited for.
      cache_.Prefetch(chosen[i]);
    }
    for (size_t i = 0; i < count; ++i) {
      if (!labels.empty()) labels[i] = LabelOf(chosen[i]);
      const bool flip = flip_ && mirror.Below(2, i) == 1;
      FillForTraining(cache_.image(chosen[i]), cache_.side(), flip,
                      noise.Fold(i),
                      out.subspan(i * image_size(), image_size()));
    }
  }

  void FillHeldOut(int64_t begin, std::span<float> out) const override {
    const size_t count = out.size() / image_size();
    const auto pictures =
        std::span(held_out_).subspan(static_cast<size_t>(begin), count);
    for (const int picture : pictures) cache_.Prefetch(picture);
    for (size_t i = 0; i < count; ++i) {
      FillForScores(cache_.image(pictures[i]),
                    out.subspan(i * image_size(), image_size()));
    }
  }

 private:
  size_t image_size() const {
    return size_t{3} * static_cast<size_t>(cache_.side()) *
           static_cast<size_t>(cache_.side());
  }
  int64_t LabelOf(int picture) const {
    return label_of_[cache_.class_of(picture)];
  }

  const ImageCache cache_;
  const std::vector<int> shard_, held_out_;  // numbers of pictures
  const bool flip_;
  const std::array<int64_t, 3> shape_;
  std::vector<int64_t> label_of_;  // by the number of a class in the file
  std::vector<std::string> class_names_;
};

}  // namespace

absl::StatusOr<std::vector<ImageClass>> ReadImageFolderClasses(
    const DataSpec& spec) {
  GOSSAMER_ASSIGN_OR_RETURN(const ImageCache cache, OpenCache(spec));
  return ChooseClasses(cache.class_names(), spec.classes);
}

absl::StatusOr<std::unique_ptr<Dataset>> OpenImageFolder(const DataSpec& spec,
                                                         int rank, int peers,
                                                         RngKey key) {
  GOSSAMER_ASSIGN_OR_RETURN(ImageCache cache, OpenCache(spec));
  GOSSAMER_ASSIGN_OR_RETURN(std::vector<ImageClass> classes,
                            ChooseClasses(cache.class_names(), spec.classes));
  std::vector<bool> wanted(cache.class_names().size());
  for (const ImageClass& c : classes) wanted[c.number] = true;
  std::vector<int> train, held_out, labels;
  for (size_t i = 0; i < cache.size(); ++i) {
    if (!cache.has(i) || !wanted[cache.class_of(i)]) continue;
    if (cache.held_out(i)) {
      held_out.push_back(static_cast<int>(i));
    } else {
      train.push_back(static_cast<int>(i));
      if (spec.dirichlet_alpha > 0) labels.push_back(cache.class_of(i));
    }
  }
  GOSSAMER_ASSIGN_OR_RETURN(
      std::vector<int> shard,
      ShardOf(static_cast<int>(train.size()), labels, spec.dirichlet_alpha,
              rank, peers, spec.path, key));
  for (int& i : shard) i = train[i];
  // The file has one class after the other, and a part of the held-out
  // pictures has to be of all classes.  The order is of no run's seed.
  std::vector<int> mixed;
  mixed.reserve(held_out.size());
  for (const int i : RngKey(0)
                         .Fold("held out")
                         .Permutation(static_cast<int>(held_out.size()))) {
    mixed.push_back(held_out[i]);
  }
  return std::make_unique<ImageFolderDataset>(
      std::move(cache), std::move(classes), std::move(shard), std::move(mixed),
      spec.flip);
}

}  // namespace gossamer
