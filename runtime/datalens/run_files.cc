#include "runtime/datalens/run_files.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "algorithms/base/crc32c.h"
#include "algorithms/base/status_macros.h"
#include "algorithms/privacy/vote_message.h"
#include "runtime/checkpoint/file_ops.h"
#include "runtime/datalens/run_text.h"
#include "runtime/datalens/student_peer.h"

namespace gossamer {
namespace {

// The two states that the student may go on from, and one for each time that
// the group was told to stop since the older of them.  The group offers them
// beside the last two steps, for which it needs no file.
constexpr int kKeptByGroups = static_cast<int>(kMostOfferedSteps) - 2;

absl::StatusOr<RunFiles> Open(const KeptOptions& options) {
  RunFiles files;
  GOSSAMER_ASSIGN_OR_RETURN(files.lock, FolderLock::Take(options.folder));
  GOSSAMER_ASSIGN_OR_RETURN(files.kept, KeptState::Open(options));
  for (const auto& [step, why] : files.kept->damaged()) {
    std::fprintf(stderr, "passed over %s\n", why.c_str());
  }
  return files;
}

// Writes the file whole or not at all.
absl::Status WriteConfiguration(const DataLensRun& run) {
  DataLensRun resolved = run;
  // The absolute path is valid wherever the file is read.
  resolved.data = std::filesystem::absolute(run.data).lexically_normal();
  const std::string path = run.checkpoints + "/" + kConfigurationName;
  FileOps& files = SystemFileOps();
  GOSSAMER_RETURN_IF_ERROR(files.WriteText(path + ".new", RunText(resolved)));
  GOSSAMER_RETURN_IF_ERROR(files.Rename(path + ".new", path));
  return files.SyncFolder(run.checkpoints);
}

}  // namespace

absl::Status ReadConfiguration(const std::string& path, DataLensRun& run) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--config ", path,
        ": cannot be read; deploy/configs/digits.txt is one to start from"));
  }
  std::string text(kMostRunTextBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.size() > kMostRunTextBytes || file.bad()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--config ", path,
                     ": not a configuration (over 64 KiB or unreadable)"));
  }
  return ReadRunText(text, path, run);
}

absl::StatusOr<RunFiles> OpenStudentFiles(const DataLensRun& run) {
  if (run.checkpoints.empty()) return RunFiles();
  KeptOptions options = {
      .folder = run.checkpoints + "/student",
      .peer = kStudentId,
      .settings = absl::StrCat(
          SettingsText(run.settings), "noise-seed ",
          run.noise_seed ? absl::StrCat(*run.noise_seed) : "none", "\n")};
  GOSSAMER_ASSIGN_OR_RETURN(RunFiles files, Open(options));
  options.folder += "/spent";
  GOSSAMER_ASSIGN_OR_RETURN(files.ledger, PrivacyLedger::Open(options));
  GOSSAMER_RETURN_IF_ERROR(WriteConfiguration(run));
  return files;
}

absl::StatusOr<RunFiles> OpenTeacherFiles(const DataLensRun& run,
                                          const ImageBatch& train, int group) {
  if (run.checkpoints.empty()) return RunFiles();
  const uint32_t data =
      ExtendCrc32c(Crc32c(std::as_bytes(std::span(train.labels))),
                   std::as_bytes(std::span(train.images)));
  return Open({.folder = absl::StrCat(run.checkpoints, "/teachers-", group),
               .peer = TeacherGroupId(group),
               .settings = absl::StrFormat("%sgroups %d\ndata %08x\n",
                                           SettingsText(run.settings),
                                           run.groups, data),
               .keep = kKeptByGroups});
}

}  // namespace gossamer
