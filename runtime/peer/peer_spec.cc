#include "runtime/peer/peer_spec.h"

#include "absl/strings/str_cat.h"
#include "topology/fleet/membership.h"

namespace gossamer {

// The configuration's checks say more and come earlier; these hold for whoever
// makes a Peer, as tests and the rehearsal do.
absl::Status CheckPeerSpec(const PeerSpec& spec, LocalStep& step,
                           const Codec& codec) {
  if (spec.overlap_steps < kAutoOverlap || spec.overlap_steps > kMaxOverlap) {
    return absl::InvalidArgumentError(absl::StrCat(
        "overlap_steps ", spec.overlap_steps, ": must be 0 to ", kMaxOverlap));
  }
  // A phase has eight bits of an exchange's id (PROTOCOL.md 1).  With overlap
  // there is one exchange a round: the next could only begin once this one is
  // complete.
  if (spec.mixing_rounds < 1 || spec.mixing_rounds >= kMaxPhases ||
      (spec.mixing_rounds > 1 && spec.overlap_steps != 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("mixing_rounds ", spec.mixing_rounds,
                     ": must be 1 to 255, and above 1 needs overlap_steps 0"));
  }
  if (spec.chebyshev && spec.deadline.kind != DeadlinePolicy::Kind::kNone) {
    return absl::InvalidArgumentError(
        "chebyshev gossip needs deadline none: what arrives late would be "
        "accelerated at one end only");
  }
  const MixingHooks* const hooks = step.hooks();
  if (hooks != nullptr && hooks->in_turn() &&
      (!spec.step_then_mix || spec.overlap_steps != 0 ||
       !codec.needs_replica() || codec.fragments() > 1 ||
       spec.replica_memory != 0)) {
    return absl::InvalidArgumentError(
        "a step with a dual variable needs overlap_steps 0, order "
        "step-then-mix and replicas of all parameters on every edge: the dual "
        "follows what mixing does to the step just made");
  }
  if (spec.gamma < 0 || spec.gamma > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("gamma ", spec.gamma, " is not in [0, 1]"));
  }
  return absl::OkStatus();
}

}  // namespace gossamer
