// The decisions that a peer process makes by the clock: a file to write them
// to, within the limit of all such files in the peer's folder, or the file of
// another run to repeat.
//
// This header knows nothing of what a decision means.

#ifndef GOSSAMER_RUNTIME_DAEMON_DECISIONS_FILE_H_
#define GOSSAMER_RUNTIME_DAEMON_DECISIONS_FILE_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/replay/decision_log.h"
#include "runtime/replay/decisions.h"
#include "runtime/telemetry/jsonl_sink.h"

namespace gossamer {

struct DecisionsFileOptions {
  std::string folder;  // the peer's
  std::string replay;  // file of decisions to repeat; empty: none
  // The process goes on from an earlier one: its file is decisions-TIME.log
  // instead of decisions.log, TIME being `now` in seconds.
  bool resume = false;
  absl::Time now;
  // Of this file, and of those of earlier processes together, in bytes, but
  // for decisions.log; 0: none.
  LogLimit limit = 0;
};

struct DecisionsFile {
  std::unique_ptr<DecisionLog> log;  // null in a replay
  Decisions decisions;               // written to `log`
};

// Opens the file, and removes the oldest of earlier processes that are over the
// limit.  `report` takes lines for the process's log and outlives the file.
// kInvalidArgument: `replay` cannot be read or repeated; else errors of
// DecisionLog::Open.
absl::StatusOr<DecisionsFile> OpenDecisions(
    const DecisionsFileOptions& options,
    std::function<void(const std::string& line)> report);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_DAEMON_DECISIONS_FILE_H_
