// Checks of a fleet once it is calm, of its parameters and of its edges.
//
// This header knows nothing of how peers are run, or of time.

#ifndef GOSSAMER_TESTS_SIMULATION_END_CHECKS_H_
#define GOSSAMER_TESTS_SIMULATION_END_CHECKS_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/compress/codec.h"
#include "tests/simulation/correction_ledger.h"
#include "tests/simulation/scenario.h"
#include "topology/view.h"

namespace gossamer::simulation {

// 1/M Σ‖x_i − x̄‖².
double ConsensusDistance(const std::vector<std::span<const float>>& all);

// The bound to which the calm's mixing is held.
enum class Mixing {
  kNone,        // none: one optimizer, or a dual that goes on pushing
  kWaits,       // peers wait for each other: the contraction of their matrices
  kCoarse,      // peers wait, but codecs leave out much of a difference
  kDeadlines,   // an edge mixes when both ends are in time
  kClipped,     // corrections are steps of one length
  kSmallSteps,  // steps hardly get anywhere in so many rounds
};
Mixing MixingOf(const Scenario& scenario, const Codec& codec);
// Returns the bound's name in JSON, such as "small_steps"; "" for kNone.
std::string_view NameOf(Mixing mixing);

// Returns the consensus distance that `scenario.calm_rounds` of mixing may
// leave of `before`.  That is the largest distance of the calm's first quarter,
// in which optimizers still act on their last gradients.
double DistanceBound(const Scenario& scenario, const Codec& codec,
                     double before,
                     const std::vector<std::span<const float>>& all);

// Returns a description of the neighbours of `view` that do not mix from round
// `since` on, in which it is calm.  Any silent pair counts if peers wait for
// each other or run like clockwork, else more than half of all.  Returns "" if
// all is well.
std::string FindSilence(const Scenario& scenario, const View& view,
                        const CorrectionLedger& ledger, uint64_t since);

}  // namespace gossamer::simulation

#endif  // GOSSAMER_TESTS_SIMULATION_END_CHECKS_H_
