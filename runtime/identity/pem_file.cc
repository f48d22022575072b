#include "runtime/identity/pem_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace gossamer {
namespace {

absl::Status CannotWrite(const std::string& path, int error) {
  return absl::UnavailableError(
      absl::StrCat("cannot write ", path, ": ", std::strerror(error)));
}

}  // namespace

absl::Status WriteFile(const std::string& path, const std::string& text,
                       mode_t mode) {
  const std::string aside = path + ".new";
  ::unlink(aside.c_str());
  const int file =
      ::open(aside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  if (file < 0) return CannotWrite(path, errno);
  const bool written = ::write(file, text.data(), text.size()) ==
                           static_cast<ssize_t>(text.size()) &&
                       ::fsync(file) == 0;
  const int error = errno;
  ::close(file);
  if (!written) return CannotWrite(path, error);
  if (::rename(aside.c_str(), path.c_str()) != 0) {
    return CannotWrite(path, errno);
  }
  const std::string above = std::filesystem::path(path).parent_path();
  const int folder = ::open(above.empty() ? "." : above.c_str(),
                            O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return CannotWrite(path, errno);
  const bool kept = ::fsync(folder) == 0;
  const int why = errno;
  ::close(folder);
  return kept ? absl::OkStatus() : CannotWrite(path, why);
}

absl::Status MakeFolder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (!error) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("cannot make ", path, ": ", error.message()));
}

}  // namespace gossamer
