#include "runtime/identity/file_lock.h"

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

// Polls rather than waits in the system: a holder that stands still must not
// block the others without a word.
absl::StatusOr<FileLock> FileLock::Take(const std::string& file,
                                        absl::Duration timeout) {
  // The file stays after use: removing it would let two holders lock two files
  // of one name.
  FileLock lock(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kSecret));
  if (lock.file_ < 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot open ", file, ": ", std::strerror(errno)));
  }
  const absl::Time end = SteadyNow() + timeout;
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

FileLock::FileLock(FileLock&& other) noexcept
    : file_(std::exchange(other.file_, -1)) {}

FileLock& FileLock::operator=(FileLock&& other) noexcept {
  std::swap(file_, other.file_);
  return *this;
}

FileLock::~FileLock() {
  // Closing releases the lock.
  if (file_ >= 0) ::close(file_);
}

}  // namespace gossamer
