#include "runtime/peer/vote_budget.h"

#include "absl/strings/str_format.h"
#include "algorithms/base/status_macros.h"

namespace gossamer {
namespace {

RdpAccountant AccountantOf(const DataLensSettings& s) {
  return *RdpAccountant::Create(VoteSensitivity(s), s.sigma);
}

}  // namespace

VoteBudget::VoteBudget(const DataLensSettings& settings, PrivacyLedger* ledger,
                       bool noise_repeats)
    : settings_(settings),
      ledger_(ledger),
      noise_repeats_(noise_repeats),
      accountant_(AccountantOf(settings)) {}

void VoteBudget::VisitState(StateVisitor& visitor) {
  visitor.Counter("images", images_);
}

absl::Status VoteBudget::Resume() {
  if (ledger_ != nullptr) {
    // The ledger is written before the state, so it can only be ahead of it.
    if (images_ > ledger_->spent()) {
      return absl::DataLossError(absl::StrFormat(
          "the checkpoint was paid for with %d images, of which the ledger "
          "knows %d: it is missing or not this run's, and without it nobody "
          "knows what is spent. Bring back its folder, spent/ of this peer",
          images_, ledger_->spent()));
    }
    // A repeated step adds other noise to the same votes, so both releases
    // count.
    if (!noise_repeats_) images_ = ledger_->spent();
  }
  accountant_ = AccountantOf(settings_);
  accountant_.Spend(images_);
  return absl::OkStatus();
}

bool VoteBudget::Affords() const {
  return accountant_.Epsilon(settings_.budget.delta, batch()) <=
         settings_.budget.epsilon;
}

// The price is on disk before the votes that it pays for are released.  A
// student that dies between the two has paid for nothing, and no vote is out
// that is not paid for.
absl::Status VoteBudget::Pay() {
  if (ledger_ != nullptr) {
    GOSSAMER_RETURN_IF_ERROR(ledger_->Spend(images_ + batch()));
  }
  images_ += batch();
  accountant_.Spend(batch());
  return absl::OkStatus();
}

double VoteBudget::epsilon() const {
  return accountant_.Epsilon(settings_.budget.delta);
}

std::string VoteBudget::Spent() const {
  return absl::StrFormat("Epsilon %.4g of %g is spent", epsilon(),
                         settings_.budget.epsilon);
}

}  // namespace gossamer
