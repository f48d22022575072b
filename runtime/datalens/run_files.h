// The files of a DataLens run: its configuration, and the folders below
// --checkpoints, opened for one side of it.
//
//   DIR/config.txt            what the run was told, resolved
//   DIR/student/round-40      the student after step 40
//   DIR/student/spent/        how many images votes may have been released on
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

// All null where the run keeps nothing.
struct RunFiles {
  FolderLock lock;
  std::unique_ptr<KeptState> kept;
  std::unique_ptr<PrivacyLedger> ledger;  // the student's
};

inline constexpr char kConfigurationName[] = "config.txt";

// Sets what the file says.  kInvalidArgument: it cannot be read, is too long,
// or as of ReadRunText.
absl::Status ReadConfiguration(const std::string& path, DataLensRun& run);

// The student's also writes the configuration.  Errors as of FileOps,
// FolderLock, KeptState and PrivacyLedger.  Says on stderr what is
// passed over.
absl::StatusOr<RunFiles> OpenStudentFiles(const DataLensRun& run);
// `train`: what all teachers learn from, which must be as it was.
absl::StatusOr<RunFiles> OpenTeacherFiles(const DataLensRun& run,
                                          const ImageBatch& train, int group);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_DATALENS_RUN_FILES_H_
