// Image files in the binary formats of CIFAR-10 and CIFAR-100.
//
// A CIFAR-10 record is a label and 3 planes of 32x32 bytes; CIFAR-100 has a
// coarse label before the fine one.  emoji-32, emoji-64 and emoji-128 use
// CIFAR-10's format with planes of their size and any number of records.  This
// header knows nothing of peers or training.

#ifndef GOSSAMER_GAN_MODELS_DATA_CIFAR_FILES_H_
#define GOSSAMER_GAN_MODELS_DATA_CIFAR_FILES_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gan_models/data/class_choice.h"

namespace gossamer {

// Bytes of a picture with `side` pixels in a row and in a column.
constexpr size_t ImageBytes(int side) {
  return size_t{3} * static_cast<size_t>(side) * static_cast<size_t>(side);
}

// Pictures as bytes, with the index of each one's class.
struct ImageSet {
  int side = 32;
  std::vector<uint8_t> pixels;  // [N, 3, side, side]
  std::vector<int> labels;      // [N]
  size_t size() const { return labels.size(); }
  size_t image_bytes() const { return ImageBytes(side); }
  std::span<const uint8_t> image(size_t i) const {
    return std::span(pixels).subspan(i * image_bytes(), image_bytes());
  }
};

// A data set in memory: the names of its classes, and both of its parts.
struct ImageData {
  std::vector<std::string> class_names;  // of all labels
  std::vector<int> classes;              // the labels that were read, ascending
  ImageSet train, test;
};

// The chosen classes, ascending by number, without reading an image; all of
// them if `classes` is empty.  The names of emoji need no folder.  Errors as
// below.
absl::StatusOr<std::vector<ImageClass>> ReadClasses(
    const std::string& format, const std::string& folder,
    const std::vector<std::string>& classes);

// Reads the images of `classes` (names or numbers; all if empty) from the
// folder of `format`.
// Errors: kInvalidArgument (an unknown class, naming the known), kNotFound,
// kDataLoss (a size that is not the format's, a label out of range).
absl::StatusOr<ImageData> ReadImages(const std::string& format,
                                     const std::string& folder,
                                     const std::vector<std::string>& classes);

// Writes data_batch_1..5.bin, test_batch.bin and batches.meta.txt into
// `folder`, five train files of equal size; train.size() is a multiple of 5.
absl::Status WriteCifar10(const std::string& folder, const ImageData& data);

}  // namespace gossamer

#endif  // GOSSAMER_GAN_MODELS_DATA_CIFAR_FILES_H_
