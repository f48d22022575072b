#include "runtime/transport/nccl/nccl_transport.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "algorithms/base/rng.h"
#include "algorithms/base/seeded_bug.h"
#include "algorithms/base/status_macros.h"

namespace gossamer {
namespace {

// An honest edge has at most sixteen payloads under way, and some frames of
// other channels behind them.
constexpr size_t kMostHeld = 1024;
// The other end takes back an offer, or sends its body again, within its own
// deadline; after so many of them it has not heard what it should have.
constexpr int kDeadlinesOfABody = 3;
}  // namespace

NcclTransport::NcclTransport(std::unique_ptr<Transport> carrier,
                             EventLoop* loop, NcclApi* api, NcclDevice* device,
                             NcclOptions options)
    : carrier_(std::move(carrier)),
      loop_(loop),
      options_(std::move(options)),
      groups_(api, device,
              {.self = options_.self,
               .deadline = options_.deadline,
               .making = options_.making,
               .send_id =
                   [this](PeerId to, uint64_t key, Payload id) {
                     Tell(to, BodyKind::kId, key, 0, std::move(id));
                   },
               .on_end = [this](const NcclPlan& plan,
                                NcclEvent why) { OnEnd(plan, why); },
               .report = options_.report}) {
  carrier_->SetListener(this);
}

NcclTransport::~NcclTransport() {
  if (armed_ != absl::InfiniteFuture()) loop_->Cancel(timer_);
}

void NcclTransport::SetListener(TransportListener* listener) {
  listener_ = listener;
}

void NcclTransport::Prepare(const View& view) {
  if (groups_.Prepare(view, loop_->Now())) Arm();
}

NcclCounters NcclTransport::nccl_counters() const {
  NcclCounters seen = seen_;
  seen.broken = groups_.broken();
  return seen;
}

NcclGroups::Group* NcclTransport::UsableFor(PeerId to, const Peer& peer,
                                            Channel channel,
                                            const Frame& frame) {
  // A body is offered once: one that is sent again goes with its head.
  if (channel != Channel::kEdge || frame.exchange == 0 || frame.body.empty() ||
      frame.body.size() < options_.least_bytes ||
      frame.body.size() > options_.max_body_bytes ||
      frame.head.size() + kBodyFrameBytes > kMaxHeadBytes ||
      frame.exchange <= peer.offered || peer.open.empty()) {
    return nullptr;
  }
  NcclGroups::Group* const group =
      groups_.ForRound(RoundOf(frame.exchange), loop_->Now());
  if (group == nullptr || !group->comm.ready()) return nullptr;
  const auto colour = group->plan.Colour(RoundOf(frame.exchange), to);
  if (!colour || !MayTakeTurn(frame.exchange, *colour)) return nullptr;
  return group;
}

// A peer launches its pairs in rising order.  A pair that would come before the
// one under way could close a circle: of a payload that is sent for the first
// time when a connection is back, for example.  Two pairs of one matching are
// of views that differ.
bool NcclTransport::MayTakeTurn(uint64_t exchange, int colour) const {
  const auto place = std::pair(exchange, colour);
  if (flying_ && place <= std::pair(flying_->exchange, flying_->colour)) {
    return false;
  }
  return std::ranges::none_of(turns_, [&](const auto& t) {
    return place == std::pair(t.first.exchange, t.first.colour);
  });
}

// Frames out.

void NcclTransport::Connect(PeerId peer, const std::string& address) {
  carrier_->Connect(peer, address);
}

void NcclTransport::Disconnect(PeerId peer) {
  if (const auto it = peers_.find(peer); it != peers_.end()) {
    while (!it->second.open.empty()) Drop(peer, it->second.open.begin()->first);
    peers_.erase(it);
  }
  carrier_->Disconnect(peer);
  Launch();
}

void NcclTransport::Close(PeerId peer, ConnectionId connection,
                          const absl::Status& why) {
  Drop(peer, connection);
  carrier_->Close(peer, connection, why);
  Launch();
}

TransportCounters NcclTransport::counters() const {
  TransportCounters counters = counters_;
  counters.strangers_refused = carrier_->counters().strangers_refused;
  return counters;
}

bool NcclTransport::Send(PeerId to, Channel channel, Frame frame) {
  const size_t bytes = frame.head.size() + frame.body.size();
  const uint64_t exchange =
      channel == Channel::kEdge ? std::exchange(frame.exchange, 0) : 0;
  const auto it = peers_.find(to);
  if (it == peers_.end()) {
    // Nothing is open: the carrier refuses the frame.
    return carrier_->Send(to, channel, std::move(frame));
  }
  Peer& peer = it->second;
  // Views before its round are over.
  if (exchange != 0) groups_.ForRound(RoundOf(exchange), loop_->Now());
  frame.exchange = exchange;
  NcclGroups::Group* const group = UsableFor(to, peer, channel, frame);
  frame.exchange = 0;
  const bool has_body = !frame.body.empty();
  if (group == nullptr) {
    if (!carrier_->Send(to, channel, std::move(frame))) return false;
    counters_.bytes_sent += bytes;
  } else {
    const BodyFrame offer{.kind = BodyKind::kOffer,
                          .channel = channel,
                          .size = static_cast<uint32_t>(frame.body.size()),
                          .key = group->plan.key(),
                          .exchange = exchange,
                          .got = peer.got,
                          .rest = frame.head};
    if (!carrier_->Send(
            to, Channel::kBody,
            {Payload::FromVector(EncodeBodyFrame(offer)), Payload()})) {
      return false;
    }
    counters_.bytes_sent += bytes;
    peer.offered = exchange;
    peer.offers[exchange] = {.connection = peer.open.rbegin()->first,
                             .key = group->plan.key(),
                             .body = std::move(frame.body),
                             .since = loop_->Now()};
    const int colour = *group->plan.Colour(RoundOf(exchange), to);
    turns_[{exchange, colour, to}] = {.key = group->plan.key()};
    if (Leads(to)) Settle(to, peer, exchange);
  }
  if (exchange != 0) {
    peer.undecided = std::max(peer.undecided, exchange + (has_body ? 1 : 0));
    DeclineDecided(to, peer);
  }
  Arm();
  return true;
}

void NcclTransport::Tell(PeerId to, BodyKind kind, uint64_t key,
                         uint64_t exchange, Payload rest, uint32_t size) {
  const auto it = peers_.find(to);
  const BodyFrame frame{.kind = kind,
                        .size = size,
                        .key = key,
                        .exchange = exchange,
                        .got = it == peers_.end() ? 0 : it->second.got,
                        .rest = std::move(rest)};
  // Without a connection nothing is lost: what it is about ends with it.
  carrier_->Send(to, Channel::kBody,
                 {Payload::FromVector(EncodeBodyFrame(frame)), Payload()});
}

void NcclTransport::SendBody(PeerId to, Peer& peer, uint64_t exchange) {
  const auto it = peer.offers.find(exchange);
  if (it == peer.offers.end()) return;
  const BodyFrame frame{.kind = BodyKind::kBody,
                        .size = static_cast<uint32_t>(it->second.body.size()),
                        .key = it->second.key,
                        .exchange = exchange,
                        .got = peer.got};
  carrier_->Send(to, Channel::kBody,
                 {Payload::FromVector(EncodeBodyFrame(frame)),
                  std::move(it->second.body)});
  peer.offers.erase(it);
}

// Agreement.

std::pair<NcclTransport::Held*, ConnectionId> NcclTransport::FindHeld(
    Peer& peer, uint64_t exchange) {
  for (auto& [connection, c] : peer.open) {
    for (Held& held : c.held) {
      if (!held.whole && held.exchange == exchange) return {&held, connection};
    }
  }
  return {nullptr, 0};
}

void NcclTransport::Settle(PeerId with, Peer& peer, uint64_t exchange) {
  const auto offer = peer.offers.find(exchange);
  const Held* const held = FindHeld(peer, exchange).first;
  if (offer == peer.offers.end() || held == nullptr || held->declined) return;
  // Ends that adopt a view at different times name different groups.
  if (held->key != offer->second.key || !groups_.Ready(held->key)) {
    return Decline(with, peer, exchange);
  }
  const uint32_t number = ++peer.agreements;
  Tell(with, BodyKind::kAgree, held->key, exchange, {}, number);
  Agree(with, peer, exchange, number);
}

void NcclTransport::Agree(PeerId with, Peer& peer, uint64_t exchange,
                          uint32_t number) {
  const auto offer = peer.offers.find(exchange);
  const auto [held, connection] = FindHeld(peer, exchange);
  const auto turn = std::ranges::find_if(turns_, [&](const auto& t) {
    return t.first.exchange == exchange && t.first.peer == with;
  });
  // The connection of one of the two has gone: the other end's operation is
  // late then, and both go on without NCCL.
  if (offer == peer.offers.end() || held == nullptr || turn == turns_.end() ||
      offer->second.agreed || held->key != offer->second.key) {
    return;
  }
  offer->second.agreed = held->agreed = true;
  turn->second.agreed = true;
  turn->second.body = offer->second.body;
  turn->second.connection = connection;
  turn->second.size = held->size;
  turn->second.name = RngKey(exchange).Fold(number).Bits(0);
  Launch();
}

void NcclTransport::Decline(PeerId to, Peer& peer, uint64_t exchange) {
  if (Held* const held = FindHeld(peer, exchange).first; held != nullptr) {
    held->declined = true;
  }
  // An offer to come would meet nobody's.
  peer.offered = std::max(peer.offered, exchange);
  Tell(to, BodyKind::kDecline, 0, exchange);
  ++seen_.declined;
  SendBody(to, peer, exchange);
  EraseTurn(to, exchange);
  Launch();
}

void NcclTransport::DeclineDecided(PeerId to, Peer& peer) {
  std::vector<uint64_t> declined;
  for (const auto& [connection, c] : peer.open) {
    for (const Held& held : c.held) {
      if (!held.whole && !held.declined && !held.agreed &&
          held.exchange < peer.undecided &&
          !peer.offers.contains(held.exchange)) {
        declined.push_back(held.exchange);
      }
    }
  }
  for (const uint64_t exchange : declined) Decline(to, peer, exchange);
}

bool NcclTransport::Expects(PeerId peer, uint64_t name) const {
  return std::ranges::any_of(turns_, [&](const auto& t) {
    return t.first.peer == peer && t.second.agreed && t.second.name == name;
  });
}

void NcclTransport::EraseTurn(PeerId peer, uint64_t exchange) {
  std::erase_if(turns_, [&](const auto& t) {
    return t.first.peer == peer && t.first.exchange == exchange &&
           !t.second.agreed;
  });
}

// Frames in.

void NcclTransport::OnUp(PeerId peer, ConnectionId connection) {
  Peer& p = peers_[peer];
  p.open[connection];
  p.got = 0;
  listener_->OnUp(peer, connection);
  groups_.OnUp(peer);
}

void NcclTransport::OnFrame(PeerId from, ConnectionId connection,
                            Channel channel, Frame frame) {
  if (channel == Channel::kBody) {
    const std::weak_ptr<bool> alive = alive_;
    const absl::Status heard = OnBodyFrame(from, connection, std::move(frame));
    if (alive.expired()) return;
    if (!heard.ok()) Close(from, connection, heard);
    Arm();
    return;
  }
  const auto peer = peers_.find(from);
  if (peer != peers_.end()) {
    const auto open = peer->second.open.find(connection);
    if (open != peer->second.open.end() && !open->second.held.empty()) {
      // Frames keep their order: this one waits for the bodies before it.
      open->second.held.push_back(
          {.channel = channel, .frame = std::move(frame)});
      if (open->second.held.size() > kMostHeld) {
        Close(from, connection,
              absl::ResourceExhaustedError(
                  absl::StrCat("peer ", from.value, " has sent ", kMostHeld,
                               " frames behind a body that does not come")));
      }
      return;
    }
  }
  counters_.bytes_received += frame.head.size() + frame.body.size();
  listener_->OnFrame(from, connection, channel, std::move(frame));
}

void NcclTransport::OnDown(PeerId peer, ConnectionId connection,
                           const absl::Status& why) {
  Drop(peer, connection);
  Launch();
  listener_->OnDown(peer, connection, why);
}

// Offers and held frames go with their connection, as the contract has it.
void NcclTransport::Drop(PeerId peer, ConnectionId connection) {
  const auto it = peers_.find(peer);
  if (it == peers_.end()) return;
  it->second.open.erase(connection);
  std::erase_if(it->second.offers, [&](const auto& offer) {
    if (offer.second.connection != connection) return false;
    EraseTurn(peer, offer.first);
    return true;
  });
}

absl::Status NcclTransport::OnBodyFrame(PeerId from, ConnectionId connection,
                                        Frame frame) {
  GOSSAMER_ASSIGN_OR_RETURN(BodyFrame body, DecodeBodyFrame(frame.head));
  const auto it = peers_.find(from);
  if (it == peers_.end()) return absl::OkStatus();
  Peer& peer = it->second;
  HearGot(peer, body.got);
  switch (body.kind) {
    case BodyKind::kOffer:
      return OnOffer(from, connection, std::move(body));
    case BodyKind::kAgree:
      if (!Leads(from)) Agree(from, peer, body.exchange, body.size);
      break;
    case BodyKind::kDecline: {
      const auto offer = peer.offers.find(body.exchange);
      if (offer == peer.offers.end() || offer->second.agreed) break;
      SendBody(from, peer, body.exchange);
      EraseTurn(from, body.exchange);
      Launch();
      break;
    }
    case BodyKind::kBody:
      return OnBody(from, body, std::move(frame.body));
    case BodyKind::kBroken:
      groups_.End(body.key, NcclEvent::kTold,
                  absl::StrCat("peer ", from.value, " has given it up"));
      break;
    case BodyKind::kId:
      groups_.OnId(from, body.key, body.rest);
      break;
  }
  return absl::OkStatus();
}

void NcclTransport::HearGot(Peer& peer, uint64_t got) {
  std::erase_if(peer.offers, [got](const auto& offer) {
    return offer.second.done && offer.first <= got;
  });
}

absl::Status NcclTransport::OnOffer(PeerId from, ConnectionId connection,
                                    BodyFrame offer) {
  Peer& peer = peers_.at(from);
  const auto open = peer.open.find(connection);
  if (open == peer.open.end()) return absl::OkStatus();
  if (offer.size > options_.max_body_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "peer ", from.value, " offers a body of ", offer.size, " bytes"));
  }
  if (open->second.held.size() >= kMostHeld) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "peer ", from.value, " has ", kMostHeld, " offers under way"));
  }
  // Frames of one connection come in order, so this is one that came before.
  if (offer.exchange <= open->second.heard) return absl::OkStatus();
  open->second.heard = offer.exchange;
  open->second.held.push_back({.channel = offer.channel,
                               .frame = Frame{std::move(offer.rest), Payload()},
                               .whole = false,
                               .exchange = offer.exchange,
                               .key = offer.key,
                               .size = offer.size,
                               .since = loop_->Now()});
  if (Leads(from)) Settle(from, peer, offer.exchange);
  DeclineDecided(from, peer);
  return absl::OkStatus();
}

