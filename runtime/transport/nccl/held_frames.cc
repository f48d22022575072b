#include "runtime/transport/nccl/held_frames.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace gossamer {
namespace {

size_t BytesOf(const HeldFrame& held) {
  return held.frame.head.size() +
         (held.whole ? held.frame.body.size() : held.size);
}

}  // namespace

void HeldFrames::Open(ConnectionId connection) {
  open_[connection];
  ack_ = 0;
}

void HeldFrames::Drop(ConnectionId connection) { open_.erase(connection); }

void HeldFrames::DropAll() {
  open_.clear();
  ack_ = 0;
}

bool HeldFrames::Waits(ConnectionId connection) const {
  const auto it = open_.find(connection);
  return it != open_.end() && !it->second.frames.empty();
}

bool HeldFrames::Full(ConnectionId connection, size_t bytes) const {
  const auto it = open_.find(connection);
  if (it == open_.end() || it->second.frames.empty()) return false;
  return it->second.frames.size() >= kMax ||
         it->second.bytes + bytes > max_bytes_;
}

void HeldFrames::Add(ConnectionId connection, Channel channel, Frame frame) {
  Connection& c = open_.at(connection);
  c.frames.push_back({.channel = channel, .frame = std::move(frame)});
  c.bytes += BytesOf(c.frames.back());
}

bool HeldFrames::AddOffer(ConnectionId connection, BodyFrame offer,
                          absl::Time now) {
  Connection& c = open_.at(connection);
  if (offer.exchange <= c.last_offer) return false;
  c.last_offer = offer.exchange;
  c.frames.push_back({.channel = offer.channel,
                      .frame = Frame{std::move(offer.rest), SharedBytes()},
                      .whole = false,
                      .connection = connection,
                      .exchange = offer.exchange,
                      .key = offer.key,
                      .size = offer.size,
                      .since = now});
  c.bytes += BytesOf(c.frames.back());
  return true;
}

HeldFrame* HeldFrames::Find(uint64_t exchange) {
  for (auto& [connection, c] : open_) {
    for (HeldFrame& held : c.frames) {
      if (!held.whole && held.exchange == exchange) return &held;
    }
  }
  return nullptr;
}

void HeldFrames::ForEachWaiting(
    absl::FunctionRef<void(const HeldFrame&)> visit) const {
  for (const auto& [connection, c] : open_) {
    for (const HeldFrame& held : c.frames) {
      if (!held.whole) visit(held);
    }
  }
}

absl::StatusOr<std::optional<ConnectionId>> HeldFrames::Complete(
    uint64_t exchange, SharedBytes body) {
  HeldFrame* const held = Find(exchange);
  if (held == nullptr) return std::nullopt;
  if (body.size() != held->size) {
    return absl::DataLossError(absl::StrCat("a body of ", body.size(),
                                            " bytes where ", held->size,
                                            " were offered"));
  }
  held->frame.body = std::move(body);
  held->whole = true;
  return held->connection;
}

void HeldFrames::CompleteAgreed(ConnectionId connection, uint64_t exchange,
                                SharedBytes body) {
  const auto it = open_.find(connection);
  if (it == open_.end()) return;
  const auto held =
      std::ranges::find_if(it->second.frames, [&](const HeldFrame& h) {
        return !h.whole && h.agreed && h.exchange == exchange;
      });
  if (held == it->second.frames.end() || held->size != body.size()) return;
  held->frame.body = std::move(body);
  held->whole = true;
}

std::optional<HeldFrame> HeldFrames::Take(ConnectionId connection) {
  const auto it = open_.find(connection);
  if (it == open_.end() || it->second.frames.empty() ||
      !it->second.frames.front().whole) {
    return std::nullopt;
  }
  HeldFrame held = std::move(it->second.frames.front());
  it->second.frames.pop_front();
  it->second.bytes -= BytesOf(held);
  ack_ = std::max(ack_, held.exchange);
  return held;
}

}  // namespace gossamer
