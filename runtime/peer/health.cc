#include "runtime/peer/health.h"

#include "absl/strings/str_format.h"

namespace gossamer {
namespace {

// A recovery that was followed by more rounds than these was a success: the
// count of recoveries in a row begins again.
constexpr uint64_t kHealthyRounds = 1000;
// A peer gives its parameters up when the steps of so many rounds have all
// failed.  Sooner would be wrong: mixing alone may bring it back to where
// gradients are finite.
constexpr uint64_t kSkippedRounds = 100;

}  // namespace

bool Health::Check() {
  sound_ = state_->Sound();
  if (sound_) donation_failed_ = false;  // it can be asked again
  return sound_;
}

// The peer that asks may be the one that this peer waits for: it must not wait
// any longer, but recover, or begin anew with all others.
void Health::OnDonationFailed() {
  sound_ = false;
  donation_failed_ = true;
}

bool Health::CannotStep() const {
  return skipped_ >=
         kSkippedRounds * static_cast<uint64_t>(spec_.steps_per_round);
}

absl::Status Health::MayRecover() {
  donation_failed_ = false;
  if (rounds_ > kHealthyRounds) in_a_row_ = 0;
  if (in_a_row_ < kMaxInARow) return absl::OkStatus();
  return absl::DataLossError(absl::StrFormat(
      "round %d: this peer's %s again, though it took what members have "
      "%d times; look at its step_skipped events, its data and its machine, "
      "or at the learning rates if all peers end like this",
      state_->round(),
      sound_ ? "steps have all failed" : "parameters are nonsense",
      kMaxInARow));
}

void Health::Recover() {
  ++recoveries_;
  ++in_a_row_;
  sound_ = true;
  skipped_ = 0;
}

}  // namespace gossamer
