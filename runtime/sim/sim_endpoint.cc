#include "runtime/sim/sim_endpoint.h"

#include <utility>
#include <vector>

#include "absl/strings/str_format.h"

namespace gossamer::sim_internal {

Endpoint::Endpoint(SimNetwork* network, PeerId self, VirtualPeerLoop* loop,
                   std::string address)
    : network_(network),
      self_(self),
      loop_(loop),
      address_(std::move(address)),
      alive_(std::make_shared<Endpoint*>(this)) {}

Endpoint::~Endpoint() {
  // The network forgets the endpoint first: a peer that dials meanwhile finds
  // nobody.
  std::vector<Endpoint*>& all = network_->endpoints_.at(self_);
  std::erase(all, this);
  if (all.empty()) network_->endpoints_.erase(self_);
  // It has connections with peers alone that it wants.
  for (const auto& [peer, address] : wanted_) {
    const auto key = SimNetwork::KeyOf(self_, peer);
    // Forget() changes the list that it is in.
    const std::vector<ConnectionPtr> connections =
        network_->pairs_[key].connections;
    for (const ConnectionPtr& c : connections) {
      if (c->ends[EndOf(*c)].endpoint != this) continue;
      network_->Forget(c, EndOf(*c));
      network_->BreakConnection(c, network_->loop_.Now());
    }
  }
  // An older endpoint of the peer is found again, also by peers that this one
  // did not want.
  if (const Endpoint* const older = network_->At(self_)) {
    for (const auto& [peer, address] : older->wanted_) {
      network_->MaybeDial(SimNetwork::KeyOf(self_, peer),
                          network_->options_.redial_delay);
    }
  }
}

void Endpoint::SetListener(TransportListener* listener) {
  listener_ = listener;
}

void Endpoint::Connect(PeerId peer, const std::string& address) {
  wanted_.insert_or_assign(peer, address);
  network_->MaybeDial(SimNetwork::KeyOf(self_, peer), absl::ZeroDuration());
}

void Endpoint::Disconnect(PeerId peer) {
  wanted_.erase(peer);
  const absl::Status why = absl::CancelledError(
      absl::StrFormat("peer %d was disconnected by this end", peer.value));
  const std::vector<ConnectionPtr> connections =
      network_->pairs_[SimNetwork::KeyOf(self_, peer)].connections;
  for (const ConnectionPtr& c : connections) {
    if (c->ends[EndOf(*c)].endpoint == this) EndHere(c, why);
  }
}

bool Endpoint::Send(PeerId peer, Channel channel, Frame frame) {
  const auto it = up_.find(peer);
  if (it == up_.end() || frame.head.size() > kMaxHeadBytes ||
      frame.body.size() > network_->options_.max_body_bytes) {
    return false;
  }
  // The newest of two connections is taken, as by the real transport: its end
  // is the least likely to have gone.
  const ConnectionPtr& newest = it->second.rbegin()->second;
  counters_.bytes_sent += frame.head.size() + frame.body.size();
  network_->SendFrame(newest, EndOf(*newest), channel, std::move(frame));
  return true;
}

bool Endpoint::IsWritable(PeerId peer) const {
  // A queue of some frames stands for a socket that takes no more.
  constexpr size_t kFewFrames = 16;
  const auto it = up_.find(peer);
  if (it == up_.end()) return true;
  const Connection& newest = *it->second.rbegin()->second;
  return newest.ends[1 - EndOf(newest)].incoming.size() < kFewFrames;
}

void Endpoint::Close(PeerId peer, ConnectionId connection,
                     const absl::Status& why) {
  const auto it = up_.find(peer);
  if (it == up_.end()) return;
  const auto c = it->second.find(connection);
  if (c != it->second.end()) EndHere(ConnectionPtr(c->second), why);
}

// Ends the connection for this end at once.  The listener hears of it later;
// the other end hears of it when the surviving frames have arrived there.
void Endpoint::EndHere(const ConnectionPtr& c, const absl::Status& why) {
  const int end = EndOf(*c);
  const ConnectionId id = c->ends[end].id;
  const PeerId peer = c->ends[1 - end].peer;
  network_->BreakConnection(c, network_->loop_.Now());
  network_->Forget(c, end);
  const auto it = up_.find(peer);
  if (id == 0 || it == up_.end() || it->second.erase(id) == 0) return;
  if (it->second.empty()) up_.erase(it);
  loop_->Post([this, alive = std::weak_ptr<Endpoint*>(alive_), peer, id, why] {
    if (!alive.expired()) listener_->OnDown(peer, id, why);
  });
}

void Endpoint::Deliver(ConnectionPtr c, int end, Item item) {
  loop_->Post([this, alive = std::weak_ptr<Endpoint*>(alive_), c = std::move(c),
               end, item = std::move(item)]() mutable {
    if (!alive.expired()) Handle(c, end, std::move(item));
  });
}

void Endpoint::Handle(const ConnectionPtr& c, int end, Item item) {
  Connection::End& here = c->ends[end];
  // This end has ended the connection while the item waited on its loop.
  if (here.endpoint == nullptr) return;
  const PeerId peer = c->ends[1 - end].peer;
  switch (item.kind) {
    case Item::Kind::kUp:
      // Ids count up and are never used again, so that a late OnDown cannot be
      // taken for that of a newer connection.
      here.id = ++last_id_;
      up_[peer].emplace(here.id, c);
      listener_->OnUp(peer, here.id);
      break;
    case Item::Kind::kFrame:
      counters_.bytes_received +=
          item.frame.head.size() + item.frame.body.size();
      listener_->OnFrame(peer, here.id, item.channel, std::move(item.frame));
      break;
    case Item::Kind::kDown:
      EndHere(c, item.why);
      break;
  }
}

}  // namespace gossamer::sim_internal
