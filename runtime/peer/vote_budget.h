// The privacy budget of a student: the price of every step is in the ledger
// before its votes are released.
//
// This header knows nothing of votes, noise or rounds.

#ifndef GOSSAMER_RUNTIME_PEER_VOTE_BUDGET_H_
#define GOSSAMER_RUNTIME_PEER_VOTE_BUDGET_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "algorithms/base/state.h"
#include "algorithms/privacy/rdp_accountant.h"
#include "algorithms/privacy/settings.h"
#include "runtime/checkpoint/privacy_ledger.h"

namespace gossamer {

class VoteBudget {
 public:
  // `settings` and `ledger` outlive it; without a ledger nothing outlives the
  // process.  `noise_repeats`: a step that is taken again releases the same
  // votes, and costs nothing.
  VoteBudget(const DataLensSettings& settings, PrivacyLedger* ledger,
             bool noise_repeats);

  // Its part of a checkpoint.
  void VisitState(StateVisitor& visitor);
  // Counts what earlier incarnations spent, before the first step, after a
  // checkpoint if there is one.  kDataLoss if more was spent by the checkpoint
  // than the ledger says.
  absl::Status Resume();

  // True if the budget pays for another step.
  bool Affords() const;
  // Pays for a step.  Only if it returns OK may its votes be released.
  absl::Status Pay();
  // Spent so far, at the budget's delta.
  double epsilon() const;
  // "Epsilon 3.2 of 10 is spent".
  std::string Spent() const;

 private:
  uint64_t batch() const { return static_cast<uint64_t>(settings_.batch); }

  const DataLensSettings& settings_;
  PrivacyLedger* const ledger_;
  const bool noise_repeats_;
  uint64_t images_ = 0;  // that votes may have been released on
  RdpAccountant accountant_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_PEER_VOTE_BUDGET_H_
