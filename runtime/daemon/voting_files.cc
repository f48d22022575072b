#include "runtime/daemon/voting_files.h"

#include <filesystem>
#include <random>

#include "absl/strings/str_cat.h"
#include "algorithms/base/status_macros.h"
#include "runtime/checkpoint/file_ops.h"
#include "runtime/config/run_config.h"

namespace gossamer {
namespace {

// From the system; kept nowhere.
RngKey FreshNoise() {
  std::random_device system;
  RngKey key(0);
  for (int i = 0; i < 8; ++i) key = key.Fold(system());
  return key;
}

// Makes the folder of the ledger within the peer's, durably.  The folders above
// are there already, perhaps not yet on the disk: without their names a power
// cut would lose a ledger whose entries are synced.
absl::StatusOr<std::string> MakeLedgerFolder(const std::string& folder) {
  const std::string spent = folder + "/spent";
  GOSSAMER_RETURN_IF_ERROR(SystemFileOps().MakeFolder(spent));
  const std::filesystem::path peer = std::filesystem::absolute(folder);
  const std::filesystem::path run = peer.parent_path();
  for (const std::filesystem::path& above : {peer, run, run.parent_path()}) {
    GOSSAMER_RETURN_IF_ERROR(SystemFileOps().SyncFolder(above.string()));
  }
  return spent;
}

absl::StatusOr<FileLock> LockLedger(const std::string& spent) {
  absl::StatusOr<FileLock> lock =
      FileLock::Take(spent + "/lock", absl::ZeroDuration());
  if (lock.ok()) return lock;
  return absl::FailedPreconditionError(absl::StrCat(
      lock.status().message(),
      ": two processes must not spend from one ledger; wait for its end, or "
      "give this one a --run-dir of its own"));
}

}  // namespace

absl::StatusOr<VotingFiles> OpenVoting(
    const RunConfig& config, Game& game, const VotingFilesOptions& options,
    std::function<void(const std::string& line)> report) {
  VotingFiles files;
  VotingParts& parts = files.parts;
  const VotingRole role = game.voting();
  const DataLensConfig& datalens = config.game().datalens();
  parts.note = [report](const std::string& line) {
    report("warning: " + line);
  };
  parts.noise_repeats = datalens.has_noise_seed();
  const bool votes = role.student != nullptr || role.teachers != nullptr;
  if (votes && !parts.noise_repeats && options.replays) {
    return absl::InvalidArgumentError(
        "--replay: the noise of that run is kept nowhere, so nothing can "
        "repeat it; a run with game.datalens.noise_seed can be, and is not "
        "private");
  }
  if (role.student == nullptr) return files;
  if (parts.noise_repeats) {
    report(
        "warning: game.datalens.noise_seed: anybody who knows it can take the "
        "noise off, so nothing is private");
    parts.noise = RngKey(datalens.noise_seed()).Fold("noise");
  } else {
    parts.noise = FreshNoise();
  }
  GOSSAMER_ASSIGN_OR_RETURN(const std::string spent,
                            MakeLedgerFolder(options.folder));
  GOSSAMER_ASSIGN_OR_RETURN(files.lock, LockLedger(spent));
  GOSSAMER_ASSIGN_OR_RETURN(
      files.ledger,
      PrivacyLedger::Open(spent,
                          {.run_id = config.name(),
                           .peer_id = options.self.value,
                           .layout_fingerprint = game.layout().fingerprint(),
                           .configuration_hash = ConfigurationHash(config)}));
  parts.ledger = files.ledger.get();
  return files;
}

}  // namespace gossamer
