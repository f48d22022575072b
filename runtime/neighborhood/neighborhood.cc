#include "runtime/neighborhood/neighborhood.h"

#include <algorithm>

#include "topology/fleet/protocol.h"

namespace gossamer {
namespace {

// Exchanges of an edge's last 16 that mixed nothing: from this number on its
// ends count as out of step.
constexpr int kMissed = 2;

}  // namespace

Neighborhood::Neighborhood(NeighborhoodOptions options, EventLoop* loop,
                           Transport* transport, DeviceSpan<float> x)
    : options_(std::move(options)),
      transport_(transport),
      loop_(loop),
      pacing_(options_.deadline, loop,
              [this](EventKind kind, const std::string& detail) {
                edges_.Report(kind, detail);
              }),
      edges_(options_, loop, transport, x, &pacing_) {}

void Neighborhood::SetDecisions(Decisions* decisions) {
  pacing_.SetDecisions(decisions);
  for (auto& [peer, entry] : edges_.entries()) {
    entry.edge->set_force_payload(decisions->replays());
  }
}

void Neighborhood::SetOverlap(int h, double stable) {
  pacing_.SetOverlap(h, stable);
  edges_.SetOverlap(h);
}

void Neighborhood::PreparePacing() {
  std::vector<const EdgePace*> paces;
  int idle = 0;
  for (const auto& [peer, entry] : edges_.entries()) {
    paces.push_back(&entry.pace);
    idle = std::max(idle, entry.edge->codec_state().codec().idle_rounds());
  }
  pacing_.Prepare(paces, idle);
}

void Neighborhood::Emit(std::span<const RowEntry> row, ExchangeId id,
                        bool finite) {
  // Emissions are frequent enough for the minute of an inactive edge, so it
  // needs no timer.
  edges_.PruneInactive();
  // Deadlines of all edges are compared before any edge is asked for its own.
  PreparePacing();
  const ExchangeId next = MakeExchangeId(RoundOf(id) + 1);
  // An edge that is added while this round is under way takes no part in it.
  edges_.SetFrontier(next);
  for (auto& [peer, entry] : edges_.entries()) {
    const auto it = std::find_if(
        row.begin(), row.end(),
        [peer = peer](const RowEntry& r) { return r.peer == peer; });
    // An edge that was given up and is to come back begins at a later round.
    if (id < entry.edge->decided()) continue;
    // All phases at once: a peer that takes this one for a neighbour, by a view
    // that only one of them has, would wait for the second phase while this
    // peer waits, round about, for it.
    if (it == row.end()) {
      entry.edge->SkipTo(next);
      // The other end may have heard it by a hello that does not come again.
      if (pacing_.replays()) entry.edge->Announce();
      continue;
    }
    const Pacing::Emission planned = pacing_.Plan(
        entry.pace, *entry.edge, *entry.codec, id, it->coefficient, finite);
    const bool sent_payload =
        entry.edge->Emit(id, planned.coefficient, planned.wants_payload);
    pacing_.Emitted(entry.pace, *entry.edge, id, sent_payload);
    edges_.Send(entry);
  }
  // Skips and acknowledgements go after all payloads: these are what the others
  // wait for.
  for (auto& [peer, entry] : edges_.entries()) edges_.Flush(entry);
}

void Neighborhood::SendReady() {
  for (auto& [peer, entry] : edges_.entries()) edges_.Send(entry);
}

void Neighborhood::SkipTo(ExchangeId id) {
  for (auto& [peer, entry] : edges_.entries()) {
    entry.edge->SkipTo(id);
    edges_.Flush(entry);
  }
}

void Neighborhood::Complete(ExchangeId limit) {
  // Each edge's correction is added by itself, sorted by neighbour: rounding
  // errors at the two ends then cancel, and a run can be replayed
  // (PROTOCOL.md 7.2).
  // Boundaries are counted: decisions.log names them.
  pacing_.BeginBoundary();
  for (auto& [peer, entry] : edges_.entries()) {
    entry.edge->Complete(pacing_.Limit(peer, limit));
    pacing_.Completed(entry.pace, *entry.edge, limit);
    edges_.ReportClipped(entry);
  }
}

bool Neighborhood::CanEmit(std::span<const RowEntry> row, ExchangeId id) const {
  return std::all_of(row.begin(), row.end(), [&](const RowEntry& r) {
    const Edges::Entry* entry = edges_.Find(r.peer);
    // A neighbour without an edge is not waited for: it has been dropped.
    return entry == nullptr || pacing_.CanEmit(*entry->edge, id);
  });
}

bool Neighborhood::CanComplete(ExchangeId limit) const {
  return std::all_of(edges_.entries().begin(), edges_.entries().end(),
                     [&](const auto& e) {
                       return pacing_.CanComplete(*e.second.edge, limit);
                     });
}

bool Neighborhood::Waits(const Edges::Entry& entry) {
  // The three clauses of PROTOCOL.md 10: only an edge is waited for whose other
  // end is sure to answer, a newcomer's only once both ends know each other's
  // epoch, and one that the newest view has no use for only while it is
  // connected.
  return !entry.inactive && entry.edge->ExpectsAnswer() &&
         (!entry.newcomer || entry.edge->handshake_done()) &&
         (!entry.not_neighbor || entry.edge->state().ready);
}

bool Neighborhood::HoldsUp(const Edges::Entry& entry, ExchangeId id) {
  return entry.edge->received() <= id && !entry.pace.overdue && Waits(entry);
}

void Neighborhood::UpdateOverdue(std::span<const RowEntry> row, ExchangeId id,
                                 absl::Duration round) {
  for (const RowEntry& r : row) {
    Edges::Entry* const entry = edges_.Find(r.peer);
    if (entry == nullptr) continue;
    if (entry->edge->received() > id) {
      // The exchange was heard, whether or not it was waited for: the edge is
      // in time again.
      pacing_.InTime(entry->pace);
    } else if (HoldsUp(*entry, id) &&
               loop_->Now() >= pacing_.DeadlineOf(entry->pace, id, round)) {
      pacing_.Late(entry->pace, r.peer, id);
    }
  }
}

bool Neighborhood::Arrived(std::span<const RowEntry> row, ExchangeId id,
                           absl::Duration round) const {
  bool waiting = false;
  bool any = false;
  for (const RowEntry& r : row) {
    const Edges::Entry* entry = edges_.Find(r.peer);
    if (entry == nullptr || entry->edge->received() > id) continue;
    any = any || (!entry->inactive &&
                  (!entry->newcomer || entry->edge->handshake_done()));
    waiting = waiting || HoldsUp(*entry, id);
  }
  if (waiting) return false;
  // Nobody of this row is waited for.  If no neighbour at all has reached the
  // round, this peer would run ahead: it stays until the first deadline.
  return !any || !NoneHeard(id) ||
         loop_->Now() >= FirstDeadline(row, id, round);
}

absl::Time Neighborhood::NextDeadline(std::span<const RowEntry> row,
                                      ExchangeId id,
                                      absl::Duration round) const {
  std::vector<RowEntry> waited;
  for (const RowEntry& r : row) {
    const Edges::Entry* entry = edges_.Find(r.peer);
    if (entry != nullptr && HoldsUp(*entry, id)) waited.push_back(r);
  }
  // With nobody to wait for, the first deadline of the row ends the wait of a
  // peer that is alone.
  return FirstDeadline(waited.empty() ? row : waited, id, round);
}

absl::Time Neighborhood::FirstDeadline(std::span<const RowEntry> row,
                                       ExchangeId id,
                                       absl::Duration round) const {
  absl::Time first = absl::InfiniteFuture();
  for (const RowEntry& r : row) {
    const Edges::Entry* entry = edges_.Find(r.peer);
    if (entry == nullptr) continue;
    first = std::min(first, pacing_.DeadlineOf(entry->pace, id, round));
  }
  return first;
}

bool Neighborhood::NoneHeard(ExchangeId id) const {
  return std::all_of(edges_.entries().begin(), edges_.entries().end(),
                     [id](const auto& e) {
                       const Edges::Entry& entry = e.second;
                       return entry.edge->received() <= id ||
                              (entry.transient && !Edges::Begun(entry));
                     });
}

bool Neighborhood::HandshakesDone(std::span<const RowEntry> row) const {
  bool any = false, one = false, all = true;
  for (const RowEntry& r : row) {
    const Edges::Entry* entry = edges_.Find(r.peer);
    if (entry == nullptr || entry->inactive) continue;
    // The other end may have dropped its edge and never say hello again.
    if (entry->not_neighbor && !entry->edge->state().ready) continue;
    any = true;
    // The other end of a transient edge that has no connection and nothing
    // under way may have forgotten it: its next hello is of another one.
    const bool same = !entry->transient || entry->edge->state().ready ||
                      !entry->edge->settled();
    // A peer that did not answer when it was waited for, or in the rounds since
    // the edge was made, may never say hello.
    const bool known = entry->pace.overdue ||
                       (entry->edge->handshake_done() && same) ||
                       (entry->transient && entry->newcomer);
    one = one || known;
    all = all && (entry->newcomer || known);
  }
  return !any || (all && one);
}

RoundsSeen Neighborhood::ObservedRounds() const {
  RoundsSeen seen;
  for (const auto& [peer, entry] : edges_.entries()) {
    const uint64_t round = RoundOf(entry.edge->received());
    // A peer at its end has skipped all rounds: its frontier is no round.
    if (entry.inactive || !entry.edge->handshake_done() || round >= kMaxRound) {
      continue;
    }
    const auto idle =
        static_cast<uint64_t>(entry.edge->codec_state().codec().idle_rounds());
    seen.idle = std::max(seen.idle, idle);
    // A new edge begins ahead of everybody: a peer that is there, or where its
    // overlap and rounds without exchanges let it go alone, waits for the
    // others.
    const uint64_t alone = static_cast<uint64_t>(options_.window) + idle;
    if (!(entry.newcomer || entry.transient) || round > entry.begins + alone) {
      seen.heard.push_back(round);
      if (entry.pace.damping->missed() >= kMissed) {
        seen.missing.push_back(round);
      }
    }
    std::set<uint64_t> rounds;  // phases of a round count once
    for (const auto& payload : entry.edge->state().theirs) {
      // This peer's own decision has been made: going there is no use.
      if (payload.id < entry.edge->decided()) continue;
      rounds.insert(RoundOf(payload.id));
    }
    seen.waiting.insert(seen.waiting.end(), rounds.begin(), rounds.end());
  }
  std::ranges::sort(seen.heard);
  std::ranges::sort(seen.missing);
  std::ranges::sort(seen.waiting);
  return seen;
}

std::vector<PeerId> Neighborhood::Missing(std::span<const RowEntry> row,
                                          ExchangeId id) const {
  std::vector<PeerId> missing;
  for (const RowEntry& r : row) {
    const Edges::Entry* entry = edges_.Find(r.peer);
    if (entry == nullptr || entry->inactive || entry->edge->received() > id) {
      continue;
    }
    missing.push_back(r.peer);
  }
  return missing;
}

bool Neighborhood::HasActiveEdge(PeerId peer) const {
  const Edges::Entry* const entry = edges_.Find(peer);
  return entry != nullptr && !entry->inactive;
}

bool Neighborhood::EdgeDone(PeerId peer) const {
  const Edges::Entry* const entry = edges_.Find(peer);
  return entry == nullptr || (entry->edge->settled() &&
                              (Edges::Begun(*entry) || edges_.Connected(peer)));
}

std::set<PeerId> Neighborhood::Peers() const {
  std::set<PeerId> peers;
  for (const auto& [peer, entry] : edges_.entries()) peers.insert(peer);
  return peers;
}

std::set<PeerId> Neighborhood::Watched() const {
  std::set<PeerId> peers;
  for (const auto& [peer, entry] : edges_.entries()) {
    if (!entry.inactive && !edges_.MayBeUnknown(entry)) peers.insert(peer);
  }
  return peers;
}

const Edge* Neighborhood::edge(PeerId peer) const {
  const Edges::Entry* entry = edges_.Find(peer);
  return entry == nullptr ? nullptr : entry->edge.get();
}

void Neighborhood::VisitEdges(
    absl::FunctionRef<void(const Edge&)> visit) const {
  for (const auto& [peer, entry] : edges_.entries()) visit(*entry.edge);
}

}  // namespace gossamer
