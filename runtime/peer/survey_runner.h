// A peer's half of a survey of links: measures those that the topology service
// asks for, with frames among others, while training goes on.
//
// The service names the two ends of a link to each other in one slot, and each
// measures its own direction.  This header knows nothing of what the
// measurements are for.

#ifndef GOSSAMER_RUNTIME_PEER_SURVEY_RUNNER_H_
#define GOSSAMER_RUNTIME_PEER_SURVEY_RUNNER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "absl/time/time.h"
#include "algorithms/base/ids.h"
#include "runtime/base/event_loop.h"
#include "runtime/neighborhood/link_prober.h"
#include "runtime/transport/transport.h"
#include "topology/fleet/membership.h"

namespace gossamer {

class SurveyRunner {
 public:
  // All of them outlive this object.  `in_use`: something else needs the
  // connection to a peer.
  SurveyRunner(EventLoop* loop, Transport* transport, Membership* membership,
               LinkProber* prober, std::function<bool(PeerId)> in_use)
      : loop_(loop),
        transport_(transport),
        membership_(membership),
        prober_(prober),
        in_use_(std::move(in_use)) {}

  // Begins what the service asks for, and gives up connections of what is over.
  void Update();

 private:
  EventLoop* const loop_;
  Transport* const transport_;
  Membership* const membership_;
  LinkProber* const prober_;
  const std::function<bool(PeerId)> in_use_;
  uint64_t task_ = 0;  // number of the last one
  // Peers that links were measured to, until nobody measures them any more.
  std::map<PeerId, absl::Time> until_;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_PEER_SURVEY_RUNNER_H_