absl::Status NcclTransport::OnBody(PeerId from, const BodyFrame& frame,
                                   Payload body) {
  const auto [held, connection] = FindHeld(peers_.at(from), frame.exchange);
  if (held == nullptr) return absl::OkStatus();  // NCCL has brought it
  if (body.size() != held->size) {
    return absl::DataLossError(absl::StrCat("a body of ", body.size(),
                                            " bytes where ", held->size,
                                            " were offered"));
  }
  held->frame.body = std::move(body);
  held->whole = true;
  Deliver(from, connection);
  return absl::OkStatus();
}

void NcclTransport::Deliver(PeerId peer, ConnectionId connection) {
  const std::weak_ptr<bool> alive = alive_;
  // The listener may end the connection, or this object, with any frame.
  while (!alive.expired()) {
    const auto it = peers_.find(peer);
    if (it == peers_.end()) return;
    const auto open = it->second.open.find(connection);
    if (open == it->second.open.end() || open->second.held.empty() ||
        !open->second.held.front().whole) {
      return;
    }
    Held held = std::move(open->second.held.front());
    open->second.held.pop_front();
    it->second.got = std::max(it->second.got, held.exchange);
    counters_.bytes_received += held.frame.head.size() + held.frame.body.size();
    listener_->OnFrame(peer, connection, held.channel, std::move(held.frame));
  }
}

