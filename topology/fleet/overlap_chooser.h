// The number of steps behind which an exchange should hide, from the times that
// peers measure.
//
// Pure.  Knows nothing of views or heartbeats.

#ifndef GOSSAMER_TOPOLOGY_FLEET_OVERLAP_CHOOSER_H_
#define GOSSAMER_TOPOLOGY_FLEET_OVERLAP_CHOOSER_H_

#include <cstdint>
#include <span>

#include "topology/fleet/membership.h"

namespace gossamer {

// Rounds that every peer must have measured before a choice is made, and before
// one of a smaller h.  Few are enough to see that every round waits; the choice
// holds from a dozen rounds later on, when all have heard of it.
inline constexpr uint64_t kRoundsToChoose = 5;
inline constexpr uint64_t kRoundsToGoBack = 32;

// The h in [1, kMaxOverlap] that hides the exchanges of this fleet, or
// `current` (1 or more) if the reports do not say, or not clearly: a smaller h
// needs a quarter to spare.
//
// Fast peers see slow ones as late; that no overlap can hide.  So only those
// count that are nearly as slow as the slowest, which sets the pace.
int ChooseOverlap(std::span<const Tempo> peers, int current);

}  // namespace gossamer

#endif  // GOSSAMER_TOPOLOGY_FLEET_OVERLAP_CHOOSER_H_
