// A ledger of the corrections that every end of every edge applied.  It checks
// that the other end applied the opposite, exactly once.
//
// Both ends apply min(c)·D of one exchange with opposite signs; the hash of its
// bits, negated at the end with the larger id, must then be the same.  An
// incarnation that goes on from a checkpoint has undone the corrections after
// it.  A correction may lack its opposite only if a peer of its incarnation
// crashed, or left no record of the edge to its next incarnation, and then only
// after the last one that the other end applied, unless there was a record.
// This header knows nothing of networks or codecs.

#ifndef GOSSAMER_TESTS_SIMULATION_CORRECTION_LEDGER_H_
#define GOSSAMER_TESTS_SIMULATION_CORRECTION_LEDGER_H_

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/base/ids.h"
#include "runtime/telemetry/metrics.h"

namespace gossamer::simulation {

// One end of an edge in one incarnation.
struct EdgeEndName {
  PeerId self;
  PeerId other;
  uint64_t epoch = 0;
  uint64_t peer_epoch = 0;
};

class CorrectionLedger {
 public:
  // Each method returns a description of the error, or "".

  void Begin(PeerId peer, uint64_t process) { processes_[peer] = process; }
  void Crash(PeerId peer, uint64_t process) {
    crashed_.insert({peer, process});
  }
  // Takes an event that `peer` reports.  A peer that others have evicted and
  // given up, and that then reports a lost edge itself, has lost it as by a
  // crash: a service without its disk may admit it again by an old view, and
  // the peer never learns of the eviction.
  void OnEvent(PeerId peer, const Event& event);
  // That incarnation of `peer` has this epoch.
  std::string Own(PeerId peer, uint64_t process, uint64_t epoch);
  // The end has just applied exchange `id`, or that part of it which begins at
  // an offset of the parameters.
  std::string Apply(const EdgeEndName& end, ExchangeId id, uint64_t hash,
                    size_t offset = 0);
  // An incarnation of `before.self` goes on from a record of the cut before
  // `cut`, in which exchanges below `done` were complete.
  void Resume(const EdgeEndName& before, uint64_t process, ExchangeId done,
              ExchangeId cut);
  // The check at the end: no more corrections will be applied.
  std::string Finish() const;

  uint64_t corrections() const { return corrections_; }
  // Returns the round of the newest correction between two peers, 0 if they had
  // none.
  uint64_t NewestRound(PeerId a, PeerId b) const;

 private:
  struct Part {
    ExchangeId id = 0;
    size_t offset = 0;
    friend auto operator<=>(const Part&, const Part&) = default;
  };
  using Applied = std::vector<std::pair<Part, uint64_t>>;  // in order
  struct Incarnation {
    std::array<Applied, 2> applied;  // by the smaller peer id, by the larger
  };
  // The pair, the smaller id first, and their epochs in that order.
  using Key = std::array<uint64_t, 4>;
  struct Past {
    Key key;
    ExchangeId cut = 0;
    ExchangeId done = 0;
  };

  static Key KeyOf(const EdgeEndName& end);
  // Returns the record from which an incarnation of `self` went on: the one
  // that has `epoch`, or the present one.  Null if there was none.
  const Past* PastOf(const EdgeEndName& end, uint64_t process) const;
  const Past* PastOf(const EdgeEndName& end, const Past& later) const;
  static const uint64_t* Find(const Applied& applied, Part part);
  // Returns whether the end of this side has undone or lost corrections.
  bool Excused(const Key& key, int side) const;
  // Returns whether both ends went on from records of the incarnation, of
  // different cuts.
  bool CutApart(const Key& key) const;

  std::map<Key, Incarnation> incarnations_;
  // The incarnation that has an epoch; before it is known, the newest.
  uint64_t ProcessOf(PeerId peer, uint64_t epoch) const;

  std::map<PeerId, uint64_t> processes_;  // the newest incarnations
  std::map<std::pair<PeerId, uint64_t>, uint64_t> process_of_;  // by epoch
  // Keyed by peer, other peer and the incarnation that went on.
  std::map<std::array<uint64_t, 3>, Past> resumed_;
  // The cuts from which each side went on.
  std::map<Key, std::array<std::set<ExchangeId>, 2>> cuts_;
  std::set<std::pair<PeerId, uint64_t>> crashed_;
  std::set<std::pair<PeerId, uint64_t>> evicted_;
  std::map<std::pair<PeerId, PeerId>, ExchangeId> newest_;  // smaller id first
  uint64_t corrections_ = 0;
};

}  // namespace gossamer::simulation

#endif  // GOSSAMER_TESTS_SIMULATION_CORRECTION_LEDGER_H_
