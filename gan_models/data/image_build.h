// Builds a file of pictures (image_cache.h) from folders of picture files.
//
// This header knows nothing of command lines or of training.

#ifndef GOSSAMER_GAN_MODELS_DATA_IMAGE_BUILD_H_
#define GOSSAMER_GAN_MODELS_DATA_IMAGE_BUILD_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace gossamer {

struct ImageBuild {
  std::string from;      // folder of pictures, or of a folder for each class
  std::string held_out;  // the same for the held-out part; empty: of `from`
  std::string out;
  int resolution = 128;
  int threads = 1;
  // The share of the files that may be refused; more end the build.
  double max_refused = 0.01;
};

// Without a folder of its own the held-out part is every 20th picture of a
// class, beginning with its second, so that a class of two has one.
inline constexpr size_t kHeldOutEvery = 20;

struct ImageBuildProgress {
  size_t files = 0;    // of all
  size_t done = 0;     // of them, in whatever way
  size_t resumed = 0;  // of those done, by an earlier build
  size_t refused = 0;
  uint64_t bytes_read = 0;  // of picture files
};

struct ImageBuildResult {
  ImageBuildProgress progress;
  size_t train = 0, held_out = 0, classes = 0;
  bool was_there = false;  // the finished file of an earlier build
  uint64_t file_bytes = 0;
  // The first files that were refused, each with the reason, and the file that
  // has all of them; empty if there are none.
  std::vector<std::string> first_refused;
  std::string refused_list;
  std::vector<std::string> notes;  // what of the folders was left out
};

// Decodes, crops and resizes every picture with a pool of threads, each of
// which holds one picture, and publishes `out` at the end.  An interrupted
// build leaves OUT.partial, with which the same call goes on.  `progress` is
// called by this thread about once a second.
// Errors: those of ImageFolder and ImageCacheWriter; kInvalidArgument (an
// option), kDataLoss (too many files are refused, or none is left to train or
// to compare with), kAlreadyExists (`out` has other pictures).
absl::StatusOr<ImageBuildResult> BuildImages(
    const ImageBuild& build,
    const std::function<void(const ImageBuildProgress&)>& progress);

// Reads a picture file whole.  kDataLoss: larger than a picture is.
absl::StatusOr<std::vector<uint8_t>> ReadPictureFile(const std::string& path);

}  // namespace gossamer

#endif  // GOSSAMER_GAN_MODELS_DATA_IMAGE_BUILD_H_
