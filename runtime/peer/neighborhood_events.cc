// What the transport tells a neighbourhood: connections, frames, violations.

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/peer/neighborhood.h"

namespace gossamer {
namespace {

// A peer that breaks the protocol this often is not dialled again.
constexpr int kMaxViolations = 5;

// Of Channel::kProbe: one byte of head.
constexpr std::byte kPing{0}, kPong{1};

Frame ProbeFrame(std::byte kind) {
  return Frame{Payload::FromVector(std::vector<std::byte>{kind}), Payload()};
}

}  // namespace

void Neighborhood::Probe(PeerId peer) {
  transport_->Send(peer, Channel::kProbe, ProbeFrame(kPing));
}

void Neighborhood::OnUp(PeerId peer, ConnectionId connection) {
  if (on_heard_) on_heard_(peer);
  connections_[peer].try_emplace(connection);
  if (auto it = edges_.find(peer); it != edges_.end()) {
    it->second.edge->ConnectionUp(connection);
    Send(it->second);
  }
  if (on_collective_up_) on_collective_up_(peer);
  Changed();
}

void Neighborhood::OnFrame(PeerId peer, ConnectionId connection,
                           Channel channel, Frame frame) {
  if (on_heard_) on_heard_(peer);
  if (channel == Channel::kProbe) {
    const std::span<const std::byte> head = frame.head.bytes();
    if (head.size() == 1 && head[0] == kPing) {
      transport_->Send(peer, Channel::kProbe, ProbeFrame(kPong));
    }
    return;
  }
  if (channel == Channel::kMeasure) {
    if (on_measure_) on_measure_(peer, std::move(frame));
    return;
  }
  if (channel == Channel::kState) {
    if (on_state_) on_state_(peer, std::move(frame));
    Changed();
    return;
  }
  if (channel == Channel::kCollective) {
    if (on_collective_) on_collective_(peer, std::move(frame));
    Changed();
    return;
  }
  const auto it = edges_.find(peer);
  if (channel != Channel::kEdge) return;
  if (it == edges_.end()) {
    const auto open = connections_[peer].find(connection);
    if (open != connections_[peer].end()) open->second = std::move(frame.head);
    return;
  }
  Entry& entry = it->second;
  entry.formats.Record(frame.transit);
  const absl::Status status = entry.edge->OnFrame(
      connection, frame.head.bytes(), std::move(frame.body));
  if (!status.ok()) {
    Refuse(entry, connection, status);
    return;
  }
  TellLost(entry);
  NoteArrivals(entry);
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

void Neighborhood::OnDown(PeerId peer, ConnectionId connection,
                          const absl::Status& why) {
  connections_[peer].erase(connection);
  if (auto it = edges_.find(peer); it != edges_.end()) {
    it->second.edge->ConnectionDown(connection);
    TellLost(it->second);
    Send(it->second);
    Tell("edge_down",
         absl::StrCat("peer ", peer.value, ": ", std::string(why.message())));
  }
  Changed();
}

void Neighborhood::Refuse(Entry& entry, ConnectionId connection,
                          const absl::Status& why) {
  const PeerId peer = entry.edge->other();
  Tell("edge_refused",
       absl::StrCat("peer ", peer.value, ": ", std::string(why.message())));
  // A disconnect loses nothing; a reset might (EDGE 10).
  transport_->Close(peer, connection, why);
  if (++entry.violations >= kMaxViolations ||
      why.code() == absl::StatusCode::kFailedPrecondition) {
    Tell("edge_closed",
         absl::StrCat("peer ", peer.value,
                      " is not dialled again: it does not fit this run"));
    transport_->Disconnect(peer);
  }
}

}  // namespace gossamer
