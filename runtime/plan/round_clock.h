// When each peer ends each round, given how long steps and messages take: the
// order of runtime/peer/peer.cc as arithmetic.
//
// Pure: no threads, sockets or clocks.  Knows nothing of payloads' contents,
// and of faults: nobody is late without a cause in the table.

#ifndef GOSSAMER_RUNTIME_PLAN_ROUND_CLOCK_H_
#define GOSSAMER_RUNTIME_PLAN_ROUND_CLOCK_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "algorithms/collective/all_reduce_schedule.h"
#include "runtime/plan/link_times.h"
#include "topology/mixing_schedule.h"

namespace gossamer {

// Of one peer, in seconds.
struct RoundCosts {
  double step = 0;
  double encode_once = 0;  // for all edges of a round together
  double encode_edge = 0;  // for each of them besides
  double apply_edge = 0;   // for each completed exchange
  double bytes = 0;        // of a payload with its frame
};

struct RoundTimes {
  double round = 0;     // seconds from one round to the next, of all peers
  double exchange = 0;  // the longest, from the round's begin to arrival
  double sent = 0;      // bytes by a peer in a round, mean
};

// The rows of some rounds of a schedule, which many predictions share.
class ScheduleRounds {
 public:
  explicit ScheduleRounds(const MixingSchedule& schedule);
  int size() const { return static_cast<int>(rows_[0].size()); }
  bool drawn() const { return drawn_; }  // anew every round
  // By rank; what comes after the rounds that were kept repeats them.
  const std::vector<MixingRow>& Rows(int round) const {
    return rows_[static_cast<size_t>(round) % rows_.size()];
  }

 private:
  bool drawn_;
  std::vector<std::vector<MixingRow>> rows_;
};

// Runs the rounds with `overlap` = h, the recursion for peer i and its
// neighbours j in round k:
//   sent_ij(k)  = max(begin_i(k) + encoding, sent_ij(k-1)) + bytes / rate_ij
//   there_ij(k) = sent_ij(k) + latency_ij
//   h = 0:  begin_i(k+1) = max(there_ji(k)) + applying + step
//   h > 0:  begin_i(k+1) = max(begin_i(k) + encoding + step,
//                              there_ji(k+1-h)) + applying
// and takes the mean of the later half of some hundred rounds.  Equal links
// with latency and transfer L + B, no other costs: h = 0 gives step + L + B, h
// > 0 max(step, B, (L + B) / h).
RoundTimes PredictRound(const LinkTimes& links, const ScheduleRounds& schedule,
                        const RoundCosts& costs, int overlap);

// Seconds of a centralized round: a step, then the all-reduce of `floats`
// floats by `schedule`; adding costs nothing.
double PredictAllReduceRound(const LinkTimes& links,
                             const AllReduceSchedule& schedule, size_t floats,
                             double step);

struct AllReducePrediction {
  std::string_view name;
  double round = 0;
};

// The fastest schedule there is.
AllReducePrediction FastestAllReduce(const LinkTimes& links, size_t floats,
                                     double step);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_PLAN_ROUND_CLOCK_H_
