// The classes of a data set that a run trains on, by name or number.
//
// This header knows nothing of files.

#ifndef GOSSAMER_GAN_MODELS_DATA_CLASS_CHOICE_H_
#define GOSSAMER_GAN_MODELS_DATA_CLASS_CHOICE_H_

#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace gossamer {

// A class of a data set: its number in the files, which is its label there, and
// its name.
struct ImageClass {
  int number = 0;
  std::string name;
};

// The chosen of the classes with these names, ascending by number; all of them
// if `classes` is empty.
// kInvalidArgument: a choice that is neither, naming the known ones.
absl::StatusOr<std::vector<ImageClass>> ChooseClasses(
    std::span<const std::string> names,
    const std::vector<std::string>& classes);

}  // namespace gossamer

#endif  // GOSSAMER_GAN_MODELS_DATA_CLASS_CHOICE_H_
