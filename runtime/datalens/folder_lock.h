// A folder that one process has for itself.
//
// Knows nothing of what is in it.

#ifndef GOSSAMER_RUNTIME_DATALENS_FOLDER_LOCK_H_
#define GOSSAMER_RUNTIME_DATALENS_FOLDER_LOCK_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace gossamer {

// Held until it and its copies are gone, or the process is.
class FolderLock {
 public:
  FolderLock() = default;  // of nothing
  // Makes the folder if it is not there.  kFailedPrecondition: another has it.
  static absl::StatusOr<FolderLock> Take(const std::string& folder);

 private:
  std::shared_ptr<const int> file_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_DATALENS_FOLDER_LOCK_H_
