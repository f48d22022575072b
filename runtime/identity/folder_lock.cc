#include "runtime/identity/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "runtime/base/steady_time.h"
#include "runtime/identity/pem_file.h"

namespace gossamer {
namespace {

constexpr absl::Duration kPollEvery = absl::Milliseconds(2);

}  // namespace

// Looks again and again rather than to wait in the system: who stands still
// with it must not hold up the others without a word.
absl::StatusOr<FolderLock> FolderLock::Take(const std::string& file,
                                            absl::Duration patience) {
  FolderLock lock(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kSecret));
  if (lock.file_ < 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot open ", file, ": ", std::strerror(errno)));
  }
  const absl::Time end = SteadyNow() + patience;
  while (::flock(lock.file_, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) {
      return absl::UnavailableError(
          absl::StrCat("cannot lock ", file, ": ", std::strerror(errno)));
    }
    if (SteadyNow() >= end) {
      return absl::DeadlineExceededError(
          absl::StrCat("another program holds ", file));
    }
    absl::SleepFor(kPollEvery);
  }
  return lock;
}

FolderLock::FolderLock(FolderLock&& other) noexcept
    : file_(std::exchange(other.file_, -1)) {}

FolderLock& FolderLock::operator=(FolderLock&& other) noexcept {
  std::swap(file_, other.file_);
  return *this;
}

FolderLock::~FolderLock() {
  if (file_ >= 0) ::close(file_);
}

}  // namespace gossamer
