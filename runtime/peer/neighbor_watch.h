// The watch over silent neighbours: it pings them, also through others, and
// reports the suspected to the topology service, which answers whether it has
// heard of them since.
//
// This header knows nothing of what becomes of a suspected peer.

#ifndef GOSSAMER_RUNTIME_PEER_NEIGHBOR_WATCH_H_
#define GOSSAMER_RUNTIME_PEER_NEIGHBOR_WATCH_H_

#include <functional>
#include <set>
#include <vector>

#include "algorithms/base/ids.h"
#include "runtime/base/event_loop.h"
#include "runtime/membership/failure_detector.h"
#include "runtime/neighborhood/link_prober.h"
#include "runtime/peer/peer_spec.h"
#include "runtime/peer/reporter.h"
#include "topology/fleet/membership.h"

namespace gossamer {

class NeighborWatch {
 public:
  struct Hooks {
    std::function<std::set<PeerId>()> watched;  // whose silence counts
    // Each period, before the suspected are reported to the service.
    std::function<void()> on_tick;
  };
  // All of them outlive this object.
  NeighborWatch(const PeerSpec& spec, EventLoop* loop, LinkProber* prober,
                Membership* membership, Reporter* reporter, Hooks hooks);
  ~NeighborWatch();
  NeighborWatch(const NeighborWatch&) = delete;
  NeighborWatch& operator=(const NeighborWatch&) = delete;

  void Heard(PeerId peer) { detector_.Heard(peer, loop_->Now()); }
  // Takes the neighbours that there are now.
  void Refresh() { detector_.Watch(hooks_.watched(), loop_->Now()); }
  // Ticks every period from now on.
  void Start();
  // Drops the suspicions of an incarnation that is over.
  void Reset() {
    suspected_.clear();
    heard_by_others_.clear();
  }

 private:
  void Tick();
  void ReportSuspected();

  EventLoop* const loop_;
  LinkProber* const prober_;
  Membership* const membership_;
  Reporter* const reporter_;
  const Hooks hooks_;
  FailureDetector detector_;
  EventLoop::TimerId timer_{};
  std::vector<PeerId> suspected_;
  std::set<PeerId> heard_by_others_;  // of them, as was reported
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_PEER_NEIGHBOR_WATCH_H_
