// The number of rounds behind which an exchange should hide, from the times
// that peers measure.
//
// This header knows nothing of views, heartbeats or clocks.

#ifndef GOSSAMER_TOPOLOGY_FLEET_OVERLAP_CHOOSER_H_
#define GOSSAMER_TOPOLOGY_FLEET_OVERLAP_CHOOSER_H_

#include <cstdint>
#include <optional>
#include <span>

#include "topology/fleet/membership.h"

namespace gossamer {

// Exchanges that every peer must have measured with the present formats before
// a choice is made, and before one of a smaller h.  Few are enough to see that
// every round waits; the choice holds from a dozen rounds later on, when all
// have heard of it.
inline constexpr uint64_t kExchangesToChoose = 3, kExchangesToGoBack = 32;

class OverlapChooser {
 public:
  // The h in [1, kMaxOverlap] that hides the exchanges of this fleet, or
  // `current` (1 or more) if the reports do not say, or not clearly: a smaller
  // h needs a quarter to spare.  `rounds`: those of the slowest peer in the
  // present view.  The caller takes the h that is returned.
  //
  // Fast peers see slow ones as late; that no overlap can hide.  So only those
  // count that are nearly as slow as the slowest, which sets the pace.
  //
  // Peers may be ahead of each other by h rounds, and an exchange then takes
  // long though no round waits: that asks for no larger h.
  //
  // On a link that is full, exchanges take longer the more of them are under
  // way, and no h hides them.  A larger h that brought nothing is the last,
  // until exchanges take another time for long.
  int Choose(std::span<const RoundTiming> peers, int current, uint64_t rounds);

 private:
  struct Raise {
    int from = 0, to = 0;
    double exchange = 0;  // before it, in seconds
  };
  int Larger(int enough, int current, double exchange, uint64_t measured);

  std::optional<Raise> raised_;  // the last one, until it has been judged
  // Seconds of an exchange, on a link that is full.
  std::optional<double> full_;
  uint64_t hold_rounds_ =
      kExchangesToGoBack;   // rounds before one of a smaller h
  bool went_back_ = false;  // by the last change
};

}  // namespace gossamer

#endif  // GOSSAMER_TOPOLOGY_FLEET_OVERLAP_CHOOSER_H_
