// A lock that one program, or thread, holds at a time.
//
// It is an flock on a file, which the system releases when its holder ends, in
// whatever way.  This header knows nothing of what is guarded.

#ifndef GOSSAMER_RUNTIME_IDENTITY_FILE_LOCK_H_
#define GOSSAMER_RUNTIME_IDENTITY_FILE_LOCK_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace gossamer {

// Held until it is destroyed.
class FileLock {
 public:
  // Makes `file`, for its owner's eyes only.  kDeadlineExceeded: another
  // program held it for all of `timeout`.  kUnavailable: it cannot be opened
  // or locked.
  static absl::StatusOr<FileLock> Take(const std::string& file,
                                       absl::Duration timeout);
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&& other) noexcept;
  ~FileLock();

 private:
  explicit FileLock(int file) : file_(file) {}

  int file_;  // -1: moved away
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_IDENTITY_FILE_LOCK_H_
