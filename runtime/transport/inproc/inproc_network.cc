#include "runtime/transport/inproc/inproc_network.h"

#include <string>
#include <utility>

#include "absl/strings/str_format.h"

namespace gossamer {

// One peer's end of the network.  Everything runs on the peer's loop except
// Up(), Down() and Arrive(), which only post.
class InprocEndpoint final : public Transport {
 public:
  InprocEndpoint(InprocNetwork* network, PeerId self, EventLoop* loop)
      : network_(network),
        self_(self),
        loop_(loop),
        alive_(std::make_shared<bool>(true)) {}

  ~InprocEndpoint() override {
    // The network forgets the endpoint before it goes, so no other thread posts
    // to it any more.
    network_->Remove(self_);
    *alive_ = false;
  }

  void SetListener(TransportListener* listener) override {
    listener_ = listener;
  }

  void Connect(PeerId peer, const std::string& address) override {
    network_->SetWanted(self_, peer);
    network_->TryConnect(self_, peer);
  }

  void Disconnect(PeerId peer) override {
    const absl::Status why = absl::CancelledError(
        absl::StrFormat("peer %d was disconnected by this end", peer.value));
    const auto it = up_.find(peer);
    if (it != up_.end()) Close(peer, it->second, why);
    // A connection that was opened and whose Up() still waits on the loop ends
    // as well.
    network_->SetUnwanted(self_, peer, why);
  }

  bool Send(PeerId peer, Channel channel, Frame frame) override {
    const auto it = up_.find(peer);
    if (it == up_.end() || frame.head.size() > kMaxHeadBytes ||
        frame.body.size() > network_->options_.max_body_bytes) {
      return false;
    }
    counters_.bytes_sent += frame.head.size() + frame.body.size();
    network_->Forward(self_, peer, it->second, channel, std::move(frame));
    return true;
  }

  void Close(PeerId peer, ConnectionId id, const absl::Status& why) override {
    const auto it = up_.find(peer);
    if (it == up_.end() || it->second != id) return;
    network_->End(self_, peer, id, why);
    up_.erase(it);
    // The listener hears of it later, as of every event: the caller may be in
    // the middle of a change.
    Post([this, peer, id, why] { Ended(peer, id, why); });
  }

  // A frame that was handed over is with the other loop at once.
  bool Idle(PeerId) const override { return true; }
  TransportCounters counters() const override { return counters_; }

  void Up(PeerId peer, ConnectionId id) {
    Post([this, peer, id] {
      // The connection may have ended while this waited on the loop.
      if (!network_->IsOpen(self_, peer, id)) return;
      up_[peer] = id;
      listener_->OnUp(peer, id);
    });
  }

  void Down(PeerId peer, ConnectionId id, absl::Status why) {
    Post([this, peer, id, why = std::move(why)] {
      const auto it = up_.find(peer);
      // The connection has ended here already.
      if (it == up_.end() || it->second != id) return;
      up_.erase(it);
      Ended(peer, id, why);
    });
  }

  void Arrive(PeerId peer, ConnectionId id, Channel channel, Frame frame) {
    Post([this, peer, id, channel, frame = std::move(frame)]() mutable {
      const auto it = up_.find(peer);
      if (it == up_.end() || it->second != id) return;
      counters_.bytes_received += frame.head.size() + frame.body.size();
      listener_->OnFrame(peer, id, channel, std::move(frame));
    });
  }

 private:
  template <typename F>
  void Post(F fn) {
    loop_->Post([alive = alive_, fn = std::move(fn)]() mutable {
      // A callback that was posted may run after the endpoint is destroyed.
      if (*alive) fn();
    });
  }

  void Ended(PeerId peer, ConnectionId id, const absl::Status& why) {
    loop_->RunAt(loop_->Now() + network_->options_.redial_delay,
                 [this, alive = alive_, peer] {
                   if (*alive) network_->TryConnect(self_, peer);
                 });
    listener_->OnDown(peer, id, why);
  }

