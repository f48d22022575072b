// What one side of a DataLens run keeps in a folder, to go on from when it is
// started again: its own state after some steps, and, at the student, how much
// of the privacy budget is spent.
//
// A thin shell around runtime/checkpoint; knows nothing of networks, noise or
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
  std::string settings;  // lines "name value"; all must be as they were
  int keep = 2;          // newest ones that stay
  FileOps* files = &SystemFileOps();  // outlives what is opened
};

// The state after some steps.  One thread at a time.
class KeptState {
 public:
  // The caller sees to it that no other process uses the folder.
  // kFailedPrecondition: what is there is of another peer or of other settings,
  // the first of which is named.
  // kDataLoss: there are states, and none is whole.
  static absl::StatusOr<std::unique_ptr<KeptState>> Open(KeptOptions options);

  // After which there is a state that is whole.
  const std::set<uint64_t>& steps() const { return steps_; }
  // Of those passed over, what is wrong with them.
  const std::map<uint64_t, std::string>& damaged() const { return damaged_; }
  // Durable when it returns OK; else all earlier ones are as they were.
  absl::Status Save(uint64_t step,
                    absl::FunctionRef<void(StateVisitor&)> visit);
  // Overwrites the state with that after one of steps(), and forgets all after
  // it: another past begins there.  On errors it must not be used.
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

// How many images votes may have been released on, over all lives of a student.
class PrivacyLedger {
 public:
  // As KeptState, in a folder of its own.  kDataLoss: the last entry is
  // damaged, so that nobody knows what is spent.
  static absl::StatusOr<std::unique_ptr<PrivacyLedger>> Open(
      KeptOptions options);

  uint64_t spent() const { return spent_; }
  // At least `total` from now on.  Durable when it returns OK: only then may
  // what they buy be released.  On errors they may count as spent later.
  absl::Status Spend(uint64_t total);

 private:
  explicit PrivacyLedger(std::unique_ptr<KeptState> entries);

  const std::unique_ptr<KeptState> entries_;  // named by their totals
  uint64_t spent_ = 0;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_DATALENS_KEPT_STATE_H_
