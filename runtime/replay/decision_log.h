// The file of a peer's decisions: it has every one, or says that it ends.
//
// A log with a gap would replay another run, so the log ends at the first line
// that cannot be kept.  This header knows nothing of what decisions mean.

#ifndef GOSSAMER_RUNTIME_REPLAY_DECISION_LOG_H_
#define GOSSAMER_RUNTIME_REPLAY_DECISION_LOG_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/telemetry/jsonl_sink.h"

namespace gossamer {

class DecisionLog {
 public:
  // Called once, when lines can no longer be kept.
  using Report = std::function<void(const absl::Status&)>;

  // Makes `path` anew.  `limit` in bytes; 0: none.
  static absl::StatusOr<std::unique_ptr<DecisionLog>> Open(
      const std::string& path, LogLimit limit, Report report);

  // The line is on disk at once.  Over the limit a line that Decisions::Replay
  // knows says that the log ends; if nothing can be written the file is
  // removed.
  void Add(const std::string& line);

 private:
  DecisionLog(std::string path, LogLimit limit, Report report,
              std::unique_ptr<LineFile> file)
      : path_(std::move(path)),
        limit_(limit),
        report_(std::move(report)),
        file_(std::move(file)) {}
  void End(const absl::Status& why);

  const std::string path_;
  const LogLimit limit_;
  const Report report_;
  std::unique_ptr<LineFile> file_;  // null: it has ended
  uint64_t bytes_ = 0;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_REPLAY_DECISION_LOG_H_
