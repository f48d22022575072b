#include "runtime/sim/sim_network.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "runtime/sim/sim_endpoint.h"

namespace gossamer {
namespace {

using sim_internal::Connection;
using sim_internal::Item;

// Bytes are shared between ends, so the damaged ones are a copy.
SharedBytes FlipBit(const SharedBytes& bytes, uint64_t bit) {
  std::vector<std::byte> damaged(bytes.bytes().begin(), bytes.bytes().end());
  damaged[bit / 8] ^= std::byte{1} << (bit % 8);
  return SharedBytes::FromVector(std::move(damaged));
}

// Flips one bit of a frame, head or body.  One is the hardest to notice: a
// checksum that sees it sees more.
void Corrupt(Frame& frame, RngKey key) {
  const uint64_t head_bits = 8 * frame.head.size();
  const uint64_t bits = head_bits + 8 * frame.body.size();
  if (bits == 0) return;
  const uint64_t bit = key.Below(bits, 0);
  if (bit < head_bits) {
    frame.head = FlipBit(frame.head, bit);
  } else {
    frame.body = FlipBit(frame.body, bit - head_bits);
  }
}

}  // namespace

SimNetwork::SimNetwork(VirtualLoop* loop, SimOptions options)
    : loop_(loop), options_(options), key_(RngKey(options.seed).Fold("sim")) {}

SimNetwork::~SimNetwork() = default;

std::unique_ptr<Transport> SimNetwork::CreateEndpoint(PeerId peer,
                                                      VirtualPeerLoop* loop,
                                                      std::string address) {
  auto endpoint = std::make_unique<sim_internal::Endpoint>(this, peer, loop,
                                                           std::move(address));
  endpoints_[peer].push_back(endpoint.get());
  return endpoint;
}

sim_internal::Endpoint* SimNetwork::At(PeerId peer) const {
  const auto it = endpoints_.find(peer);
  return it == endpoints_.end() ? nullptr : it->second.back();
}

void SimNetwork::SetUplink(PeerId from, double bytes_per_second) {
  if (bytes_per_second > 0) {
    uplinks_[from] = {.bytes_per_second = bytes_per_second};
  } else {
    uplinks_.erase(from);
  }
}

void SimNetwork::SetLink(PeerId from, PeerId to, SimLink link) {
  directions_[{from, to}].link = link;
}

void SimNetwork::SetLinks(LinkOf link_of) {
  link_of_ = std::move(link_of);
  for (auto& [ends, direction] : directions_) direction.link.reset();
}

void SimNetwork::Break(PeerId a, PeerId b, absl::Duration closed_for) {
  Pair& pair = pairs_[KeyOf(a, b)];
  // Faults may overlap: the longer one counts.
  pair.closed_until = std::max(pair.closed_until, loop_.Now() + closed_for);
  const std::vector<ConnectionPtr> connections = pair.connections;
  for (const ConnectionPtr& c : connections) BreakConnection(c, loop_.Now());
}

void SimNetwork::Stall(PeerId from, PeerId to, absl::Time until) {
  Direction& direction = directions_[{from, to}];
  direction.stalled_until = std::max(direction.stalled_until, until);
}

void SimNetwork::Freeze(PeerId peer, absl::Time until) {
  if (sim_internal::Endpoint* const e = At(peer)) e->loop()->Freeze(until);
}

void SimNetwork::Partition(std::set<PeerId> side, bool one_way) {
  partitioned_ = std::move(side);
  for (auto& [key, pair] : pairs_) {
    if (MayConnect(key)) {
      MaybeDial(key, options_.redial_delay);
      continue;
    }
    const std::vector<ConnectionPtr> connections = pair.connections;
    // A cut network says nothing: an end notices by its keepalive.
    const absl::Time noticed = loop_.Now() + options_.keepalive;
    if (one_way) {
      const bool first = partitioned_.contains(key.first);
      Stall(first ? key.first : key.second, first ? key.second : key.first,
            noticed);
    }
    for (const ConnectionPtr& c : connections) {
      if (one_way) {
        loop_.RunAt(noticed, [this, c] { BreakConnection(c, loop_.Now()); });
      } else {
        BreakConnection(c, noticed);
      }
    }
  }
}

void SimNetwork::Heal() { Partition({}); }

SimNetwork::PairSet SimNetwork::Pairs() const {
  std::set<PairKey> wanted;
  for (const auto& [key, pair] : pairs_) {
    const sim_internal::Endpoint* const a = At(key.first);
    const sim_internal::Endpoint* const b = At(key.second);
    if (a != nullptr && b != nullptr && a->Wants(key.second) &&
        b->Wants(key.first)) {
      wanted.insert(key);
    }
  }
  return wanted;
}

std::set<PeerId> SimNetwork::Peers() const {
  std::set<PeerId> peers;
  for (const auto& [peer, all] : endpoints_) peers.insert(peer);
  return peers;
}

SimNetwork::PairKey SimNetwork::KeyOf(PeerId a, PeerId b) {
  return std::minmax(a, b);
}

bool SimNetwork::MayConnect(PairKey key) const {
  const sim_internal::Endpoint* const a = At(key.first);
  const sim_internal::Endpoint* const b = At(key.second);
  return a != nullptr && b != nullptr && a->Wants(key.second) &&
         b->Wants(key.first) &&
         partitioned_.contains(key.first) == partitioned_.contains(key.second);
}

// Dials unless a connection is open at the smaller id, which is the one that
// dials.  The other end may still see the old connection.
void SimNetwork::MaybeDial(PairKey key, absl::Duration delay) {
  Pair& pair = pairs_[key];
  if (pair.dialling || !MayConnect(key)) return;
  for (const ConnectionPtr& c : pair.connections) {
    if (c->ends[0].endpoint == At(key.first)) return;
  }
  pair.dialling = true;
  loop_.RunAt(std::max(loop_.Now() + delay, pair.closed_until),
              [this, key] { Dial(key); });
}

void SimNetwork::Dial(PairKey key) {
  Pair& pair = pairs_[key];
  pair.dialling = false;
  if (!MayConnect(key)) return;
  if (pair.closed_until > loop_.Now()) {
    MaybeDial(key, absl::ZeroDuration());
    return;
  }
  const std::string& there = At(key.second)->address();
  // The address that this end was given is out of date, as after a restart on
  // another port.  A real dial would reach nobody, so it is tried again until a
  // view has brought the new one.
  if (!there.empty() && At(key.first)->AddressOf(key.second) != there) {
    MaybeDial(key, options_.redial_delay);
    return;
  }
  const RngKey draw =
      key_.Fold("dial").Fold(key.first.value).Fold(key.second.value);
  Open(key);
  // Two ends that dial at once make two connections of one edge, which the
  // protocol has to bear (PROTOCOL.md 4.6).
  if (draw.Uniform(pair.dials++) < options_.double_dial) Open(key);
}

void SimNetwork::Open(PairKey key) {
  auto c = std::make_shared<Connection>();
  c->ends[0].peer = key.first;
  c->ends[1].peer = key.second;
  for (int end : {0, 1}) {
    c->ends[end].endpoint = At(c->ends[end].peer);
  }
  pairs_[key].connections.push_back(c);
  for (int end : {0, 1}) {
    // Each end learns of the connection in its own time, so one may send before
    // the other has seen it.
    Item up;
    up.kind = Item::Kind::kUp;
    up.arrival = Arrival(c->ends[1 - end].peer, c->ends[end].peer, 0);
    Enqueue(c, end, std::move(up));
  }
}

// Each end sees a random prefix of the frames that are under way to it, then
// the end of the connection, not before `seen`.
void SimNetwork::BreakConnection(const ConnectionPtr& c, absl::Time seen) {
  if (c->broken) return;
  c->broken = true;
  const PairKey key = KeyOf(c->ends[0].peer, c->ends[1].peer);
  const RngKey draw = key_.Fold("break")
                          .Fold(key.first.value)
                          .Fold(key.second.value)
                          .Fold(pairs_[key].breaks++);
  for (int end : {0, 1}) {
    std::deque<Item>& incoming = c->ends[end].incoming;
    // The listener hears of every connection that was opened: OnUp is never
    // lost.
    const size_t up =
        !incoming.empty() && incoming.front().kind == Item::Kind::kUp ? 1 : 0;
    const size_t frames = incoming.size() - up;
    incoming.resize(up + draw.Below(frames + 1, end));
    Item down;
    down.kind = Item::Kind::kDown;
    down.why = absl::UnavailableError(absl::StrFormat(
        "the connection to peer %d broke", c->ends[1 - end].peer.value));
    down.arrival = seen;
    Enqueue(c, end, std::move(down));
  }
}

void SimNetwork::SendFrame(const ConnectionPtr& c, int from, Channel channel,
                           Frame frame) {
  if (c->broken) return;  // this end has not noticed the loss yet
  const PeerId sender = c->ends[from].peer;
  Connection::End& to = c->ends[1 - from];
  const size_t bytes = frame.head.size() + frame.body.size();
  Sent& sent = directions_[{sender, to.peer}].sent;
  // The draws are keyed by the frame's number on its way, so a fault at one
  // pair moves no draw of another.
  const uint64_t number = sent.frames++;
  sent.bytes += bytes;
  const RngKey draw =
      key_.Fold("frame").Fold(sender.value).Fold(to.peer.value).Fold(number);
  Item item;
  item.channel = channel;
  item.frame = std::move(frame);
  // The wire is occupied even by a frame that is lost on it.
  item.arrival = Arrival(sender, to.peer, bytes);
  item.frame.transit = TransitOf(sender, to.peer, item.frame.body.size());
  if (draw.Uniform(0) < chaos_.lose) {
    ++chaos_seen_.lost;
    return;
  }
  if (draw.Uniform(1) < chaos_.corrupt) Corrupt(item.frame, draw.Fold(1));
  const bool twice = draw.Uniform(2) < chaos_.duplicate;
  chaos_seen_.duplicated += twice;
  if (twice) Enqueue(c, 1 - from, item);
  if (draw.Uniform(3) < chaos_.reorder && !to.incoming.empty() &&
      to.incoming.back().kind == Item::Kind::kFrame) {
    ++chaos_seen_.reordered;
    // The contents change places and the times stay, so items still arrive in
    // the order of their times.
    std::swap(item.channel, to.incoming.back().channel);
    std::swap(item.frame, to.incoming.back().frame);
  }
  Enqueue(c, 1 - from, std::move(item));
}

const SimLink& SimNetwork::LinkFor(PeerId from, PeerId to,
                                   Direction& direction) {
  if (!direction.link && link_of_) direction.link = link_of_(from, to);
  return direction.link ? *direction.link : options_.link;
}

absl::Time SimNetwork::Arrival(PeerId from, PeerId to, size_t bytes) {
  Direction& direction = directions_[{from, to}];
  const SimLink& link = LinkFor(from, to, direction);
  absl::Time sent = std::max(loop_.Now(), direction.busy_until);
  if (link.bytes_per_second > 0) {
    sent += absl::Seconds(static_cast<double>(bytes) / link.bytes_per_second);
  }
  if (const auto up = uplinks_.find(from); up != uplinks_.end()) {
    // A frame leaves the host while it is on the link: the slower of the two
    // counts.
    Uplink& uplink = up->second;
    uplink.busy_until =
        std::max(loop_.Now(), uplink.busy_until) +
        absl::Seconds(static_cast<double>(bytes) / uplink.bytes_per_second);
    sent = std::max(sent, uplink.busy_until);
  }
  // Frames of all connections of a direction share one wire.
  direction.busy_until = sent;
  const double u = key_.Fold("jitter")
                       .Fold(from.value)
                       .Fold(to.value)
                       .Uniform(direction.sent.frames);
  return sent + link.latency * (1 + link.jitter * u);
}

SimNetwork::Traffic SimNetwork::AllSent() const {
  Traffic traffic;
  for (const auto& [ends, direction] : directions_) {
    if (direction.sent.frames > 0) traffic.emplace(ends, direction.sent);
  }
  return traffic;
}

Transit SimNetwork::TransitOf(PeerId from, PeerId to, size_t bytes) {
  Direction& direction = directions_[{from, to}];
  const SimLink& link = LinkFor(from, to, direction);
  double rate = link.bytes_per_second;
  if (const auto up = uplinks_.find(from); up != uplinks_.end()) {
    const double most = up->second.bytes_per_second;
    rate = rate > 0 ? std::min(rate, most) : most;
  }
  // A link without a rate has no transit.
  if (rate <= 0) return {};
  return {.bytes = bytes,
          .took = absl::Seconds(static_cast<double>(bytes) / rate)};
}

void SimNetwork::Enqueue(const ConnectionPtr& c, int to, Item item) {
  Connection::End& end = c->ends[to];
  if (end.endpoint == nullptr) return;
  // A connection delivers in order, so an item never arrives before an earlier
  // one.
  item.arrival = std::max(item.arrival, end.last_arrival);
  end.last_arrival = item.arrival;
  end.incoming.push_back(std::move(item));
  SchedulePump(c, to);
}

void SimNetwork::SchedulePump(const ConnectionPtr& c, int to) {
  Connection::End& end = c->ends[to];
  // One timer an end is enough: it looks at all items that are due.
  if (end.pumping || end.incoming.empty()) return;
  end.pumping = true;
  const absl::Time stalled =
      directions_[{c->ends[1 - to].peer, end.peer}].stalled_until;
  loop_.RunAt(std::max(end.incoming.front().arrival, stalled),
              [this, c, to] { Pump(c, to); });
}

void SimNetwork::Pump(const ConnectionPtr& c, int to) {
  Connection::End& end = c->ends[to];
  end.pumping = false;
  const absl::Time stalled =
      directions_[{c->ends[1 - to].peer, end.peer}].stalled_until;
  while (end.endpoint != nullptr && !end.incoming.empty() &&
         end.incoming.front().arrival <= loop_.Now() &&
         stalled <= loop_.Now()) {
    Item item = std::move(end.incoming.front());
    end.incoming.pop_front();
    end.endpoint->Deliver(c, to, std::move(item));
  }
  SchedulePump(c, to);
}

void SimNetwork::Forget(const ConnectionPtr& c, int end) {
  c->ends[end].endpoint = nullptr;
  c->ends[end].incoming.clear();
  const PairKey key = KeyOf(c->ends[0].peer, c->ends[1].peer);
  if (c->ends[1 - end].endpoint == nullptr) {
    std::erase(pairs_[key].connections, c);
  }
  MaybeDial(key, options_.redial_delay);
}

}  // namespace gossamer
