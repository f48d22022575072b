// Examples to train on and to compare with: what a peer's shard holds, by
// index, and a held-out part that no peer trains on.
//
// This header knows files and shards; nothing of networks, tensors or losses.

#ifndef GOSSAMER_GAN_MODELS_DATA_DATASET_H_
#define GOSSAMER_GAN_MODELS_DATA_DATASET_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "algorithms/base/rng.h"
#include "gan_models/data/class_choice.h"
#include "gan_models/gan_spec.h"

namespace gossamer {

// One peer's view of a data set: its own shard and the held-out part of all.
// It does not change after Open, and any thread may draw from it.
class Dataset {
 public:
  // The part of the data that peer `rank` of `peers` sees; the split is a
  // function of the spec, `peers` and `seed`.
  // Errors: kInvalidArgument (a name, naming the known ones), kNotFound (a
  // file, saying how to get it), kDataLoss (file, expected and actual size).
  static absl::StatusOr<std::unique_ptr<Dataset>> Open(const DataSpec& spec,
                                                       int rank, int peers,
                                                       uint64_t seed);

  virtual ~Dataset() = default;
  // The shape of one example: {3, side, side} (planes, values in [-1, 1]) or
  // {2}.
  virtual std::span<const int64_t> example_shape() const = 0;
  // The chosen classes in the order of the files; a label is an index here, the
  // same for all peers, whatever classes this peer's shard has.
  virtual std::span<const std::string> class_names() const = 0;
  // A batch that `key` draws from this peer's shard, with replacement, into
  // out.size() / (size of an example) examples, and their labels; no labels if
  // that span is empty.
  virtual void FillBatch(RngKey key, std::span<float> out,
                         std::span<int64_t> labels) const = 0;
  // The held-out examples [begin, ...) that fit `out`.
  virtual void FillHeldOut(int64_t begin, std::span<float> out) const = 0;
  virtual int64_t held_out_size() const = 0;
  virtual int64_t held_out_label(int64_t index) const = 0;
};

// The chosen classes of a data set of images, whose place in the list is their
// label, without reading an image.
// Errors: kInvalidArgument (an unknown class, naming the known), kNotFound,
// kDataLoss.
absl::StatusOr<std::vector<ImageClass>> ClassesOf(const DataSpec& spec);

}  // namespace gossamer

#endif  // GOSSAMER_GAN_MODELS_DATA_DATASET_H_
