#include "runtime/datalens/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "algorithms/base/status_macros.h"
#include "runtime/checkpoint/file_ops.h"

namespace gossamer {

absl::StatusOr<FolderLock> FolderLock::Take(const std::string& folder) {
  GOSSAMER_RETURN_IF_ERROR(SystemFileOps().MakeFolder(folder));
  const std::string path = folder + "/lock";
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0) {
    return absl::UnavailableError(absl::StrCat("cannot open ", path));
  }
  FolderLock lock;
  lock.file_.reset(new int(file), [](const int* held) {
    ::close(*held);
    delete held;
  });
  // The kernel drops the lock with the process, so a crash leaves none behind.
  if (::flock(file, LOCK_EX | LOCK_NB) == 0) return lock;
  return absl::FailedPreconditionError(absl::StrCat(
      folder,
      " is in use by another process; wait for its end, or give this one a "
      "folder of its own"));
}

}  // namespace gossamer
