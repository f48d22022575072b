// The specification of one peer's run, and the check of it.
//
// This header has plain values and knows nothing of configuration files
// (compose.h).

#ifndef GOSSAMER_RUNTIME_PEER_PEER_SPEC_H_
#define GOSSAMER_RUNTIME_PEER_PEER_SPEC_H_

#include <cstdint>
#include <limits>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "algorithms/base/ids.h"
#include "algorithms/base/problems.h"
#include "algorithms/compress/codec.h"
#include "algorithms/edge/edge_codec_state.h"
#include "algorithms/method/method.h"
#include "algorithms/optim/local_step.h"
#include "algorithms/privacy/settings.h"
#include "runtime/neighborhood/deadline.h"
#include "topology/mixing_schedule.h"

namespace gossamer {

inline constexpr int kMaxMixingRounds = 64;

struct PeerSpec {
  PeerId self;
  std::string run_id;
  uint64_t epoch = 0;  // of this incarnation, MakeEpoch
  uint64_t seed = 1;
  uint64_t rounds = 1000;
  // The founders of the fleet, where the method needs to know; 0: it does not.
  int peers = 0;
  Averaging averaging = Averaging::kGossip;
  bool centralized() const { return averaging != Averaging::kGossip; }
  std::string all_reduce = "ring";  // of exact means
  DataLensSettings votes = {};      // of Averaging::kVotes
  // h, 0 to kMaxOverlap, or kAutoOverlap: what the view says.
  int overlap_steps = 1;
  int mixing_rounds = 1;   // t; above 1 needs h = 0
  bool chebyshev = false;  // of the t; needs no deadline and a fixed schedule
  bool step_then_mix = false;
  // 0: the codec's, or less if snapshots are old; else refused if not stable.
  double gamma = 0;
  // Fewest others that everybody must mix with (MinDegree): a first view with
  // fewer is refused.
  int min_degree = 0;
  // Most members to all of which edges are kept where rows are drawn anew every
  // round (MemberEdges).
  int max_neighbors = kMaxNeighbors;
  // A peer with a parameter beyond limits.largest has diverged, as if it were
  // not finite.
  CorrectionLimits limits = {.largest = std::numeric_limits<float>::max()};
  // Most bytes of edges' replicas (ReplicaBudget); 0: no limit.
  uint64_t replica_memory = 0;
  DeadlinePolicy deadline;
  absl::Duration liveness_limit = absl::Minutes(10);
  // A neighbour that is silent for so long is suspected.
  absl::Duration suspect_after = absl::Seconds(2);
  int steps_per_round = 1;
  double ema = 0;  // decay of the generator's moving average; 0: none
  uint64_t evaluate_every = 0;    // rounds; 0: only at the end
  bool evaluates = false;         // this peer scores and draws samples
  std::string samples_folder;     // empty: no pictures
  uint64_t checkpoint_every = 0;  // rounds; 0: only when the run stops
  uint64_t configuration_hash = 0;
};

// Returns what of a spec is out of range, or cannot go together, under the
// names of its members.
Problems ProblemsOf(const PeerSpec& spec);

// kInvalidArgument if it cannot be, or not with this step and codec.
absl::Status CheckPeerSpec(const PeerSpec& spec, LocalStep& step,
                           const Codec& codec);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_PEER_PEER_SPEC_H_
