// Checks the edges of one peer after each of its events: epochs and frontiers
// only rise, and what an edge holds stays within its bounds.
//
// This header knows nothing of corrections, which the ledger follows.

#ifndef GOSSAMER_TESTS_SIMULATION_EDGE_WATCH_H_
#define GOSSAMER_TESTS_SIMULATION_EDGE_WATCH_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "algorithms/base/ids.h"
#include "algorithms/edge/edge.h"
#include "runtime/neighborhood/neighborhood.h"
#include "tests/simulation/correction_ledger.h"
#include "topology/view.h"

namespace gossamer::simulation {

struct EdgeLimits {
  size_t parameters = 0;  // bytes of x
  uint64_t replicas = 0;  // PeerSpec::replica_memory; 0: not checked
};

class EdgeWatch {
 public:
  // Of an incarnation of `self`.  `ledger` outlives it.
  EdgeWatch(PeerId self, uint64_t process, EdgeLimits limits,
            CorrectionLedger& ledger,
            std::function<void(const std::string& what)> violation)
      : self_(self),
        process_(process),
        limits_(limits),
        ledger_(ledger),
        violation_(std::move(violation)) {}

  // Another incarnation begins; nothing is known of its edges.
  void BeginIncarnation(uint64_t process) {
    process_ = process;
    seen_.clear();
  }
  // The replica of this edge, or of all that there are, was not chosen by the
  // present view.
  void ExcuseReplica(PeerId other) { excused_.insert(other); }
  void ExcuseReplicas() {
    for (const auto& [peer, seen] : seen_) excused_.insert(peer);
  }
  // A frame from a peer moves its edge alone, `heard`; every other event may
  // move any.
  void Check(const Neighborhood& edges, std::optional<PeerId> heard);
  // Checks the one limit of memory that a peer is given.
  void CheckReplicas(const Neighborhood& edges, const View& view) const;

 private:
  struct Seen {  // of an edge, at the last check
    uint64_t epoch = 0, peer_epoch = 0;
    ExchangeId decided = 0, received = 0, done = 0, peer_done = 0;
    int mine = 0, theirs = 0;
    friend bool operator==(const Seen&, const Seen&) = default;
  };

  void CheckAll(const Neighborhood& edges);
  void CheckEdge(const Edge& edge, Seen& seen);
  void CheckMemory(const Edge& edge) const;

  const PeerId self_;
  uint64_t process_;
  const EdgeLimits limits_;
  CorrectionLedger& ledger_;
  const std::function<void(const std::string&)> violation_;
  std::map<PeerId, Seen> seen_;
  std::set<PeerId> excused_;
};

}  // namespace gossamer::simulation

#endif  // GOSSAMER_TESTS_SIMULATION_EDGE_WATCH_H_
