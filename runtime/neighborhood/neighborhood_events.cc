// What the transport tells a neighbourhood: connections, frames, violations.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "runtime/neighborhood/neighborhood.h"

namespace gossamer {
namespace {

// A peer that breaks the protocol this often is closed: for a minute, then for
// twice as long each time.  It may be started anew at the same address, without
// a view that says so.
constexpr int kMaxViolations = 5;
constexpr absl::Duration kLeastClosed = absl::Minutes(1);
constexpr absl::Duration kMostClosed = absl::Hours(1);

}  // namespace

void Neighborhood::OnUp(PeerId peer, ConnectionId connection) {
  if (on_heard_) on_heard_(peer);
  connections_[peer].try_emplace(connection);
  if (auto it = edges_.find(peer); it != edges_.end()) {
    it->second.edge->ConnectionUp(connection);
    Send(it->second);
    // What it is about ended with the connection before this one.
    std::string& why = it->second.refusals.untold;
    if (!why.empty() && transport_->Send(peer, Channel::kNotice,
                                         {EncodeNotice(why), Payload()})) {
      why.clear();
    }
  }
  if (on_up_) on_up_(peer);
  Changed();
}

void Neighborhood::OnFrame(PeerId peer, ConnectionId connection,
                           Channel channel, Frame frame) {
  if (on_heard_) on_heard_(peer);
  const auto it = edges_.find(peer);
  if (channel == Channel::kNotice) {
    if (it != edges_.end()) OnNotice(it->second, frame);
    return;
  }
  if (channel != Channel::kEdge) {
    const auto handler = on_frame_.find(channel);
    if (handler != on_frame_.end()) handler->second(peer, std::move(frame));
    Changed();
    return;
  }
  if (it == edges_.end()) {
    const auto open = connections_[peer].find(connection);
    if (open != connections_[peer].end()) open->second = std::move(frame.head);
    return;
  }
  Entry& entry = it->second;
  entry.formats.Record(frame.transit);
  const absl::Status status = entry.edge->OnFrame(
      connection, frame.head.bytes(), std::move(frame.body));
  if (absl::IsAborted(status)) return TakeOtherCodec(entry);
  if (!status.ok()) {
    Refuse(entry, connection, status);
    return;
  }
  if (entry.resting) entry.busy = loop_->Now();
  TellLost(entry);
  NoteArrivals(entry);
  // In a replay the other end may have to wait for the acknowledgement of what
  // this end skipped, which comes with the next boundary, while that waits for
  // what the other end is to send then.
  if (decisions_->replays()) entry.edge->CompleteSkips();
  Send(entry);
  Flush(entry);
  Changed();
}

void Neighborhood::TellLost(Entry& entry) const {
  const std::vector<ExchangeId> lost = entry.edge->TakeLost();
  if (lost.empty()) return;
  Tell("edge_lost",
       absl::StrCat("peer ", entry.edge->other().value,
                    " began anew; the corrections of round ",
                    absl::StrJoin(lost, ", ",
                                  [](std::string* out, ExchangeId id) {
                                    absl::StrAppend(out, RoundOf(id));
                                  }),
                    " may have been applied at one end only"));
}

void Neighborhood::TellClipped(Entry& entry) const {
  const Clipping& seen = entry.edge->side().clipping();
  if (const uint64_t more = entry.left_out.Due(seen.left_out); more != 0) {
    Tell("edge_exploded",
         absl::StrFormat("peer %d: %d of %d corrections so far were left out: "
                         "a parameter differs by more than "
                         "mixing.largest_parameter, %g",
                         entry.edge->other().value, seen.left_out,
                         entry.edge->corrections() + seen.left_out,
                         options_.largest),
         more);
  }
  const uint64_t news = entry.clipped.Due(seen.clipped);
  if (news == 0) return;
  Tell("edge_clipped",
       absl::StrFormat("peer %d: %d of %d corrections so far were shortened to "
                       "mixing.clip_radius %g; its difference is up to %.3g a "
                       "parameter (root mean square)",
                       entry.edge->other().value, seen.clipped,
                       entry.edge->corrections(), options_.clip_radius,
                       seen.longest),
       news);
}

void Neighborhood::OnDown(PeerId peer, ConnectionId connection,
                          const absl::Status& why) {
  if (const auto open = connections_.find(peer); open != connections_.end()) {
    open->second.erase(connection);
    if (open->second.empty()) connections_.erase(open);
  }
  if (auto it = edges_.find(peer); it != edges_.end()) {
    it->second.edge->ConnectionDown(connection);
    TellLost(it->second);
    Send(it->second);
    if (const uint64_t news = it->second.downs.Due(loop_->Now()); news > 0) {
      Tell("edge_down",
           absl::StrCat("peer ", peer.value, ": ", std::string(why.message())),
           news);
    }
  }
  Changed();
}

void Neighborhood::Refuse(Entry& entry, ConnectionId connection,
                          const absl::Status& why) {
  const PeerId peer = entry.edge->other();
  Tell("edge_refused",
       absl::StrCat("peer ", peer.value, ": ", std::string(why.message())));
  // A disconnect loses nothing; a reset might (PROTOCOL.md 5).
  transport_->Close(peer, connection, why);
  Refusals& refusals = entry.refusals;
  refusals.untold = std::string(why.message());
  if (++refusals.violations >= kMaxViolations ||
      why.code() == absl::StatusCode::kFailedPrecondition) {
    refusals.closed_for =
        std::clamp(2 * refusals.closed_for, kLeastClosed, kMostClosed);
    refusals.closed_until = loop_->Now() + refusals.closed_for;
    Tell("edge_closed", absl::StrCat("peer ", peer.value, " is not heard for ",
                                     absl::FormatDuration(refusals.closed_for),
                                     ": it does not fit this run"));
    transport_->Disconnect(peer);
  }
}

// Whoever says it is believed as far as a line goes: it moves nothing.
void Neighborhood::OnNotice(Entry& entry, const Frame& frame) const {
  Refusals& refusals = entry.refusals;
  const uint64_t news = refusals.told.Due(++refusals.heard);
  if (news == 0) return;
  Tell("payloads_refused",
       absl::StrCat("peer ", entry.edge->other().value,
                    " has refused what this peer sent, ", refusals.heard,
                    " times so far: ", DecodeNotice(frame.head)),
       news);
}

void Neighborhood::ReopenClosed() {
  const absl::Time now = loop_->Now();
  for (auto& [peer, entry] : edges_) {
    if (now < entry.refusals.closed_until) continue;
    entry.refusals.closed_until = absl::InfiniteFuture();
    entry.refusals.violations = kMaxViolations - 1;
    transport_->Connect(peer, entry.address);
  }
}

}  // namespace gossamer
