// The files of a DataLens run: its configuration, and the folders below
// --checkpoints, opened for one side of it.
//
//   DIR/config.txt            the run's settings, resolved
//   DIR/student/round-40      the student after step 40
//   DIR/student/spent/        the images that votes may have been released on
//   DIR/teachers-0/round-40   group 0 after step 40
//
// Knows nothing of networks or transports.

#ifndef GOSSAMER_RUNTIME_DATALENS_RUN_FILES_H_
#define GOSSAMER_RUNTIME_DATALENS_RUN_FILES_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "algorithms/privacy/vote_message.h"
#include "runtime/datalens/folder_lock.h"
#include "runtime/datalens/kept_state.h"
#include "runtime/datalens/run.h"

namespace gossamer {

// All members are null if the run keeps no state.
struct RunFiles {
  FolderLock lock;
  std::unique_ptr<KeptState> kept;
  std::unique_ptr<PrivacyLedger> ledger;  // used by the student
};

inline constexpr char kConfigurationName[] = "config.txt";

// Sets the values of the file.  Returns kInvalidArgument if it cannot be read,
// is too long, or as ReadRunText.
absl::Status ReadConfiguration(const std::string& path, DataLensRun& run);

// Opens the folders of the student, and writes the configuration.  Returns the
// errors of FileOps, FolderLock, KeptState and PrivacyLedger.  Reports damaged
// states on stderr.
absl::StatusOr<RunFiles> OpenStudentFiles(const DataLensRun& run);
// Opens the folder of a group.  `train` is the training data of all teachers,
// which must not have changed.
absl::StatusOr<RunFiles> OpenTeacherFiles(const DataLensRun& run,
                                          const ImageBatch& train, int group);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_DATALENS_RUN_FILES_H_
