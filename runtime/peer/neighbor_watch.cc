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
      [this](PeerId peer) { detector_.OnIndirectAck(peer); });
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

void NeighborWatch::Tick() {
  const auto probes = detector_.Tick(loop_->Now());
  for (const PeerId peer : probes.direct) prober_->Ping(peer);
  for (const auto& [proxy, target] : probes.indirect) {
    prober_->RequestPing(proxy, target);
  }
  for (const PeerId peer : detector_.suspected()) {
    // Each silence is reported once, not at each tick.
    if (std::ranges::binary_search(suspected_, peer)) continue;
    reporter_->Report("member_suspected",
                      absl::StrFormat("peer %d does not answer", peer.value));
  }
  hooks_.on_tick();
  suspected_ = detector_.suspected();
  // The list is whole each time: a peer that answers again is cleared by its
  // absence.
  membership_->Suspect(suspected_);
}

}  // namespace gossamer
