#include "runtime/replay/decision_log.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "algorithms/base/status_macros.h"

namespace gossamer {

absl::StatusOr<std::unique_ptr<DecisionLog>> DecisionLog::Open(
    const std::string& path, LogLimit limit, Report report) {
  std::error_code error;
  // A log is of one process: lines of an earlier one would be read as its
  // beginning.
  std::filesystem::remove(path, error);
  GOSSAMER_ASSIGN_OR_RETURN(std::unique_ptr<LineFile> file,
                            LineFile::Open(path));
  return std::unique_ptr<DecisionLog>(
      new DecisionLog(path, limit, std::move(report), std::move(file)));
}

void DecisionLog::Add(const std::string& line) {
  if (file_ == nullptr) return;
  bytes_ += line.size() + 1;
  const bool full = limit_ != 0 && bytes_ > limit_;
  file_->Add(full ? absl::StrCat("full ", limit_) : line);
  // The line is on disk before the round goes on: a crash leaves no decision
  // that others saw and the log lacks.
  const absl::Status kept = file_->Flush();
  if (!kept.ok()) {
    End(kept);
    std::error_code error;
    // A log that cannot say that it ends would replay another run.
    std::filesystem::remove(path_, error);
  } else if (full) {
    End(absl::ResourceExhaustedError(
        absl::StrCat(path_, " is full at ", limit_, " bytes (--log-limit)")));
  }
}

void DecisionLog::End(const absl::Status& why) {
  file_ = nullptr;
  report_(
      absl::Status(why.code(), absl::StrCat(why.message(),
                                            "; no more are kept, so this run "
                                            "cannot be replayed")));
}

}  // namespace gossamer
