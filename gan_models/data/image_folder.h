// The picture files below a folder, with their classes: FOLDER/CLASS/*.jpg, as
// ImageNet has them, or FOLDER/*.jpg without classes.
//
// Reads names alone; knows nothing of what is in the files.

#ifndef GOSSAMER_GAN_MODELS_DATA_IMAGE_FOLDER_H_
#define GOSSAMER_GAN_MODELS_DATA_IMAGE_FOLDER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace gossamer {

// The names of picture files, ordered by class and name.  A name is kept once,
// without its folder: a million files of ImageNet take about 30 MB.
class ImageFolder {
 public:
  // Finds the files that end in .jpg, .jpeg or .png, in any case.  Classes are
  // the folders that `folder` has, sorted by their bytes; a class without
  // pictures keeps its place.  If there is none, all files are of one class,
  // "all".  Links are followed, folders within classes are not.
  // Errors: kNotFound (no such folder, or no picture in it), kPermissionDenied
  // and others of the system (a folder that cannot be listed).
  static absl::StatusOr<ImageFolder> Scan(const std::string& folder);

  size_t size() const { return names_.size(); }
  std::span<const std::string> class_names() const { return class_names_; }
  // The index of the class of file `i`, and the file's place in that class.
  size_t class_of(size_t i) const;
  size_t place_in_class(size_t i) const { return i - begins_[class_of(i)]; }
  // The path below the folder, "CLASS/NAME", and with the folder.
  std::string name(size_t i) const;
  std::string path(size_t i) const;
  // A hash of all names and classes.
  uint64_t fingerprint() const;
  // A sentence for each reason to leave something out.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  class Notes;
  ImageFolder() = default;
  absl::Status AddClass(const std::string& folder, bool has_classes,
                        Notes& notes);
  // The file names of a class have the indices [begins_[c], begins_[c + 1]).
  std::string_view name_of(size_t i) const { return text_.data() + names_[i]; }

  std::string folder_;
  bool has_classes_ = false;
  std::vector<std::string> class_names_;
  std::vector<size_t> begins_;
  std::string text_;             // names, each with a zero at its end
  std::vector<uint64_t> names_;  // where each begins in text_
  std::vector<std::string> notes_;
};

}  // namespace gossamer

#endif  // GOSSAMER_GAN_MODELS_DATA_IMAGE_FOLDER_H_
