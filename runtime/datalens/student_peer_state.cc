// The state that a student keeps, and its restoration.

#include <cstdint>
#include <set>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "algorithms/base/status_macros.h"
#include "runtime/datalens/student_peer.h"

namespace gossamer {

void StudentPeer::VisitState(StateVisitor& visitor) {
  visitor.Counter("step", progress_.step);
  visitor.Counter("queries", progress_.queries);
  PrefixedVisitor own(visitor, "student.");
  student_->VisitState(own);
}

absl::Status StudentPeer::Restore() {
  if (options_.kept == nullptr) return absl::OkStatus();
  const std::set<uint64_t>& steps = options_.kept->steps();
  if (!steps.empty()) return GoTo(*steps.rbegin());
  Charge();
  return absl::OkStatus();
}

absl::Status StudentPeer::GoTo(uint64_t step) {
  whole_ = false;
  GOSSAMER_RETURN_IF_ERROR(
      options_.kept->GoTo(step, [this](StateVisitor& v) { VisitState(v); }));
  // The ledger is written before the state, so it can only be ahead of it.
  if (progress_.queries > options_.ledger->spent()) {
    return absl::DataLossError(absl::StrFormat(
        "the state after step %d was paid for with %d images, of which the "
        "ledger knows %d: it is missing or not this run's, and without it "
        "nobody knows what is spent. Bring back its folder",
        step, progress_.queries, options_.ledger->spent()));
  }
  Charge();
  whole_ = true;
  return absl::OkStatus();
}

// A repeated step adds other noise to the same votes, so both releases count.
void StudentPeer::Charge() {
  if (!options_.noise_repeats) progress_.queries = options_.ledger->spent();
  accountant_ = *RdpAccountant::Create(VoteSensitivity(options_.settings),
                                       options_.settings.sigma);
  accountant_.Spend(progress_.queries);
  progress_.epsilon = accountant_.Epsilon(options_.settings.budget.delta);
}

absl::Status StudentPeer::Keep() {
  if (options_.kept == nullptr || !whole_ ||
      options_.kept->steps().contains(progress_.step)) {
    return absl::OkStatus();
  }
  return options_.kept->Save(progress_.step,
                             [this](StateVisitor& v) { VisitState(v); });
}

}  // namespace gossamer
