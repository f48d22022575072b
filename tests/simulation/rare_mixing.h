// What a small share of scenarios mixes by: graphs, weights, overlaps and
// rhythms that DrawScenario does not draw otherwise.
//
// Knows nothing of faults.

#ifndef GOSSAMER_TESTS_SIMULATION_RARE_MIXING_H_
#define GOSSAMER_TESTS_SIMULATION_RARE_MIXING_H_

#include "tests/simulation/draws.h"
#include "tests/simulation/scenario.h"

namespace gossamer::simulation {

// So many join later, `most` at most, that fewer have a schedule, too: they
// come one by one.
int LateOf(const Scenario& scenario, int most);

// Of a fixed schedule, now and then: erdos-renyi, an edge-list, or uniform
// weights.  `late` becomes what that allows.
void DrawRareGraph(Scenario& scenario, Draws draws);

// Of a fixed schedule over slow links with deadlines, now and then: rounds of
// one length, below that of an exchange.
void DrawClockwork(Scenario& scenario, Draws draws);

// Now and then an overlap of 4 to kMaxOverlap in place of a smaller one.
void DrawDeepOverlap(Scenario& scenario, Draws draws);

}  // namespace gossamer::simulation

#endif  // GOSSAMER_TESTS_SIMULATION_RARE_MIXING_H_
