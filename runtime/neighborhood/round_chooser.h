// The choice of the round that a peer takes next: the one after, or its
// neighbours', if it was left behind (PROTOCOL.md 11).
//
// Far behind, a peer would use each payload of a faster one only when it gets
// to that round, and the edge would starve.  No peer may be dragged along by
// one that runs away, or says so: one peer alone is followed as if it were at
// most 16 times as fast as this one.  This header is pure and knows nothing of
// edges, views or clocks.

#ifndef GOSSAMER_RUNTIME_NEIGHBORHOOD_ROUND_CHOOSER_H_
#define GOSSAMER_RUNTIME_NEIGHBORHOOD_ROUND_CHOOSER_H_

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

namespace gossamer {

// Rounds of the others that a peer knows at the end of its own.
struct RoundsSeen {
  std::vector<uint64_t> heard = {};  // by neighbours, ascending
  // The rounds among these of neighbours with whom some of the last rounds
  // mixed nothing.
  std::vector<uint64_t> missing = {};
  // Rounds that this peer has not decided and payloads have come for, one entry
  // a neighbour, ascending.
  std::vector<uint64_t> waiting = {};
  bool static_graph = true;  // the same neighbours every round
  // The most rounds in a row that have no exchange, in which nobody waits.
  uint64_t idle = 0;
  bool pair = false;  // the fleet is of two: nobody else can tell
  // The largest and the second largest of the fleet, as of the service's last
  // answer.
  std::optional<uint64_t> fleet = {}, second = {};
  uint64_t last = UINT64_MAX;  // of the run: nobody jumps beyond it
};

class RoundChooser {
 public:
  // The service has answered; this peer is in `round`.
  void Answered(uint64_t round);

  // After `round`: round + 1, or one that others have got to, if it is more
  // than overlap + 2 + idle ahead of that.
  //
  // Targets of such a jump:
  // (a) the round of most neighbours: the median, or the second largest with
  //     random neighbours;
  // (b) a round that two peers of the fleet have reached and one neighbour is
  //     seen at;
  // (c) one beyond the furthest neighbour, if its lead has been constant for 16
  //     rounds: it neither runs away nor waits, and finds this peer there.
  // On the way it stops where payloads of most neighbours wait: an end without
  // room for another payload mixes nothing with a peer that passes its payloads
  // over each time.
  //
  // If the lead is smaller, the peer follows the furthest neighbour whose
  // payloads it misses, even over a part of a round: no peer waits for one that
  // is behind, and an edge whose ends are apart mixes in every second or third
  // round.  So it is on a static graph only: on others a neighbour may be ahead
  // without having met this peer.
  //
  // A round that one peer alone seems to have reached is followed only after a
  // sixteenth of the lead in rounds of its own: a false number costs its sender
  // nothing.
  uint64_t Next(uint64_t round, int overlap, const RoundsSeen& seen);

 private:
  struct Answer {
    uint64_t round = 0;
    uint64_t made = 0;  // rounds by then
  };

  static uint64_t ChooseAmongWaiting(uint64_t next, uint64_t target,
                                     const RoundsSeen& seen);
  std::optional<uint64_t> Steady(uint64_t next, int overlap,
                                 const RoundsSeen& seen);

  // The largest round that this peer would go to; counts that it was asked.
  uint64_t Believed(uint64_t round, int overlap, uint64_t since,
                    const RoundsSeen& seen);

  // Of the furthest neighbour, in the last rounds in which it was too far.
  std::deque<uint64_t> leads_;
  uint64_t made_ = 0;   // rounds, not those passed over
  uint64_t alone_ = 0;  // of these, since a jump, with one alone before all
  // This peer's at the last answers, the older first.
  std::array<std::optional<Answer>, 2> answered_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_NEIGHBORHOOD_ROUND_CHOOSER_H_
