// The files and the noise of a peer process in a run that learns from votes.
//
// A student spends from a ledger in its folder, which no other process may use
// meanwhile.  This header knows nothing of what a vote says.

#ifndef GOSSAMER_RUNTIME_DAEMON_VOTING_FILES_H_
#define GOSSAMER_RUNTIME_DAEMON_VOTING_FILES_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "algorithms/base/ids.h"
#include "algorithms/game/game.h"
#include "proto/run.pb.h"
#include "runtime/checkpoint/privacy_ledger.h"
#include "runtime/identity/file_lock.h"
#include "runtime/peer/vote_trainer.h"

namespace gossamer {

struct VotingFilesOptions {
  PeerId self;
  std::string folder;    // the peer's, in the run's; it exists
  bool replays = false;  // the process repeats the decisions of another run
};

// The lock and the ledger outlive what has the parts; both are a student's
// alone.
struct VotingFiles {
  std::optional<FileLock> lock;
  std::unique_ptr<PrivacyLedger> ledger;
  VotingParts parts;
};

// Makes what `game` needs for votes; hardly anything of one that is trained
// without.  `report` takes lines for the process's log and outlives the parts.
// kInvalidArgument: a replay of noise that is kept nowhere;
// kFailedPrecondition: another process has the ledger; else errors of
// PrivacyLedger::Open and of the disk.
absl::StatusOr<VotingFiles> OpenVoting(
    const RunConfig& config, Game& game, const VotingFilesOptions& options,
    std::function<void(const std::string& line)> report);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_DAEMON_VOTING_FILES_H_
