#include "runtime/transport/nccl/peer_bodies.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "algorithms/base/rng.h"
#include "runtime/transport/nccl/watchdog.h"

namespace gossamer {
namespace {

// The other end takes back an offer, or sends its body again, within its own
// deadline; after so many of them it has not heard what it should have.
constexpr int kDeadlinesOfABody = 3;

}  // namespace

PeerBodies::PeerBodies(PeerId peer, LaunchQueue* queue,
                       const PeerBodiesOptions* options)
    : peer_(peer),
      queue_(queue),
      options_(options),
      held_(options->max_held_bytes) {}

void PeerBodies::Drop(ConnectionId connection) {
  held_.Drop(connection);
  std::erase_if(offers_, [&](const auto& offer) {
    if (offer.second.connection != connection) return false;
    queue_->Withdraw(peer_, offer.first);
    return true;
  });
}

void PeerBodies::DropAll() {
  for (const auto& [exchange, offer] : offers_) {
    queue_->Withdraw(peer_, exchange);
  }
  offers_.clear();
  held_.DropAll();
}

bool PeerBodies::Send(BodyFrame frame, SharedBytes body) {
  frame.ack = held_.ack();
  return options_->send(peer_, {SharedBytes::FromVector(EncodeBodyFrame(frame)),
                                std::move(body)});
}

// This end's bodies.

bool PeerBodies::Offer(NcclPair pair, Frame frame, absl::Time now) {
  const uint64_t exchange = pair.position.exchange;
  if (!Send({.kind = BodyKind::kOffer,
             .size = static_cast<uint32_t>(frame.body.size()),
             .key = pair.key,
             .exchange = exchange,
             .rest = std::move(frame.head)})) {
    return false;
  }
  offered_ = exchange;
  offers_[exchange] = {.connection = held_.newest(),
                       .key = pair.key,
                       .body = std::move(frame.body),
                       .since = now};
  queue_->Enter(std::move(pair));
  if (leads()) Resolve(exchange);
  return true;
}

void PeerBodies::Decide(uint64_t undecided) {
  undecided_ = std::max(undecided_, undecided);
  DeclineDecided();
}

void PeerBodies::SendBody(uint64_t exchange) {
  const auto it = offers_.find(exchange);
  if (it == offers_.end()) return;
  Send({.kind = BodyKind::kBody,
        .size = static_cast<uint32_t>(it->second.body.size()),
        .key = it->second.key,
        .exchange = exchange},
       std::move(it->second.body));
  offers_.erase(it);
}

size_t PeerBodies::SendAgain(uint64_t key) {
  std::vector<uint64_t> lost;
  for (const auto& [exchange, offer] : offers_) {
    if (offer.key == key) lost.push_back(exchange);
  }
  for (const uint64_t exchange : lost) SendBody(exchange);
  return lost.size();
}

void PeerBodies::OnAck(uint64_t ack) {
  std::erase_if(offers_, [ack](const auto& offer) {
    return offer.second.done && offer.first <= ack;
  });
}

// Agreement.

void PeerBodies::Resolve(uint64_t exchange) {
  const auto offer = offers_.find(exchange);
  const HeldFrame* const held = held_.Find(exchange);
  if (offer == offers_.end() || held == nullptr || held->declined) return;
  // Ends that adopt a view at different times name different groups.
  if (held->key != offer->second.key || !options_->ready(held->key)) {
    return Decline(exchange);
  }
  const uint32_t number = ++agreements_;
  Send({.kind = BodyKind::kAgree,
        .size = number,
        .key = held->key,
        .exchange = exchange});
  Agree(exchange, number);
}

void PeerBodies::Agree(uint64_t exchange, uint32_t number) {
  const auto offer = offers_.find(exchange);
  HeldFrame* const held = held_.Find(exchange);
  // The connection of one of the two has gone: the other end's operation is
  // late then, and both go on without NCCL.
  if (offer == offers_.end() || held == nullptr || offer->second.agreed ||
      held->key != offer->second.key ||
      !queue_->Agree(peer_, exchange,
                     {.body = offer->second.body,
                      .connection = held->connection,
                      .size = held->size,
                      .name = RngKey(exchange).Fold(number).Bits(0)})) {
    return;
  }
  offer->second.agreed = held->agreed = true;
  options_->on_agreed();
}

void PeerBodies::Decline(uint64_t exchange) {
  if (HeldFrame* const held = held_.Find(exchange); held != nullptr) {
    held->declined = true;
  }
  // An offer to come would meet nobody's.
  offered_ = std::max(offered_, exchange);
  Send({.kind = BodyKind::kDecline, .exchange = exchange});
  SendBody(exchange);
  queue_->Withdraw(peer_, exchange);
  options_->on_declined();
}

void PeerBodies::DeclineDecided() {
  std::vector<uint64_t> decided;
  held_.ForEachWaiting([&](const HeldFrame& held) {
    if (!held.declined && !held.agreed && held.exchange < undecided_ &&
        !offers_.contains(held.exchange)) {
      decided.push_back(held.exchange);
    }
  });
  for (const uint64_t exchange : decided) Decline(exchange);
}

absl::Status PeerBodies::OnOffer(ConnectionId connection, BodyFrame offer,
                                 absl::Time now) {
  if (!held_.IsOpen(connection)) return absl::OkStatus();
  if (offer.size > options_->max_body_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "peer ", peer_.value, " offers a body of ", offer.size, " bytes"));
  }
  if (held_.Full(connection, offer.rest.size() + offer.size)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("peer ", peer_.value, " offers more bodies than the ",
                     HeldFrames::kMax, " frames or ", options_->max_held_bytes,
                     " bytes that may wait for them"));
  }
  const uint64_t exchange = offer.exchange;
  // Frames of one connection come in order, so this is one that came before.
  if (!held_.AddOffer(connection, std::move(offer), now)) {
    return absl::OkStatus();
  }
  if (leads()) Resolve(exchange);
  DeclineDecided();
  return absl::OkStatus();
}

