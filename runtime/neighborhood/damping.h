// Keeps mixing stable on an edge whose corrections come late (PROTOCOL.md 12).
//
// A correction acts on what x was when its exchange began, `age` rounds ago.
// Mixing by γ(I − W) is stable only below 2 sin(π/(2(2·age + 1)))/(1 − λ_min)
// (mixing_matrix.h, StableStepSize).  γ is chosen for exchanges that are
// on time.  Deadlines let peers fall rounds behind each other, and then the
// fleet would diverge, first where neighbours are random.  So an end lowers its
// coefficient by what is stable at the ages that it has seen lately; both ends
// use the smaller one (PROTOCOL.md 4.4), which leaves the mean where it is.  A
// function of what was completed when, so a replay gives the same.
//
// This header knows nothing of clocks, deadlines and other edges.

#ifndef GOSSAMER_RUNTIME_NEIGHBORHOOD_DAMPING_H_
#define GOSSAMER_RUNTIME_NEIGHBORHOOD_DAMPING_H_

#include <bit>
#include <cstdint>
#include <deque>
#include <optional>

#include "algorithms/base/ids.h"
#include "algorithms/edge/edge_codec_state.h"

namespace gossamer {

class Damping final : public CorrectionObserver {
 public:
  void OnCorrection(const Correction& correction) override;
  // This round has the edge in its row; rounds ascend, and repeat for phases.
  void Emitted(uint64_t round);
  // All exchanges below `limit` that could be have been completed; those of
  // the round before `limit` are on time.
  void Completed(ExchangeId limit);

  // The largest recent lateness of corrections, in rounds.  Each correction
  // lowers it by a quarter.
  int lateness() const { return lateness_; }
  // Of the last 16 rounds that had the edge in their row and are due, those at
  // whose end nothing was corrected.
  int missed() const { return std::popcount(missed_); }
  // The factor of the coefficient, in (0, 1]; 1 as long as nothing is late.
  // `stable`: the step size that is safe at age 0 over the one in use;
  // `overlap`: h.
  double Factor(double stable, int overlap) const;

 private:
  std::optional<ExchangeId> oldest_;  // since Completed()
  int lateness_ = 0;
  std::deque<uint64_t> emitted_;  // rounds that are not due yet
  uint64_t last_ = 0;             // that was emitted
  uint16_t missed_ = 0;           // the last round is the lowest bit
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_NEIGHBORHOOD_DAMPING_H_
