// A small image data set.

#ifndef GOSSAMER_TESTS_GAN_MODELS_TESTING_H_
#define GOSSAMER_TESTS_GAN_MODELS_TESTING_H_

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "algorithms/base/rng.h"
#include "gan_models/data/cifar_files.h"
#include "tests/testing/temporary_folder.h"

namespace gossamer {

// Images of smooth random colours; the label is i % 10 and pixel 0 holds i.
inline ImageSet SmallImages(int count, RngKey key) {
  ImageSet set;
  for (int i = 0; i < count; ++i) {
    set.labels.push_back(i % 10);
    const RngKey image = key.Fold(i);
    for (size_t j = 0; j < ImageBytes(32); ++j) {
      set.pixels.push_back(static_cast<uint8_t>(
          j == 0 ? i : image.Below(200, j / 256) + image.Below(50, 1000 + j)));
    }
  }
  return set;
}

inline ImageData SmallData(int train, int test) {
  ImageData data;
  for (const char* name : {"zero", "one", "two", "three", "four", "five", "six",
                           "seven", "eight", "nine"}) {
    data.class_names.emplace_back(name);
  }
  data.train = SmallImages(train, RngKey(1));
  data.test = SmallImages(test, RngKey(2));
  return data;
}

}  // namespace gossamer

#endif  // GOSSAMER_TESTS_GAN_MODELS_TESTING_H_
