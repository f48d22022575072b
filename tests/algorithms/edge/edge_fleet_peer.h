// A peer of the fleet in edge_fleet.h: its parameters, its edges and its place
// in the round.

#ifndef GOSSAMER_TESTS_ALGORITHMS_EDGE_EDGE_FLEET_PEER_H_
#define GOSSAMER_TESTS_ALGORITHMS_EDGE_EDGE_FLEET_PEER_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "algorithms/base/ids.h"
#include "algorithms/edge/edge.h"
#include "tests/algorithms/edge/edge_link.h"

namespace gossamer {

// One end of an edge, and the exchanges for which its peer waits.
struct PeerEdge {
  std::unique_ptr<Edge> edge;
  EdgeLink* link = nullptr;
  int end = 0;                     // which end of the link this peer is
  std::vector<ExchangeId> wanted;  // scheduled, not complete
  bool overdue = false;

  bool MissingBelow(ExchangeId limit) const {
    return std::ranges::any_of(wanted, [&](ExchangeId id) {
      return id < limit && id >= edge->received();
    });
  }
};

enum class RoundPhase { kBegin, kCompute, kWait };

// A peer's parameters and the state of its round loop.
struct FleetPeer {
  std::vector<float> x;
  std::vector<double> stepped;  // sum of the increments by local steps
  std::shared_ptr<SnapshotCache> cache = std::make_shared<SnapshotCache>();
  std::map<int, PeerEdge> edges;  // keyed by the other peer
  uint64_t round = 0;             // the round of `phase`
  RoundPhase phase = RoundPhase::kBegin;
  int64_t until = 0;
  int64_t frozen_until = 0;
  int64_t compute_ticks = 0;
  bool finished = false;
};

}  // namespace gossamer

#endif  // GOSSAMER_TESTS_ALGORITHMS_EDGE_EDGE_FLEET_PEER_H_
