// The curves of one run: losses of each player, scores, consensus distance.
//
// Made from logs; knows nothing of how curves are drawn.

#ifndef GOSSAMER_RUNTIME_TELEMETRY_RUN_PANELS_H_
#define GOSSAMER_RUNTIME_TELEMETRY_RUN_PANELS_H_

#include <string>
#include <vector>

#include "runtime/telemetry/curves.h"
#include "runtime/telemetry/metrics.h"
#include "runtime/telemetry/summary.h"
#include "topology/fleet/consensus.h"

namespace gossamer {

struct PeerLog {
  std::string label;  // "peer 3"
  std::vector<RoundMetrics> rounds;
};

// Returns the panels of a run.  Panels without data are left out.
std::vector<Panel> RunPanels(const std::vector<PeerLog>& peers,
                             const std::vector<Consensus>& consensus);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_TELEMETRY_RUN_PANELS_H_
