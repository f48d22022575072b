// The number of images that votes may have been released on, over all
// incarnations of a student, on its disk.
//
// An entry of a checkpoint store is one total.  This header knows nothing of
// noise, budgets or networks.

#ifndef GOSSAMER_RUNTIME_CHECKPOINT_PRIVACY_LEDGER_H_
#define GOSSAMER_RUNTIME_CHECKPOINT_PRIVACY_LEDGER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/checkpoint_store.h"
#include "runtime/checkpoint/file_ops.h"

namespace gossamer {

// Used by one thread at a time.
class PrivacyLedger {
 public:
  // Opens the ledger in a folder of its own, which no other process uses
  // meanwhile; `id` says whose it is, whatever its round.  kDataLoss if the
  // last entry is damaged, so that the spent budget is unknown;
  // kFailedPrecondition if the ledger is another run's, peer's or
  // configuration's.
  static absl::StatusOr<std::unique_ptr<PrivacyLedger>> Open(
      std::string folder, CheckpointId id, FileOps& files = SystemFileOps());

  uint64_t spent() const { return spent_; }
  // Makes `total` the least that is spent.  Durable when it returns OK; only
  // then may the votes that it pays for be released.  After an error it may
  // count as spent later.
  absl::Status Spend(uint64_t total);

 private:
  PrivacyLedger(const std::string& folder, CheckpointId id, FileOps& files);

  CheckpointId id_;
  CheckpointStore entries_;  // named by their totals
  uint64_t spent_ = 0;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_CHECKPOINT_PRIVACY_LEDGER_H_
