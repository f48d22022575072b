#include "gan_models/data/image_folder.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "algorithms/base/status_macros.h"

namespace gossamer {
namespace {

namespace fs = std::filesystem;

// Indices of examples are ints.
constexpr size_t kMaxFiles = std::numeric_limits<int>::max();

bool IsPictureName(const std::string& name) {
  for (const char* const ending : {".jpg", ".jpeg", ".png"}) {
    if (absl::EndsWithIgnoreCase(name, ending)) return true;
  }
  return false;
}

// Hidden entries are notes of systems and programs, not data.
bool IsHidden(const std::string& name) { return name[0] == '.'; }

absl::Status Listing(const std::string& folder, const std::error_code& error) {
  return absl::ErrnoToStatus(error.value(),
                             absl::StrCat(folder, " cannot be listed"));
}

}  // namespace

// Counts what is left out, by reason, and keeps an example of each.
class ImageFolder::Notes {
 public:
  // `reason` goes on after "3 files", "1 file" or the like.
  void Add(const char* reason, const std::string& path) {
    auto& [count, first] = counts_[reason];
    if (count++ == 0) first = path;
  }
  std::vector<std::string> Sentences() const {
    std::vector<std::string> all;
    for (const auto& [reason, note] : counts_) {
      all.push_back(absl::StrCat(note.first, " ", reason, "; the first is ",
                                 note.second));
    }
    return all;
  }

 private:
  std::map<std::string, std::pair<size_t, std::string>> counts_;
};

absl::Status ImageFolder::AddClass(const std::string& folder, bool has_classes,
                                   Notes& notes) {
  const size_t begin = names_.size();
  std::error_code error;
  fs::directory_iterator list(folder, error);
  if (error) return Listing(folder, error);
  for (; list != fs::directory_iterator(); list.increment(error)) {
    const std::string name = list->path().filename().string();
    if (IsHidden(name)) continue;
    std::error_code unknown;
    // Most systems say the type with the name, so that only links cost a call.
    if (list->is_regular_file(unknown)) {
      if (!IsPictureName(name)) {
        notes.Add(
            "files are left out, because they end neither in .jpg, .jpeg "
            "nor .png",
            list->path().string());
        continue;
      }
      if (names_.size() == kMaxFiles) {
        return absl::OutOfRangeError(absl::StrCat(folder_, " has more than ",
                                                  kMaxFiles, " picture files"));
      }
      names_.push_back(text_.size());
      text_.append(name.c_str(), name.size() + 1);
    } else if (!unknown && list->is_directory(unknown)) {
      if (has_classes) {
        notes.Add("folders within classes are left out", list->path().string());
      }
    } else {
      notes.Add(
          "entries are left out, because they are links to nothing, or "
          "no files",
          list->path().string());
    }
  }
  if (error) return Listing(folder, error);
  // The order in which a system lists a folder differs between machines.
  std::sort(names_.begin() + static_cast<std::ptrdiff_t>(begin), names_.end(),
            [this](uint64_t a, uint64_t b) {
              return std::string_view(text_.data() + a) <
                     std::string_view(text_.data() + b);
            });
  return absl::OkStatus();
}

absl::StatusOr<ImageFolder> ImageFolder::Scan(const std::string& folder) {
  ImageFolder result;
  result.folder_ = folder;
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    return absl::NotFoundError(absl::StrCat(
        folder,
        " is no folder; give one with pictures, or with a folder of "
        "pictures for each class"));
  }
  fs::directory_iterator list(folder, error);
  if (error) return Listing(folder, error);
  Notes notes;
  std::string beside;
  size_t files_beside = 0;
  for (; list != fs::directory_iterator(); list.increment(error)) {
    const std::string name = list->path().filename().string();
    std::error_code unknown;
    if (IsHidden(name)) continue;
    if (list->is_directory(unknown)) {
      result.class_names_.push_back(name);
    } else if (IsPictureName(name) && files_beside++ == 0) {
      beside = list->path().string();
    }
  }
  if (error) return Listing(folder, error);
  std::sort(result.class_names_.begin(), result.class_names_.end());
  result.has_classes_ = !result.class_names_.empty();
  if (!result.has_classes_) {
    result.class_names_ = {"all"};
    result.begins_.push_back(0);
    GOSSAMER_RETURN_IF_ERROR(result.AddClass(folder, false, notes));
  } else {
    if (files_beside > 0) {
      result.notes_.push_back(
          absl::StrCat(files_beside,
                       " pictures beside the folders of classes are left out, "
                       "because they have no class; the first is ",
                       beside));
    }
    for (const std::string& name : result.class_names_) {
      const std::string path = absl::StrCat(folder, "/", name);
      result.begins_.push_back(result.size());
      GOSSAMER_RETURN_IF_ERROR(result.AddClass(path, true, notes));
      if (result.begins_.back() == result.size()) {
        notes.Add("classes have no picture", path);
      }
    }
  }
  result.begins_.push_back(result.size());
  if (result.size() == 0 && files_beside > 0) {
    return absl::NotFoundError(absl::StrCat(
        folder, " has ", files_beside,
        " pictures beside folders, and the "
        "folders have none: put the pictures into a folder for each class, or "
        "remove the folders"));
  }
  if (result.size() == 0) {
    return absl::NotFoundError(absl::StrCat(
        folder,
        " has no file that ends in .jpg, .jpeg or .png, and none of "
        "its folders has"));
  }
  for (std::string& note : notes.Sentences()) {
    result.notes_.push_back(std::move(note));
  }
  return result;
}

size_t ImageFolder::class_of(size_t i) const {
  // The last class that begins at or before it; those without pictures begin
  // where the next one does.
  return static_cast<size_t>(
      std::upper_bound(begins_.begin(), begins_.end() - 1, i) -
      begins_.begin() - 1);
}

std::string ImageFolder::name(size_t i) const {
  const std::string file(name_of(i));
  return has_classes_ ? absl::StrCat(class_names_[class_of(i)], "/", file)
                      : file;
}

std::string ImageFolder::path(size_t i) const {
  return absl::StrCat(folder_, "/", name(i));
}

uint64_t ImageFolder::fingerprint() const {
  uint64_t h = 0xcbf29ce484222325u;  // FNV-1a
  const auto add = [&h](std::string_view text) {
    for (const char c : text) {
      h = (h ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
    }
    h = (h ^ 0) * 0x100000001b3u;
  };
  for (size_t c = 0; c < class_names_.size(); ++c) {
    add(class_names_[c]);
    for (size_t i = begins_[c]; i < begins_[c + 1]; ++i) add(name_of(i));
    add("/");  // no name has one
  }
  return h;
}

}  // namespace gossamer
