// The compositions that `gossamer plan` rehearses: the changes of each to the
// configuration, and the order in which they do best.
//
// This header is pure and knows nothing of how a composition is rehearsed.

#ifndef GOSSAMER_RUNTIME_CLI_PLAN_CANDIDATES_H_
#define GOSSAMER_RUNTIME_CLI_PLAN_CANDIDATES_H_

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "proto/run.pb.h"
#include "runtime/lab/scenario.h"

namespace gossamer {

struct PlanCandidate {
  std::string name;                  // for people: "torus innov-int8 overlap 1"
  std::vector<std::string> changes;  // of the configuration, as of --set
  // Centralized training, to compare with: it is never recommended.
  bool baseline = false;
};

// Graphs and schedules that the number of peers allows, each with four codecs
// and three overlaps, and the centralized baseline.  `sites` is as
// mixing.sites; empty: no locality-skewed schedule.  A `base` that is the
// baseline itself gets gossip candidates and no other baseline.
std::vector<PlanCandidate> DefaultCandidates(const RunConfig& base,
                                             const std::string& sites);

// The changes of a user's "mixing.graph=torus,mixing.codec=innov-int8".  A
// comma separates only where a name of the configuration and "=" follow, so
// values may have commas: "mixing.sites=a:1,3 b:2,4".  Names are not checked.
PlanCandidate ParseCandidate(const std::string& text);

// The regions of a scenario as mixing.sites takes them: "paris:1-2 sydney:3-4".
// Empty unless there are two regions, one of them with two hosts, among the
// first `peers` hosts.
std::string SitesOfRegions(const Scenario& scenario, int peers);

// The figures of one rehearsed candidate.
struct PlanFigures {
  double rounds_per_second = 0;   // of the slowest peer
  double waiting_share = 0;       // of the peers' time, for the network
  double exchange_seconds = 0;    // median
  double bytes_per_round = 0;     // sent by a peer, mean
  double consensus_distance = 0;  // mean over peers of ||x_i - mean||^2
  std::optional<double> far_bytes_per_round =
      {};                            // between sites, of all peers
  std::optional<double> score = {};  // of a closed-form game
};

enum class PlanGoal { kRounds, kWaiting, kBytes, kConsensus, kScore };

// "rounds", "waiting", "bytes", "consensus", "score".
std::vector<std::string> PlanGoalNames();
// nullopt: no goal's name.
std::optional<PlanGoal> PlanGoalOf(std::string_view name);

// Differences below this mean nothing: relative, of waiting absolute.
inline constexpr double kPlanAlike = 0.03;

// The indices of `figures`, best first: of those within kPlanAlike of the best
// by `goal`, of these those within it by rounds/s, then by consensus distance,
// then by bytes, the first one; then the same of the rest.
std::vector<size_t> RankFigures(std::span<const PlanFigures> figures,
                                PlanGoal goal);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_CLI_PLAN_CANDIDATES_H_
