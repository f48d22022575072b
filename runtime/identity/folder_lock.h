// One program, or thread, at a time that changes a folder.
//
// An flock on a file, which the system gives back when its holder ends, however
// it does.  Knows nothing of what it guards.

#ifndef GOSSAMER_RUNTIME_IDENTITY_FOLDER_LOCK_H_
#define GOSSAMER_RUNTIME_IDENTITY_FOLDER_LOCK_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace gossamer {

// Held for as long as it lives.
class FolderLock {
 public:
  // Makes `file`, for its owner's eyes only.  kDeadlineExceeded: another has
  // had it for all of `patience`.  kUnavailable: it cannot be opened or locked.
  static absl::StatusOr<FolderLock> Take(const std::string& file,
                                         absl::Duration patience);
  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&& other) noexcept;
  ~FolderLock();

 private:
  explicit FolderLock(int file) : file_(file) {}

  int file_;  // -1: moved away
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_IDENTITY_FOLDER_LOCK_H_
