#include "runtime/identity/pem_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "runtime/base/durable_file.h"

namespace gossamer {
namespace {

absl::Status CannotWrite(const std::string& path, absl::string_view why) {
  return absl::UnavailableError(absl::StrCat("cannot write ", path, ": ", why));
}

}  // namespace

absl::Status WriteFile(const std::string& path, const std::string& text,
                       mode_t mode) {
  const std::string aside = path + ".new";
  // A file that a killed program left there may have another mode; O_EXCL below
  // makes a new one.
  ::unlink(aside.c_str());
  const std::string_view parts[] = {text};
  absl::Status status = WriteDurably(aside, parts, O_CREAT | O_EXCL, mode);
  // The rename replaces the file in one moment, for readers that look
  // meanwhile.
  if (status.ok() && ::rename(aside.c_str(), path.c_str()) != 0) {
    return CannotWrite(path, std::strerror(errno));
  }
  if (status.ok()) {
    status = SyncFolder(std::filesystem::path(path).parent_path());
  }
  return status.ok() ? status : CannotWrite(path, status.message());
}

}  // namespace gossamer