// Operations.

// One operation at a time, in the order that all peers share: the pair that is
// first of all has no other before it at either end, so it takes place.
void NcclTransport::Launch() {
  while (!flying_ && !turns_.empty()) {
    auto first = turns_.begin();
    if (SeededBug("nccl-unordered")) {
      const auto agreed = std::ranges::find_if(
          turns_, [](const auto& t) { return t.second.agreed; });
      if (agreed != turns_.end()) first = agreed;
    }
    auto& [turn, pair] = *first;
    if (!pair.agreed) return;
    NcclGroups::Group* const group = groups_.Find(pair.key);
    if (group == nullptr || !group->comm.ready()) {
      turns_.erase(first);
      continue;
    }
    flying_ = turn;
    flying_since_ = loop_->Now();
    const absl::Status begun = group->comm.Exchange(
        *group->plan.RankOf(turn.peer), pair.body, pair.size, pair.name);
    if (!begun.ok()) {
      groups_.End(pair.key, NcclEvent::kFailed,
                  absl::StrCat("the exchange with peer ", turn.peer.value, ": ",
                               std::string(begun.message())));
    }
  }
}

void NcclTransport::PollPair(absl::Time now) {
  if (!flying_) return;
  const Turn turn = *flying_;
  const uint64_t key = turns_.at(turn).key;
  absl::StatusOr<std::optional<Payload>> landed =
      groups_.Find(key)->comm.PollOperation();
  const std::string what =
      absl::StrCat("the exchange with peer ", turn.peer.value);
  if (!landed.ok()) {
    groups_.End(
        key, NcclEvent::kFailed,
        absl::StrCat(what, ": ", std::string(landed.status().message())));
  } else if (landed->has_value()) {
    Finish(**std::move(landed));
  } else if (Late(flying_since_, options_.deadline)) {
    groups_.End(key, NcclEvent::kLate,
                absl::StrCat(what, " has taken ",
                             absl::FormatDuration(now - flying_since_)));
  }
}

