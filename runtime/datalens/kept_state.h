// The state that one side of a DataLens run keeps in a folder, to go on after a
// restart: its own state after some steps, and, at the student, the privacy
// budget that is spent.
//
// A thin layer over runtime/checkpoint; knows nothing of networks, noise or
// transports.

#ifndef GOSSAMER_RUNTIME_DATALENS_KEPT_STATE_H_
#define GOSSAMER_RUNTIME_DATALENS_KEPT_STATE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "algorithms/base/ids.h"
#include "algorithms/base/state.h"
#include "runtime/checkpoint/checkpoint_store.h"
#include "runtime/checkpoint/file_ops.h"

namespace gossamer {

struct KeptOptions {
  std::string folder;
  PeerId peer;           // whose
  std::string settings;  // lines "name value", which must not change
  int keep = 2;          // newest ones that stay
  FileOps* files = &SystemFileOps();  // outlives the opened state
};

// The state after some steps.  Used by one thread at a time.
class KeptState {
 public:
  // The caller makes sure that no other process uses the folder.  Returns
  // kFailedPrecondition if its state is of another peer or of other settings,
  // naming the first difference; kDataLoss if there are states and none is
  // whole.
  static absl::StatusOr<std::unique_ptr<KeptState>> Open(KeptOptions options);

  // The steps after which there is a whole state.
  const std::set<uint64_t>& steps() const { return steps_; }
  // The damage of the states that were passed over, by step.
  const std::map<uint64_t, std::string>& damaged() const { return damaged_; }
  // Durable when it returns OK; otherwise all earlier states are unchanged.
  absl::Status Save(uint64_t step,
                    absl::FunctionRef<void(StateVisitor&)> visit);
  // Overwrites the state with the one after a step of steps(), and removes all
  // later ones: the run takes another course from there.  After an error the
  // state must not be used.
  absl::Status GoTo(uint64_t step,
                    absl::FunctionRef<void(StateVisitor&)> visit);

 private:
  explicit KeptState(KeptOptions options);
  absl::Status CheckOwn(const CheckpointId& id);
  void VisitAll(StateVisitor& visitor,
                absl::FunctionRef<void(StateVisitor&)> visit);

  const KeptOptions options_;
  CheckpointStore store_;
  std::set<uint64_t> steps_;
  std::map<uint64_t, std::string> damaged_;
};

// The number of images that votes may have been released on, over all restarts
// of a student.
class PrivacyLedger {
 public:
  // Opens the ledger like KeptState, in a folder of its own.  Returns kDataLoss
  // if the last entry is damaged, so that the spent budget is unknown.
  static absl::StatusOr<std::unique_ptr<PrivacyLedger>> Open(
      KeptOptions options);

  uint64_t spent() const { return spent_; }
  // Makes `total` the least that is spent.  Durable when it returns OK; only
  // then may the votes that it pays for be released.  After an error it may
  // count as spent later.
  absl::Status Spend(uint64_t total);

 private:
  explicit PrivacyLedger(std::unique_ptr<KeptState> entries);

  const std::unique_ptr<KeptState> entries_;  // named by their totals
  uint64_t spent_ = 0;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_DATALENS_KEPT_STATE_H_
