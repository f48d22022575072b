// A folder that only one process uses.
//
// Knows nothing of its contents.

#ifndef GOSSAMER_RUNTIME_DATALENS_FOLDER_LOCK_H_
#define GOSSAMER_RUNTIME_DATALENS_FOLDER_LOCK_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace gossamer {

// Held until this and its copies are gone, or the process is.
class FolderLock {
 public:
  FolderLock() = default;  // holds no folder
  // Makes the folder if it is missing.  Returns kFailedPrecondition if another
  // process holds it.
  static absl::StatusOr<FolderLock> Take(const std::string& folder);

 private:
  std::shared_ptr<const int> file_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_DATALENS_FOLDER_LOCK_H_