void NcclTransport::Finish(Payload body) {
  const Turn turn = *std::exchange(flying_, std::nullopt);
  const Pair pair = std::move(turns_.extract(turn).mapped());
  ++seen_.bodies;
  if (const auto it = peers_.find(turn.peer); it != peers_.end()) {
    const auto offer = it->second.offers.find(turn.exchange);
    if (offer != it->second.offers.end() && offer->second.key == pair.key) {
      offer->second.done = true;
    }
    // The body is that of the exchange that both launched, over the connection
    // that brought its head, and of no other.
    const auto open = it->second.open.find(pair.connection);
    if (open != it->second.open.end()) {
      const auto held =
          std::ranges::find_if(open->second.held, [&](const Held& h) {
            return !h.whole && h.agreed && h.exchange == turn.exchange;
          });
      if (held != open->second.held.end() && held->size == body.size()) {
        held->frame.body = std::move(body);
        held->whole = true;
      }
    }
  }
  Launch();
  Deliver(turn.peer, pair.connection);
}

void NcclTransport::OnEnd(const NcclPlan& plan, NcclEvent why) {
  const uint64_t key = plan.key();
  const bool replaced = why == NcclEvent::kReplaced;
  if (flying_ && turns_.at(*flying_).key == key) flying_.reset();
  std::erase_if(turns_, [key](const auto& t) { return t.second.key == key; });
  for (const PeerId member : plan.group()) {
    const auto it = peers_.find(member);
    if (it == peers_.end()) continue;
    // The other end sends again what this end has not got.
    if (!replaced && why != NcclEvent::kTold) {
      Tell(member, BodyKind::kBroken, key, 0);
    }
    std::vector<uint64_t> lost;
    for (const auto& [exchange, offer] : it->second.offers) {
      if (offer.key == key) lost.push_back(exchange);
    }
    if (!replaced) seen_.fallbacks += lost.size();
    for (const uint64_t exchange : lost) SendBody(member, it->second, exchange);
  }
  Launch();
}

