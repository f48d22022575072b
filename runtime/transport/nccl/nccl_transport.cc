#include "runtime/transport/nccl/nccl_transport.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "algorithms/base/status_macros.h"
#include "runtime/transport/nccl/body_frame.h"

namespace gossamer {

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
                   [this](PeerId to, uint64_t key, SharedBytes id) {
                     SendId(to, key, std::move(id));
                   },
               .on_made =
                   [this](uint64_t key) {
                     queue_.EnterMeeting(key);
                     runner_.Launch();
                   },
               .on_end = [this](const NcclPlan& plan,
                                NcclEvent why) { OnEnd(plan, why); },
               .report = options_.report}),
      runner_(loop, &queue_, &groups_, options_.deadline),
      of_peers_{.self = options_.self,
                .deadline = options_.deadline,
                .offer_timeout = options_.offer_timeout,
                .max_body_bytes = options_.max_body_bytes,
                .max_held_bytes = options_.max_held_bytes,
                .send =
                    [this](PeerId to, Frame frame) {
                      return carrier_->Send(to, Channel::kBody,
                                            std::move(frame));
                    },
                .ready = [this](uint64_t key) { return groups_.Ready(key); },
                .on_agreed = [this] { runner_.Launch(); },
                .on_declined =
                    [this] {
                      ++seen_.declined;
                      runner_.Launch();
                    }} {
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

TransportCounters NcclTransport::counters() const {
  TransportCounters counters = carrier_->counters();
  counters.bytes_sent = counters_.bytes_sent;
  counters.bytes_received = counters_.bytes_received;
  return counters;
}

// Frames out.

void NcclTransport::Connect(PeerId peer, const std::string& address) {
  carrier_->Connect(peer, address);
}

void NcclTransport::Disconnect(PeerId peer) {
  if (const auto it = peers_.find(peer); it != peers_.end()) {
    it->second.DropAll();
    peers_.erase(it);
  }
  carrier_->Disconnect(peer);
  runner_.Launch();
}

void NcclTransport::Close(PeerId peer, ConnectionId connection,
                          const absl::Status& why) {
  Drop(peer, connection);
  carrier_->Close(peer, connection, why);
  runner_.Launch();
}

void NcclTransport::Drop(PeerId peer, ConnectionId connection) {
  const auto it = peers_.find(peer);
  if (it != peers_.end()) it->second.Drop(connection);
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
  PeerBodies& peer = it->second;
  const bool has_body = !frame.body.empty();
  std::optional<NcclPair> pair = PairFor(to, peer, exchange, frame);
  const bool sent =
      pair ? peer.Offer(*std::move(pair), std::move(frame), loop_->Now())
           : carrier_->Send(to, channel, std::move(frame));
  if (!sent) return false;
  counters_.bytes_sent += bytes;
  if (exchange != 0) peer.Decide(exchange + (has_body ? 1 : 0));
  Arm();
  return true;
}

std::optional<NcclPair> NcclTransport::PairFor(PeerId to,
                                               const PeerBodies& peer,
                                               uint64_t exchange,
                                               const Frame& frame) {
  if (exchange == 0) return std::nullopt;
  // A frame without a body ends the views before its round, too.
  const uint64_t round = RoundOf(exchange);
  const NcclGroups::Group* const group = groups_.ForRound(round, loop_->Now());
  if (group == nullptr || !group->comm.ready() || frame.body.empty() ||
      frame.body.size() < options_.min_bytes ||
      frame.body.size() > options_.max_body_bytes ||
      frame.body.size() > std::numeric_limits<uint32_t>::max() ||  // in offers
      frame.head.size() + kBodyFrameBytes > kMaxHeadBytes ||
      !peer.MayOffer(exchange)) {
    return std::nullopt;
  }
  const std::optional<int> colour = group->plan.Colour(round, to);
  if (!colour || !queue_.MayEnter(exchange, *colour)) return std::nullopt;
  return NcclPair{.position = {exchange, *colour, to},
                  .key = group->plan.key()};
}

void NcclTransport::SendId(PeerId to, uint64_t key, SharedBytes id) {
  BodyFrame frame{.kind = BodyKind::kId, .key = key, .rest = std::move(id)};
  if (const auto it = peers_.find(to); it != peers_.end()) {
    it->second.Send(std::move(frame));
  } else {
    // The carrier may know of a connection that has not been reported yet.
    carrier_->Send(
        to, Channel::kBody,
        {SharedBytes::FromVector(EncodeBodyFrame(frame)), SharedBytes()});
  }
}

// Frames in.

void NcclTransport::OnUp(PeerId peer, ConnectionId connection) {
  peers_.try_emplace(peer, peer, &queue_, &of_peers_)
      .first->second.Open(connection);
  listener_->OnUp(peer, connection);
  groups_.OnUp(peer);
}

void NcclTransport::OnDown(PeerId peer, ConnectionId connection,
                           const absl::Status& why) {
  Drop(peer, connection);
  runner_.Launch();
  listener_->OnDown(peer, connection, why);
}

void NcclTransport::OnFrame(PeerId from, ConnectionId connection,
                            Channel channel, Frame frame) {
  if (channel == Channel::kBody) {
    const std::weak_ptr<bool> alive = alive_;
    const absl::Status taken = OnBodyFrame(from, connection, std::move(frame));
    if (alive.expired()) return;
    if (!taken.ok()) Close(from, connection, taken);
    Arm();
    return;
  }
  const auto peer = peers_.find(from);
  if (peer != peers_.end() && peer->second.held().Waits(connection)) {
    // Frames keep their order: this one waits for the bodies before it.
    if (peer->second.held().Full(connection,
                                 frame.head.size() + frame.body.size())) {
      return Close(from, connection,
                   absl::ResourceExhaustedError(absl::StrCat(
                       "peer ", from.value, " has sent more than ",
                       HeldFrames::kMax, " frames or ", options_.max_held_bytes,
                       " bytes behind a body that does not come")));
    }
    peer->second.held().Add(connection, channel, std::move(frame));
    return;
  }
  counters_.bytes_received += frame.head.size() + frame.body.size();
  listener_->OnFrame(from, connection, channel, std::move(frame));
}

absl::Status NcclTransport::OnBodyFrame(PeerId from, ConnectionId connection,
                                        Frame frame) {
  GOSSAMER_ASSIGN_OR_RETURN(BodyFrame body, DecodeBodyFrame(frame.head));
  const auto it = peers_.find(from);
  if (it == peers_.end()) return absl::OkStatus();
  PeerBodies& peer = it->second;
  peer.OnAck(body.ack);
  switch (body.kind) {
    case BodyKind::kOffer:
      return peer.OnOffer(connection, std::move(body), loop_->Now());
    case BodyKind::kAgree:
      peer.OnAgree(body.exchange, body.size);
      break;
    case BodyKind::kDecline:
      peer.OnDecline(body.exchange);
      runner_.Launch();
      break;
    case BodyKind::kBody: {
      GOSSAMER_ASSIGN_OR_RETURN(
          const std::optional<ConnectionId> whole,
          peer.held().Complete(body.exchange, std::move(frame.body)));
      if (whole) Deliver(from, *whole);
      break;
    }
    case BodyKind::kBroken:
      groups_.OnBroken(from, body.key);
      break;
    case BodyKind::kId:
      groups_.OnId(from, body.key, body.rest);
      break;
  }
  return absl::OkStatus();
}

void NcclTransport::Deliver(PeerId peer, ConnectionId connection) {
  const std::weak_ptr<bool> alive = alive_;
  while (!alive.expired()) {
    const auto it = peers_.find(peer);
    if (it == peers_.end()) return;
    std::optional<HeldFrame> held = it->second.held().Take(connection);
    if (!held) return;
    counters_.bytes_received +=
        held->frame.head.size() + held->frame.body.size();
    listener_->OnFrame(peer, connection, held->channel, std::move(held->frame));
  }
}

void NcclTransport::OnEnd(const NcclPlan& plan, NcclEvent why) {
  queue_.Drop(plan.key());
  const bool replaced = why == NcclEvent::kReplaced;
  for (const PeerId member : plan.group()) {
    const auto it = peers_.find(member);
    if (it == peers_.end()) continue;
    // The other end sends again what this end has not got.
    if (!replaced && why != NcclEvent::kRemoteAbort) {
      it->second.Send({.kind = BodyKind::kBroken, .key = plan.key()});
    }
    const size_t lost = it->second.SendAgain(plan.key());
    if (!replaced) seen_.fallbacks += lost;
  }
  runner_.Launch();
}

// Time.

void NcclTransport::CheckForLate(absl::Time now) {
  // All are found before anything is done about one.
  std::vector<std::pair<PeerId, uint64_t>> unmatched, unanswered;
  std::vector<std::pair<PeerId, PeerBodies::Missing>> missing;
  for (const auto& [id, peer] : peers_) {
    for (const uint64_t exchange : peer.UnmatchedOffers(now)) {
      unmatched.emplace_back(id, exchange);
    }
    for (const uint64_t key : peer.Unanswered(now)) {
      unanswered.emplace_back(id, key);
    }
    for (PeerBodies::Missing& body : peer.MissingBodies(now)) {
      missing.emplace_back(id, std::move(body));
    }
  }
  for (const auto& [id, exchange] : unmatched) {
    const auto it = peers_.find(id);
    if (it != peers_.end()) it->second.Decline(exchange);
  }
  for (const auto& [id, key] : unanswered) {
    groups_.End(key, NcclEvent::kLate,
                absl::StrCat("peer ", id.value, " has not said for ",
                             absl::FormatDuration(options_.deadline),
                             " whether an exchange takes place"));
  }
  // The edge sends the payload again over the next connection.
  for (const auto& [id, body] : missing) {
    Close(id, body.connection, body.why);
  }
}

void NcclTransport::Tick() {
  armed_ = absl::InfiniteFuture();
  const absl::Time now = loop_->Now();
  const std::weak_ptr<bool> alive = alive_;
  groups_.Poll(now);
  CheckForLate(now);
  if (std::optional<PairRunner::Completed> completed = runner_.Poll(now)) {
    ++seen_.bodies;
    const NcclPair& pair = completed->pair;
    if (const auto it = peers_.find(pair.position.peer); it != peers_.end()) {
      it->second.Complete(pair, std::move(completed->body));
    }
    runner_.Launch();
    // Last: the listener may destroy this object.
    Deliver(pair.position.peer, pair.terms->connection);
  }
  if (!alive.expired()) Arm();
}

void NcclTransport::Arm() {
  const absl::Time now = loop_->Now();
  absl::Time next = groups_.NextPoll(now);
  if (queue_.under_way() != nullptr) next = std::min(next, now);
  for (const auto& [id, peer] : peers_) next = std::min(next, peer.NextPoll());
  next = std::max(next, now + options_.poll);
  if (next >= armed_ || next == absl::InfiniteFuture()) return;
  if (armed_ != absl::InfiniteFuture()) loop_->Cancel(timer_);
  armed_ = next;
  timer_ = loop_->RunAt(next, [this] { Tick(); });
}

}  // namespace gossamer
