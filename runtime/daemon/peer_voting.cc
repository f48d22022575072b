// A peer process of a run that learns from votes: its noise, and the ledger of
// the budget that it has spent.

#include <filesystem>
#include <random>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "algorithms/base/status_macros.h"
#include "runtime/checkpoint/file_ops.h"
#include "runtime/config/run_config.h"
#include "runtime/daemon/peer_process.h"

namespace gossamer {
namespace {

// From the system; kept nowhere.
RngKey FreshNoise() {
  std::random_device system;
  RngKey key(0);
  for (int i = 0; i < 8; ++i) key = key.Fold(system());
  return key;
}

}  // namespace

absl::StatusOr<VotingParts> PeerProcess::OpenVoting(const std::string& folder) {
  VotingParts voting;
  const VotingRole role = game_->voting();
  const DataLensConfig& config = options_.config.game().datalens();
  voting.note = [this](const std::string& line) { Log("warning: " + line); };
  voting.noise_repeats = config.has_noise_seed();
  const bool votes = role.student != nullptr || role.teachers != nullptr;
  if (votes && !voting.noise_repeats && !options_.replay.empty()) {
    return absl::InvalidArgumentError(
        "--replay: the noise of that run is kept nowhere, so nothing can "
        "repeat "
        "it; a run with game.datalens.noise_seed can be, and is not private");
  }
  if (role.student == nullptr) return voting;
  if (voting.noise_repeats) {
    Log("warning: game.datalens.noise_seed: anybody who knows it can take the "
        "noise off, so nothing is private");
    voting.noise = RngKey(config.noise_seed()).Fold("noise");
  } else {
    voting.noise = FreshNoise();
  }
  const std::string spent = folder + "/spent";
  GOSSAMER_RETURN_IF_ERROR(SystemFileOps().MakeFolder(spent));
  // The folders above are there already, perhaps not yet on the disk: without
  // their names a power cut would lose a ledger whose entries are synced.
  for (const std::filesystem::path& above :
       {std::filesystem::path(folder), std::filesystem::path(options_.run_dir),
        std::filesystem::absolute(options_.run_dir).parent_path()}) {
    GOSSAMER_RETURN_IF_ERROR(SystemFileOps().SyncFolder(above.string()));
  }
  absl::StatusOr<FileLock> lock =
      FileLock::Take(spent + "/lock", absl::ZeroDuration());
  if (!lock.ok()) {
    return absl::FailedPreconditionError(absl::StrCat(
        lock.status().message(),
        ": two processes must not spend from one ledger; wait for its end, or "
        "give this one a --run-dir of its own"));
  }
  ledger_lock_ = *std::move(lock);
  GOSSAMER_ASSIGN_OR_RETURN(
      ledger_,
      PrivacyLedger::Open(
          spent, {.run_id = options_.config.name(),
                  .peer_id = id_,
                  .layout_fingerprint = game_->layout().fingerprint(),
                  .configuration_hash = ConfigurationHash(options_.config)}));
  voting.ledger = ledger_.get();
  return voting;
}

}  // namespace gossamer