// Time.

bool NcclTransport::Late(absl::Time since, absl::Duration limit) const {
  return !SeededBug("nccl-no-watchdog") && loop_->Now() - since >= limit;
}

void NcclTransport::LookForLate(absl::Time now) {
  struct Found {
    PeerId peer;
    uint64_t exchange = 0;
    ConnectionId connection = 0;
  };
  std::vector<Found> unanswered, unsaid, missing;
  for (auto& [id, peer] : peers_) {
    for (const auto& [exchange, offer] : peer.offers) {
      if (offer.agreed || offer.done) continue;
      if (Leads(id) && now - offer.since >= options_.patience) {
        unanswered.push_back({id, exchange});
      } else if (!Leads(id) && Late(offer.since, options_.deadline)) {
        unsaid.push_back({id, exchange});
      }
    }
    for (const auto& [connection, c] : peer.open) {
      for (const Held& held : c.held) {
        if (held.whole) continue;
        if (Leads(id) && !held.agreed && !held.declined &&
            now - held.since >= options_.patience) {
          unanswered.push_back({id, held.exchange});
        }
        if (Late(held.since, kDeadlinesOfABody * options_.deadline)) {
          missing.push_back({id, held.exchange, connection});
        }
      }
    }
  }
  for (const Found& f : unanswered) {
    if (const auto it = peers_.find(f.peer); it != peers_.end()) {
      Decline(f.peer, it->second, f.exchange);
    }
  }
  for (const Found& f : unsaid) {
    const auto it = peers_.find(f.peer);
    if (it == peers_.end() || !it->second.offers.contains(f.exchange)) continue;
    const uint64_t key = it->second.offers.at(f.exchange).key;
    groups_.End(key, NcclEvent::kLate,
                absl::StrCat("peer ", f.peer.value, " has not said for ",
                             absl::FormatDuration(options_.deadline),
                             " whether an exchange takes place"));
  }
  // The edge sends the payload again over the next connection.
  for (const Found& f : missing) {
    Close(f.peer, f.connection,
          absl::DeadlineExceededError(absl::StrCat(
              "a body of peer ", f.peer.value, " has not come for ",
              absl::FormatDuration(kDeadlinesOfABody * options_.deadline))));
  }
}

