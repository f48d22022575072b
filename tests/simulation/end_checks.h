// What must hold of a fleet once it is calm: of its parameters and of its
// edges.
//
// Knows nothing of how peers are run, or of time.

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

// What the calm's mixing is held to.
enum class Mixing {
  kNone,        // nothing: one optimizer, or a dual that goes on pushing
  kWaits,       // peers wait for each other: what their matrices say
  kCoarse,      // so do they, but codecs leave out much of a difference
  kDeadlines,   // an edge mixes when both ends are in time
  kClipped,     // in steps of one length
  kSmallSteps,  // that hardly get anywhere in so many rounds
};
Mixing MixingOf(const Scenario& scenario, const Codec& codec);
// "small_steps"; of kNone "".
std::string_view NameOf(Mixing mixing);

// The consensus distance that `scenario.calm_rounds` of mixing may leave of
// `before`, the largest of their first quarter, in which optimizers still act
// on the last gradients.
double DistanceBound(const Scenario& scenario, const Codec& codec,
                     double before,
                     const std::vector<std::span<const float>>& all);

// That neighbours of `view` do not mix from round `since` on, in which it is
// calm: any of them where they wait for each other or run like clockwork, else
// more than half.  "" if they do.
std::string FindSilence(const Scenario& scenario, const View& view,
                        const CorrectionLedger& ledger, uint64_t since);

}  // namespace gossamer::simulation

#endif  // GOSSAMER_TESTS_SIMULATION_END_CHECKS_H_
