#include "runtime/base/plain_file.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace gossamer {

absl::Status MakeFolder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (!error) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("cannot make ", path, ": ", error.message()));
}

}  // namespace gossamer
