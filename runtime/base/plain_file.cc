#include "runtime/base/plain_file.h"

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
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

absl::Status WriteTextFile(const std::string& path, const std::string& text) {
  // The rename makes the change in one step: a reader never sees half a file.
  const std::string aside = path + ".partial";
  std::ofstream file(aside, std::ios::binary | std::ios::trunc);
  file << text;
  // The error of a full disk may show only as the file is closed.
  file.close();
  if (!file || std::rename(aside.c_str(), path.c_str()) != 0) {
    return absl::InternalError(absl::StrCat(
        path, ": cannot be written: ", std::generic_category().message(errno)));
  }
  return absl::OkStatus();
}

}  // namespace gossamer
