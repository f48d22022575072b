#include "runtime/peer/neighbor_watch.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"

namespace gossamer {

NeighborWatch::NeighborWatch(const PeerSpec& spec, EventLoop* loop,
                             LinkProber* prober, Membership* membership,
                             Reporter* reporter, Hooks hooks)
    : loop_(loop),
      prober_(prober),
      membership_(membership),
      reporter_(reporter),
      hooks_(std::move(hooks)),
      detector_(spec.suspect_after) {
  prober_->SetOnIndirectAck(
      [this](PeerId peer) { detector_.OnIndirectAck(peer, loop_->Now()); });
}

NeighborWatch::~NeighborWatch() {
  if (timer_ != EventLoop::TimerId{}) loop_->Cancel(timer_);
}

void NeighborWatch::Start() {
  if (timer_ != EventLoop::TimerId{}) return;
  timer_ = loop_->RunAt(loop_->Now() + detector_.period(), [this] {
    timer_ = {};
    // The neighbours are looked at before the tick, so a peer whose edge is
    // gone is not suspected, and a new one counts as heard.
    Refresh();
    Start();
    Tick();
  });
}

// Each suspicion is reported once, not at each tick, and once more if others
// turn out to hear the peer.
void NeighborWatch::ReportSuspected() {
  std::set<PeerId> heard;
  for (const PeerId peer : detector_.suspected()) {
    const bool others = detector_.HasIndirectAck(peer);
    if (others) heard.insert(peer);
    if (std::ranges::binary_search(suspected_, peer) &&
        (!others || heard_by_others_.contains(peer))) {
      continue;
    }
    reporter_->Report(
        "member_suspected",
        absl::StrFormat("peer %d does not answer%s", peer.value,
                        others ? " here, though others have heard it since: "
                                 "the path to it may be broken"
                               : ""));
  }
  heard_by_others_ = std::move(heard);
}

void NeighborWatch::Tick() {
  // The service is the proxy that every neighbour has: on a ring no other peer
  // has a connection with both ends of an edge.
  for (const PeerId peer : membership_->heard_by_service()) {
    detector_.OnIndirectAck(peer, loop_->Now());
  }
  const auto probes = detector_.Tick(loop_->Now());
  for (const PeerId peer : probes.direct) prober_->Ping(peer);
  for (const auto& [proxy, target] : probes.indirect) {
    prober_->RequestPing(proxy, target);
  }
  ReportSuspected();
  hooks_.on_tick();
  suspected_ = detector_.suspected();
  // The list is whole each time: a peer that answers again is cleared by its
  // absence.
  membership_->Suspect(suspected_);
}

}  // namespace gossamer
