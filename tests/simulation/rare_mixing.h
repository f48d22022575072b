// Mixing of a small share of scenarios: graphs, weights, overlaps and rhythms
// that DrawScenario does not draw otherwise.
//
// This header knows nothing of faults.

#ifndef GOSSAMER_TESTS_SIMULATION_RARE_MIXING_H_
#define GOSSAMER_TESTS_SIMULATION_RARE_MIXING_H_

#include "tests/simulation/draws.h"
#include "tests/simulation/scenario.h"

namespace gossamer::simulation {

// Returns how many peers may join later, at most `most`.  The schedule must
// exist for every smaller fleet on the way, since peers come one by one.
int LateOf(const Scenario& scenario, int most);

// Gives a share of the scenarios whose graph is the same every round an
// erdos-renyi graph or an edge list.  `late` becomes what that graph allows.
void DrawRareGraph(Scenario& scenario, Draws draws);

// Gives a share of the fixed schedules over slow links with deadlines rounds of
// one length, below that of an exchange.
void DrawClockwork(Scenario& scenario, Draws draws);

// Replaces a share of the overlaps by 4 to kMaxOverlap.
void DrawDeepOverlap(Scenario& scenario, Draws draws);

}  // namespace gossamer::simulation

#endif  // GOSSAMER_TESTS_SIMULATION_RARE_MIXING_H_
