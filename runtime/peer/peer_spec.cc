#include "runtime/peer/peer_spec.h"

#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "algorithms/base/status_macros.h"
#include "algorithms/collective/all_reduce.h"
#include "topology/fleet/membership.h"
#include "topology/fleet/protocol.h"

namespace gossamer {

Problems ProblemsOf(const PeerSpec& spec) {
  Problems problems;
  // A round and a phase share 64 bits of an exchange's name.
  problems.Range<uint64_t>("rounds", spec.rounds, 1, kMaxRound);
  problems.Range("overlap_steps", spec.overlap_steps, kAutoOverlap,
                 kMaxOverlap);
  problems.Range("mixing_rounds", spec.mixing_rounds, 1, kMaxMixingRounds);
  problems.Range("gamma", spec.gamma, 0.0, 1.0);
  problems.NotNegative("clip_radius", spec.limits.clip_radius);
  problems.Range("steps_per_round", spec.steps_per_round, 1, 1 << 20);
  problems.Range("ema", spec.ema, 0.0, 0.999999);
  std::vector<std::string_view> all_reduces = AllReduce::Names();
  all_reduces.push_back("auto");
  problems.OneOf("all_reduce", spec.all_reduce, all_reduces);
  if (!problems.empty()) return problems;
  if (spec.gamma > 0 && spec.overlap_steps == kAutoOverlap) {
    problems.Refuse("gamma",
                    "is given, but with mixing.overlap_steps: auto the step "
                    "size follows the overlap: leave it out, or fix the "
                    "overlap");
  }
  if (spec.mixing_rounds > 1 && spec.overlap_steps != 0) {
    // With overlap there is one exchange a round: the next could only begin
    // once this one is complete.
    problems.Refuse("mixing_rounds", "is ", spec.mixing_rounds,
                    ", which needs mixing.overlap_steps: 0 (the rounds of one "
                    "iteration follow one another)");
  }
  return problems;
}

absl::Status CheckPeerSpec(const PeerSpec& spec, LocalStep& step,
                           const Codec& codec) {
  GOSSAMER_RETURN_IF_ERROR(ProblemsOf(spec).ToStatus());
  if (spec.chebyshev && spec.deadline.kind != DeadlinePolicy::Kind::kNone) {
    return absl::InvalidArgumentError(
        "chebyshev gossip needs deadline none: what arrives late would be "
        "accelerated at one end only");
  }
  const MixingHooks* const hooks = step.hooks();
  if (hooks != nullptr && hooks->mixes_every_step() &&
      (!spec.step_then_mix || spec.overlap_steps != 0 ||
       !codec.needs_replica() || codec.parts() > 1 || codec.joint() ||
       spec.replica_memory != 0)) {
    return absl::InvalidArgumentError(
        "a step with a dual variable needs overlap_steps 0, steps "
        "before mixing and replicas of all parameters on every edge: the dual "
        "follows what mixing does to the step just made");
  }
  return absl::OkStatus();
}

}  // namespace gossamer
