#include "runtime/neighborhood/link_prober.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "algorithms/base/crc32c.h"
#include "algorithms/base/little_endian.h"

namespace gossamer {
namespace {

//   0 magic "GSMP"  4 kind (4 bytes)  8 number  16 bytes  24 nanoseconds
//   32 CRC-32C of bytes 0 to 31
constexpr uint32_t kMagic = 0x504d5347;
constexpr size_t kChecked = 32;
constexpr size_t kHeadBytes = kChecked + sizeof(uint32_t);
// Behind a payload of the training a frame may wait for long: the least of
// several does not.
constexpr int kPings = 8;
// The first one finds a connection that has been idle and sends slowly.
constexpr int kLoads = 3;
// A frame that a broken connection has lost is sent again after this time.
constexpr absl::Duration kAgain = absl::Seconds(4);
// The connection is being made: the service asked both ends at about the same
// time.
constexpr absl::Duration kNoConnection = absl::Milliseconds(100);

}  // namespace

LinkProber::LinkProber(EventLoop* loop, Send send)
    : loop_(loop), send_(std::move(send)) {}

LinkProber::~LinkProber() {
  loop_->Cancel(again_);
  loop_->Cancel(limit_);
}

SharedBytes LinkProber::Encode(const Head& head) {
  std::vector<std::byte> out(kHeadBytes);
  Put(out, 0, kMagic);
  Put(out, 4, static_cast<uint32_t>(head.kind));
  Put(out, 8, head.number);
  Put(out, 16, static_cast<uint64_t>(head.transit.bytes));
  Put(out, 24, absl::ToInt64Nanoseconds(head.transit.took));
  Put(out, kChecked, Crc32c(std::span(out).first(kChecked)));
  return SharedBytes::FromVector(std::move(out));
}

std::optional<LinkProber::Head> LinkProber::Decode(const SharedBytes& bytes) {
  const std::span<const std::byte> in = bytes.bytes();
  if (in.size() != kHeadBytes || Get<uint32_t>(in, 0) != kMagic ||
      Crc32c(in.first(kChecked)) != Get<uint32_t>(in, kChecked)) {
    return std::nullopt;
  }
  const auto kind = Get<uint32_t>(in, 4);
  const auto nanos = Get<int64_t>(in, 24);
  if (kind > static_cast<uint32_t>(Kind::kRound) || nanos < 0) {
    return std::nullopt;
  }
  return Head{.kind = static_cast<Kind>(kind),
              .number = Get<uint64_t>(in, 8),
              .transit = {.bytes = Get<uint64_t>(in, 16),
                          .took = absl::Nanoseconds(nanos)}};
}

bool LinkProber::SendHead(PeerId peer, const Head& head) {
  return send_(peer, {.head = Encode(head), .body = {}});
}

void LinkProber::Ping(PeerId peer) { SendHead(peer, {.kind = Kind::kPing}); }

void LinkProber::AddOrRenew(std::vector<PingRequest>& requests, PeerId target,
                            PeerId other) {
  const absl::Time now = loop_->Now();
  std::erase_if(requests, [&](const PingRequest& r) {
    return r.until < now || (r.target == target && r.other == other);
  });
  requests.push_back(
      {.target = target, .other = other, .until = now + kPingRequestTimeout});
}

void LinkProber::RequestPing(PeerId proxy, PeerId target) {
  if (SendHead(proxy, {.kind = Kind::kPingRequest, .number = target.value})) {
    AddOrRenew(requested_, target, proxy);
  }
}

void LinkProber::OnPingRequest(PeerId asker, PeerId target) {
  std::erase_if(relayed_,
                [&](const PingRequest& r) { return r.until < loop_->Now(); });
  // The bound holds however many ask: the table cannot grow by others' frames.
  if (asker == target || relayed_.size() >= kMaxPingRequests) return;
  // One answer does for all who wait for it.
  const bool asked = std::ranges::any_of(relayed_, [&](const PingRequest& r) {
    return r.target == target && r.other != asker;
  });
  // Only a request whose ping could be sent is kept.
  if (asked || SendHead(target, {.kind = Kind::kPing})) {
    AddOrRenew(relayed_, target, asker);
  }
}

void LinkProber::SendIndirectAcks(PeerId target) {
  std::vector<PingRequest> open;
  std::erase_if(relayed_, [&](const PingRequest& r) {
    if (r.target != target) return false;
    if (r.until >= loop_->Now()) open.push_back(r);
    return true;
  });
  for (const PingRequest& r : open) {
    SendHead(r.other, {.kind = Kind::kIndirectAck, .number = target.value});
  }
}

void LinkProber::OnIndirectAck(PeerId proxy, PeerId target) {
  const size_t answered = std::erase_if(requested_, [&](const PingRequest& r) {
    return r.target == target && r.other == proxy && r.until >= loop_->Now();
  });
  // An answer that nobody asked for says nothing: a proxy may not vouch for
  // any peer that it likes.
  if (answered > 0) on_indirect_ack_(target);
}

void LinkProber::AskRound(PeerId peer, uint64_t generation, uint64_t epoch) {
  if (SendHead(peer, {.kind = Kind::kAskRound,
                      .number = epoch,
                      .transit = {.bytes = generation, .took = {}}})) {
    asked_rounds_.insert(peer);
  }
}

void LinkProber::Measure(PeerId peer, Done done) {
  End();
  peer_ = peer;
  done_ = std::move(done);
  answered_ = 0;
  rtt_.reset();
  rate_ = 0;
  limit_ = loop_->RunAt(loop_->Now() + kLimit, [this] { End(); });
  SendNext();
}

void LinkProber::SendNext() {
  loop_->Cancel(again_);
  ++number_;
  sent_ = loop_->Now();
  // The latency comes first: loads fill the queues that pings would wait in.
  const bool load = answered_ >= kPings;
  Frame frame{
      .head =
          Encode({.kind = load ? Kind::kLoad : Kind::kPing, .number = number_}),
      .body = load ? SharedBytes::FromVector(std::vector<std::byte>(kLoadBytes))
                   : SharedBytes()};
  // One frame is under way at a time, so answers need no order.
  const bool sent = send_(peer_, std::move(frame));
  again_ = loop_->RunAt(sent_ + (sent ? kAgain : kNoConnection),
                        [this] { SendNext(); });
}

void LinkProber::OnFrame(PeerId peer, const Frame& frame) {
  const std::optional<Head> head = Decode(frame.head);
  if (!head) return;
  switch (head->kind) {
    case Kind::kPing:
      SendHead(peer, {.kind = Kind::kPong, .number = head->number});
      return;
    case Kind::kLoad:
      SendHead(peer, {.kind = Kind::kLoaded,
                      .number = head->number,
                      .transit = frame.transit});
      return;
    case Kind::kPingRequest:
      OnPingRequest(peer, PeerId{head->number});
      return;
    case Kind::kIndirectAck:
      OnIndirectAck(peer, PeerId{head->number});
      return;
    case Kind::kAskRound:
      if (const uint64_t round =
              round_of_(peer, head->transit.bytes, head->number)) {
        SendHead(peer, {.kind = Kind::kRound, .number = round});
      }
      return;
    case Kind::kRound:
      if (head->number != 0 && asked_rounds_.contains(peer)) {
        on_round_(peer, head->number);
      }
      return;
    case Kind::kPong:
      // A pong answers whoever asked about this peer, whichever ping it belongs
      // to.
      SendIndirectAcks(peer);
      [[fallthrough]];
    case Kind::kLoaded:
      if (done_ && peer == peer_ && head->number == number_) OnAnswer(*head);
  }
}

void LinkProber::OnAnswer(const Head& head) {
  // An honest answer has the kind of its request; another one is no
  // measurement.
  if ((head.kind == Kind::kLoaded) != (answered_ >= kPings)) return;
  if (head.kind == Kind::kPong) {
    // The least of several is the link's; the others waited behind payloads.
    const double rtt = absl::ToDoubleSeconds(loop_->Now() - sent_);
    rtt_ = std::min(rtt_.value_or(rtt), rtt);
  } else if (head.transit.took > absl::ZeroDuration()) {
    rate_ = std::max(rate_, static_cast<double>(head.transit.bytes) /
                                absl::ToDoubleSeconds(head.transit.took));
  }
  if (++answered_ < kPings + kLoads) {
    SendNext();
  } else {
    End();
  }
}

void LinkProber::End() {
  loop_->Cancel(std::exchange(again_, EventLoop::TimerId{0}));
  loop_->Cancel(std::exchange(limit_, EventLoop::TimerId{0}));
  if (!done_) return;
  std::optional<LinkMeasurement> measured;
  // One load that came through says more than none.
  if (answered_ > kPings) {
    measured = {.rtt_seconds = *rtt_, .bytes_per_second = rate_};
  }
  // The member is cleared before the call: `done` may begin another
  // measurement.
  std::exchange(done_, nullptr)(measured);
}

}  // namespace gossamer
