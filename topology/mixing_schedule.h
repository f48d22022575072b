// The mixing matrix of every round, as a pure function of (seed, round).
//
// Every peer computes its own row without talking; both ends of an edge agree
// on it.  Ranks only; ids just to find the site of a peer.  This header knows
// nothing of addresses or time.

#ifndef GOSSAMER_TOPOLOGY_MIXING_SCHEDULE_H_
#define GOSSAMER_TOPOLOGY_MIXING_SCHEDULE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "algorithms/base/ids.h"
#include "algorithms/base/problems.h"

namespace gossamer {

// An entry of a row off the diagonal: the other end's rank, and the weight of
// the edge, the same at both ends.
struct Neighbor {
  int rank = 0;
  double weight = 0;
  friend bool operator==(const Neighbor&, const Neighbor&) = default;
};

// Row `rank` of W without its diagonal, sorted by rank.  The diagonal is what
// is missing to one.
struct MixingRow {
  std::vector<Neighbor> neighbors;
};

// The specification of a schedule; topology/README.md describes the graphs.
struct ScheduleSpec {
  // One of GraphNames.
  std::string graph = "ring";
  int degree = 3;                 // random-regular
  double edge_probability = 0.5;  // erdos-renyi
  std::string edges;              // edge-list: "0-1 1-2:0.3"
  // locality-skewed: who is near whom (sites.h), and the budget of its skew
  // (skewed_matching.h).
  std::string sites = {};
  double variance_budget = 1.15;
  friend bool operator==(const ScheduleSpec&, const ScheduleSpec&) = default;
};

// The graphs that a schedule may name: first those of which every round has the
// same edges, then those whose edges change from round to round.
std::span<const std::string_view> GraphNames();

// Whether the edges of `graph`, one of GraphNames, change from round to round.
bool IsTimeVarying(std::string_view graph);

// Returns what of `spec` cannot be for a fleet of `peers` founders, under
// "graph", "sites", "variance_budget" and "peers".
Problems ProblemsOf(const ScheduleSpec& spec, int peers, uint64_t seed);

class MixingSchedule {
 public:
  virtual ~MixingSchedule() = default;
  virtual int size() const = 0;
  virtual MixingRow Row(int rank, uint64_t round) const = 0;
  // True if every round has the same matrix.
  virtual bool is_static() const = 0;
  // Rounds after which the matrices repeat; 0: drawn anew every round.
  virtual uint64_t period() const { return is_static() ? 1 : 0; }
  // The largest eigenvalue of E[W'W] - J, where a formula is known: the factor
  // of the mean-square consensus error in one round.
  virtual std::optional<double> expected_contraction() const {
    return std::nullopt;
  }

 private:
  friend double StableStepSize(const MixingSchedule& schedule, int age);
  // A memo of that function: the largest eigenvalue of I - W in any round,
  // which takes long to find in a large fleet.  One thread at a time may ask.
  mutable std::optional<double> largest_of_laplacian_;
};

// The schedule of these members, by rank.  kInvalidArgument says which part of
// `spec` cannot be for so many peers and why (a torus of one peer, an odd
// random-regular, weights that are not doubly stochastic, a graph that is not
// connected).
absl::StatusOr<std::unique_ptr<MixingSchedule>> MakeSchedule(
    const ScheduleSpec& spec, std::span<const PeerId> members, uint64_t seed);
// The schedule of the `size` members with which a fleet begins.
absl::StatusOr<std::unique_ptr<MixingSchedule>> MakeSchedule(
    const ScheduleSpec& spec, int size, uint64_t seed);

// Whether rows are drawn anew every round, so that any two ranks may meet.
inline bool IsRandomized(const MixingSchedule& schedule) {
  return schedule.period() == 0;
}
// Whether a peer keeps edges to all its neighbours: not to more members than
// `most` if rows are drawn anew, but to those of the next rounds.
inline constexpr int kMaxNeighbors = 256;
inline bool HasPersistentEdges(const MixingSchedule& schedule,
                               int most = kMaxNeighbors) {
  return !IsRandomized(schedule) || schedule.size() <= most;
}

// The other ranks that `rank` mixes with over all rounds, sorted: all others if
// rows are drawn anew.
std::vector<int> NeighborsOf(const MixingSchedule& schedule, int rank);

// The least number of neighbours of a rank, over all rounds.
int MinDegree(const MixingSchedule& schedule);

}  // namespace gossamer

#endif  // GOSSAMER_TOPOLOGY_MIXING_SCHEDULE_H_
