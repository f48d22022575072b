// Whether a peer is well, and how one whose parameters or steps are lost begins
// anew.

#include <string>

#include "absl/strings/str_format.h"
#include "algorithms/base/status_macros.h"
#include "runtime/peer/peer.h"

namespace gossamer {
namespace {

// Who loses its parameters this often, with fewer good rounds between, will not
// get well.
constexpr uint64_t kMostSpoilt = 3;
constexpr uint64_t kHealthyRounds = 1000;
constexpr uint64_t kSkippedRounds = 100;

}  // namespace

// None of its steps has succeeded for long; mixing may bring a peer back.
bool Peer::CannotStep() const {
  return steps_skipped_ >=
         kSkippedRounds * static_cast<uint64_t>(spec_.steps_per_round);
}

// Of a centralized fleet, whose peers have one x.
absl::Status Peer::NobodySteps() const {
  return absl::DataLossError(absl::StrFormat(
      "round %d: no peer has had a gradient for %d steps of this one; look at "
      "the step_skipped events, lower the learning rates and go on from a "
      "checkpoint",
      round_, steps_skipped_));
}

bool Peer::Sick() const {
  if (spec_.centralized || decisions_.replays()) return false;
  return !sound_ || CannotStep();
}

// Its parameters are lost, not its process: it becomes another life, as after a
// crash that lost the disk, and gets what members have.  Without them it goes
// on, and contributes nothing.
Task<absl::Status> Peer::Heal() {
  asked_in_vain_ = false;
  if (rounds_since_life_ > kHealthyRounds) spoilt_in_a_row_ = 0;
  if (spoilt_in_a_row_ == kMostSpoilt) {
    co_return absl::DataLossError(absl::StrFormat(
        "round %d: this peer's %s again, though it took what members have "
        "%d times; look at its step_skipped events, its data and its machine, "
        "or at the learning rates if all peers end like this",
        round_, sound_ ? "steps have all failed" : "parameters are nonsense",
        kMostSpoilt));
  }
  const bool sound = sound_;
  const StopState stop = parts_.membership->stop();
  if (stop.committed || !parts_.membership->BeginAnew()) {
    co_return absl::OkStatus();
  }
  ++spoilt_;
  ++spoilt_in_a_row_;
  Tell("spoilt",
       absl::StrFormat("%s; this peer gives its edges up and begins anew with "
                       "what members have (%d of at most %d times in a row)",
                       sound ? "no step has succeeded for long"
                             : "its parameters are not finite, or beyond "
                               "mixing.largest_parameter",
                       spoilt_in_a_row_, kMostSpoilt));
  checkpoint_.reset();
  has_state_ = false;
  sound_ = true;
  steps_ = steps_skipped_ = 0;
  BeginLife();
  Task<absl::Status> join = Join();
  GOSSAMER_CO_RETURN_IF_ERROR(co_await join.result());
  if (stopped_ || left_) co_return absl::OkStatus();
  if (!Sound()) {
    co_return absl::DataLossError(absl::StrFormat(
        "round %d: this peer's parameters are nonsense, and the fleet begins "
        "anew: no member has others to give; start this peer again, so that it "
        "begins with its first ones",
        round_));
  }
  Tell("rejoined",
       absl::StrFormat("at round %d of view %d", round_, view_.epoch));
  co_return absl::OkStatus();
}

}  // namespace gossamer