void PeerBodies::OnAgree(uint64_t exchange, uint32_t number) {
  if (!leads()) Agree(exchange, number);
}

void PeerBodies::OnDecline(uint64_t exchange) {
  const auto offer = offers_.find(exchange);
  if (offer == offers_.end() || offer->second.agreed) return;
  SendBody(exchange);
  queue_->Withdraw(peer_, exchange);
}

// The body is that of the exchange that both launched, over the connection that
// brought its head, and of no other.
void PeerBodies::Complete(const NcclPair& pair, SharedBytes body) {
  const uint64_t exchange = pair.position.exchange;
  const auto offer = offers_.find(exchange);
  if (offer != offers_.end() && offer->second.key == pair.key) {
    offer->second.done = true;
  }
  held_.CompleteAgreed(pair.terms->connection, exchange, std::move(body));
}

// Time.

std::vector<uint64_t> PeerBodies::UnmatchedOffers(absl::Time now) const {
  std::vector<uint64_t> unmatched;
  if (!leads()) return unmatched;
  for (const auto& [exchange, offer] : offers_) {
    if (!offer.agreed && !offer.done &&
        now - offer.since >= options_->offer_timeout) {
      unmatched.push_back(exchange);
    }
  }
  held_.ForEachWaiting([&](const HeldFrame& held) {
    if (!held.agreed && !held.declined &&
        now - held.since >= options_->offer_timeout) {
      unmatched.push_back(held.exchange);
    }
  });
  return unmatched;
}

std::vector<uint64_t> PeerBodies::Unanswered(absl::Time now) const {
  std::vector<uint64_t> keys;
  if (leads()) return keys;
  for (const auto& [exchange, offer] : offers_) {
    if (!offer.agreed && !offer.done &&
        IsLate(offer.since, options_->deadline, now)) {
      keys.push_back(offer.key);
    }
  }
  return keys;
}

std::vector<PeerBodies::Missing> PeerBodies::MissingBodies(
    absl::Time now) const {
  std::vector<Missing> missing;
  const absl::Duration limit = kDeadlinesOfABody * options_->deadline;
  held_.ForEachWaiting([&](const HeldFrame& held) {
    if (!IsLate(held.since, limit, now)) return;
    missing.push_back({held.connection,
                       absl::DeadlineExceededError(absl::StrCat(
                           "a body of peer ", peer_.value, " has not come for ",
                           absl::FormatDuration(limit)))});
  });
  return missing;
}

absl::Time PeerBodies::NextPoll() const {
  absl::Time next = absl::InfiniteFuture();
  const auto at = [&next](absl::Time when) { next = std::min(next, when); };
  for (const auto& [exchange, offer] : offers_) {
    if (offer.agreed || offer.done) continue;
    at(offer.since + (leads() ? options_->offer_timeout : options_->deadline));
  }
  held_.ForEachWaiting([&](const HeldFrame& held) {
    if (leads() && !held.agreed && !held.declined) {
      at(held.since + options_->offer_timeout);
    }
    at(held.since + kDeadlinesOfABody * options_->deadline);
  });
  return next;
}

}  // namespace gossamer