  InprocNetwork* const network_;
  const PeerId self_;
  EventLoop* const loop_;
  TransportListener* listener_ = nullptr;
  std::map<PeerId, ConnectionId> up_;
  TransportCounters counters_;
  const std::shared_ptr<bool> alive_;  // read and written on the loop only
};

std::unique_ptr<Transport> InprocNetwork::CreateEndpoint(PeerId peer,
                                                         EventLoop* loop) {
  auto endpoint = std::make_unique<InprocEndpoint>(this, peer, loop);
  // Only the tables are guarded: everything else happens on the loops.
  MutexLock lock(&mu_);
  endpoints_[peer] = endpoint.get();
  return endpoint;
}

void InprocNetwork::SetWanted(PeerId from, PeerId peer) {
  MutexLock lock(&mu_);
  wanted_.insert({from, peer});
}

void InprocNetwork::SetUnwanted(PeerId from, PeerId peer,
                                const absl::Status& why) {
  MutexLock lock(&mu_);
  wanted_.erase({from, peer});
  if (open_.contains(KeyOf(from, peer))) EndLocked(from, peer, why);
}

bool InprocNetwork::IsOpen(PeerId a, PeerId b, ConnectionId id) {
  MutexLock lock(&mu_);
  const auto it = open_.find(KeyOf(a, b));
  return it != open_.end() && it->second == id;
}

// Both ends try after a loss, and the first one that finds no connection opens
// it.
void InprocNetwork::TryConnect(PeerId a, PeerId b) {
  MutexLock lock(&mu_);
  const auto from = endpoints_.find(a);
  const auto to = endpoints_.find(b);
  if (from == endpoints_.end() || to == endpoints_.end() ||
      !wanted_.contains({a, b}) || !wanted_.contains({b, a}) ||
      open_.contains(KeyOf(a, b))) {
    return;
  }
  const ConnectionId id = ++last_id_;
  // One id serves both ends; it rises over all pairs, so it rises for each.
  open_[KeyOf(a, b)] = id;
  from->second->Up(b, id);
  to->second->Up(a, id);
}

void InprocNetwork::End(PeerId from, PeerId peer, ConnectionId id,
                        const absl::Status& why) {
  MutexLock lock(&mu_);
  const auto it = open_.find(KeyOf(from, peer));
  if (it != open_.end() && it->second == id) EndLocked(from, peer, why);
}

void InprocNetwork::EndLocked(PeerId from, PeerId peer,
                              const absl::Status& why) {
  const auto it = open_.find(KeyOf(from, peer));
  const auto other = endpoints_.find(peer);
  if (other != endpoints_.end()) {
    other->second->Down(
        from, it->second,
        absl::UnavailableError(absl::StrFormat(
            "peer %d ended the connection: %s", from.value, why.message())));
  }
  open_.erase(it);
}

void InprocNetwork::Forward(PeerId from, PeerId peer, ConnectionId id,
                            Channel channel, Frame frame) {
  MutexLock lock(&mu_);
  const auto it = open_.find(KeyOf(from, peer));
  // This end has not noticed the loss yet.
  if (it == open_.end() || it->second != id) return;
  endpoints_.at(peer)->Arrive(from, id, channel, std::move(frame));
}

void InprocNetwork::Remove(PeerId peer) {
  MutexLock lock(&mu_);
  endpoints_.erase(peer);
  std::erase_if(wanted_, [&](const auto& w) { return w.first == peer; });
  // A copy is walked: EndLocked() erases from `open_`.
  std::map<PairKey, ConnectionId> open = open_;
  for (const auto& [key, id] : open) {
    if (key.first == peer) {
      EndLocked(peer, key.second, absl::UnavailableError("it is gone"));
    } else if (key.second == peer) {
      EndLocked(peer, key.first, absl::UnavailableError("it is gone"));
    }
  }
}

}  // namespace gossamer
