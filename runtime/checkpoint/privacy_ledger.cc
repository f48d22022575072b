#include "runtime/checkpoint/privacy_ledger.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "algorithms/base/status_macros.h"

namespace gossamer {

PrivacyLedger::PrivacyLedger(const std::string& folder, CheckpointId id,
                             FileOps& files)
    : id_(std::move(id)), entries_(folder, /*keep=*/1, files) {}

absl::StatusOr<std::unique_ptr<PrivacyLedger>> PrivacyLedger::Open(
    std::string folder, CheckpointId id, FileOps& files) {
  std::unique_ptr<PrivacyLedger> made(
      new PrivacyLedger(folder, std::move(id), files));
  GOSSAMER_ASSIGN_OR_RETURN(const std::vector<StoredCheckpoint> list,
                            made->entries_.List());
  if (list.empty()) return made;
  // An older checkpoint can replace a damaged one, but an older ledger says
  // that too little is spent.  Only damage before the last entry is harmless: a
  // removal may leave it.
  const StoredCheckpoint& last = list.back();
  if (!last.integrity.ok()) {
    return absl::DataLossError(absl::StrCat(
        folder,
        " is damaged, so nobody knows what is spent of the privacy "
        "budget (",
        last.integrity.message(),
        "). Bring it back from a copy of this very moment; without one all of "
        "the budget must count as spent"));
  }
  made->id_.round = last.round;
  if (last.id != made->id_) {
    return absl::FailedPreconditionError(absl::StrCat(
        folder, " is the ledger of peer ", last.id.peer_id, " of run '",
        last.id.run_id, "' with configuration ",
        absl::Hex(last.id.configuration_hash), "; this is peer ",
        made->id_.peer_id, " of run '", made->id_.run_id,
        "' with configuration ", absl::Hex(made->id_.configuration_hash),
        ". Go on with the same one, or begin anew in another folder; what was "
        "spent on the same data stays spent"));
  }
  made->spent_ = last.round;
  return made;
}

absl::Status PrivacyLedger::Spend(uint64_t total) {
  if (total <= spent_) return absl::OkStatus();
  Checkpoint entry;
  entry.id = id_;
  entry.id.round = total;
  GOSSAMER_RETURN_IF_ERROR(entries_.Save(entry));
  spent_ = total;
  return absl::OkStatus();
}

}  // namespace gossamer
