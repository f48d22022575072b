// The result of a survey of a fleet's links, as numbers and as a scenario of
// the lab, which plan, lab and rehearsals read.
//
// This header is pure and knows nothing of which fleet was asked, or how a link
// is measured.

#ifndef GOSSAMER_RUNTIME_CLI_SURVEY_NETWORK_H_
#define GOSSAMER_RUNTIME_CLI_SURVEY_NETWORK_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/topology.pb.h"

namespace gossamer {

struct MeasuredNetwork {
  std::vector<std::string> names;           // "peer-4", in the order of ranks
  std::vector<std::vector<double>> rtt_ms;  // symmetric, diagonal 0
  // [from][to], of whole packets; 0: no limit was seen.
  std::vector<std::vector<double>> mbit;
  double busy_seconds = 0;  // of a round without its waiting; 0: not known
};

// Round trips are at most 60 s, rates at least 1 kbit/s and at most 1000
// Gbit/s: what a scenario takes.  kUnavailable names the directions that were
// not measured.  kInternal: the answer is not square.
absl::StatusOr<MeasuredNetwork> NetworkOf(const wire::LinkSurveyStatus& status);

// A scenario file of as many hosts, host-K being rank K; its comments name the
// peers.
std::string ScenarioFileOf(const MeasuredNetwork& network);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_CLI_SURVEY_NETWORK_H_
