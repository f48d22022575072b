#include "runtime/neighborhood/replica_budget.h"

#include <algorithm>
#include <cstdlib>

#include "algorithms/base/seeded_bug.h"

namespace gossamer {
namespace {

// The replica of what this end has sent and the difference D.
constexpr uint64_t kVectorsPerEdge = 2;

// Returns the most edges that a peer may come to use.
int MaxDegree(const MixingSchedule& schedule) {
  if (IsRandomized(schedule)) return schedule.size() - 1;
  size_t most = 0;
  for (int rank = 0; rank < schedule.size(); ++rank) {
    most = std::max(most, NeighborsOf(schedule, rank).size());
  }
  return static_cast<int>(most);
}

}  // namespace

ReplicaBudget::ReplicaBudget(uint64_t bytes, size_t parameters,
                             const MixingSchedule& schedule)
    : peers_(schedule.size()), reach_(schedule.size()) {
  const uint64_t edge = kVectorsPerEdge * sizeof(float) * parameters;
  if (bytes == 0 || edge == 0) return;
  // Each edge costs the same: bytes become a number of edges.
  const uint64_t edges = bytes / edge;
  if (edges >= static_cast<uint64_t>(MaxDegree(schedule))) return;
  // Twice `reach_` ranks lie no farther away than that.
  reach_ = static_cast<int>(edges / 2);
}

bool ReplicaBudget::Covers(int a, int b) const {
  if (SeededBug("replicas-everywhere")) return true;
  // Ranks are compared around the circle, so that every peer has as many near
  // ranks and the memory is the same for all.
  const int apart = std::abs(a - b);
  return std::min(apart, peers_ - apart) <= reach_;
}

}  // namespace gossamer