void NcclTransport::Tick() {
  armed_ = absl::InfiniteFuture();
  const absl::Time now = loop_->Now();
  const std::weak_ptr<bool> alive = alive_;
  groups_.Poll(now);
  LookForLate(now);
  // Last: it hands frames to the listener, which may destroy this object.
  PollPair(now);
  if (!alive.expired()) Arm();
}

absl::Time NcclTransport::NextTick(absl::Time now) const {
  absl::Time next = absl::InfiniteFuture();
  const auto at = [&next](absl::Time when) { next = std::min(next, when); };
  if (flying_) at(now);
  at(groups_.NextPoll(now));
  for (const auto& [id, peer] : peers_) {
    for (const auto& [exchange, offer] : peer.offers) {
      if (offer.agreed || offer.done) continue;
      at(offer.since + (Leads(id) ? options_.patience : options_.deadline));
    }
    for (const auto& [connection, c] : peer.open) {
      for (const Held& held : c.held) {
        if (held.whole) continue;
        if (Leads(id) && !held.agreed && !held.declined) {
          at(held.since + options_.patience);
        }
        at(held.since + kDeadlinesOfABody * options_.deadline);
      }
    }
  }
  return std::max(next, now + options_.poll);
}

void NcclTransport::Arm() {
  const absl::Time next = NextTick(loop_->Now());
  if (next >= armed_ || next == absl::InfiniteFuture()) return;
  if (armed_ != absl::InfiniteFuture()) loop_->Cancel(timer_);
  armed_ = next;
  timer_ = loop_->RunAt(next, [this] { Tick(); });
}

}  // namespace gossamer
