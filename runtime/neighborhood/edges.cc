#include "runtime/neighborhood/edges.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "algorithms/base/seeded_bug.h"
#include "algorithms/base/status_macros.h"

namespace gossamer {
namespace {

// The other end of an inactive edge may still need an acknowledgement, or an
// answer if it learns of the view late.
constexpr absl::Duration kKeepInactive = absl::Minutes(1);
// The same where edges come and go with the rounds, of which both ends know.
constexpr absl::Duration kKeepTransient = absl::Seconds(10);
// A peer that breaks the protocol this often is closed: for a minute, then for
// twice as long each time.  It may be started anew at the same address, without
// a view that says so.
constexpr int kMaxViolations = 5;
constexpr absl::Duration kMinClosed = absl::Minutes(1);
constexpr absl::Duration kMaxClosed = absl::Hours(1);

absl::Duration KeepTimeOf(const Edges::Entry& entry) {
  return entry.transient ? kKeepTransient : kKeepInactive;
}

EdgeOptions EdgeOptionsOf(const NeighborhoodOptions& options, PeerId other) {
  EdgeOptions o;
  o.self = options.self;
  o.other = other;
  o.run_id = options.run_id;
  o.window = options.window;
  o.layout = options.layout;
  o.summed = options.summed;
  o.limits = options.limits;
  return o;
}

}  // namespace

Edges::Edges(const NeighborhoodOptions& options, EventLoop* loop,
             Transport* transport, DeviceSpan<float> x, Pacing* pacing)
    : options_(options),
      loop_(loop),
      transport_(transport),
      x_(x),
      pacing_(pacing),
      cache_(std::make_shared<SnapshotCache>()),
      epoch_(options_.epoch) {
  // From here on frames may come; there is no edge yet, and hellos are kept.
  transport_->SetListener(this);
}

const Edges::Entry* Edges::Find(PeerId peer) const {
  const auto it = entries_.find(peer);
  return it == entries_.end() ? nullptr : &it->second;
}

Edges::Entry* Edges::Find(PeerId peer) {
  const auto it = entries_.find(peer);
  return it == entries_.end() ? nullptr : &it->second;
}

bool Edges::Connected(PeerId peer) const {
  const auto open = connections_.find(peer);
  return open != connections_.end() && !open->second.empty();
}

bool Edges::MayBeUnknown(const Entry& entry) const {
  const bool over = entry.edge->settled() && Begun(entry);
  return entry.transient && !Connected(entry.edge->other()) &&
         (entry.not_neighbor || over || entry.begins > RoundOf(frontier_));
}

absl::StatusOr<std::unique_ptr<Edge>> Edges::MakeEdge(const NewEdge& added) {
  const PeerId peer = added.peer;
  EdgeOptions o = EdgeOptionsOf(options_, peer);
  o.epoch = epoch_;
  if (const auto last = last_epochs_.find(peer); last != last_epochs_.end()) {
    // An edge that was given up may have frames on their way: the epoch of a
    // later edge to the same peer is above its own (PROTOCOL.md 5).
    o.epoch = EpochAbove(std::max(last->second, epoch_), epoch_);
  }
  o.frontier = added.frontier;
  // With a codec of the other kind at hand this end may switch (PROTOCOL.md 8).
  o.may_switch_codec = added.other_codec != nullptr;
  std::unique_ptr<Edge> edge;
  if (added.saved != nullptr) {
    GOSSAMER_ASSIGN_OR_RETURN(edge, Edge::Resume(std::move(o), added.codec, x_,
                                                 cache_, *added.saved));
  } else {
    edge = std::make_unique<Edge>(std::move(o), added.codec, x_, cache_);
  }
  // In no row of a round that is under way: its later phases may wait for a
  // peer that waits for the first of this one.
  edge->SkipTo(frontier_);
  edge->set_overlap(overlap_);
  // At a replay the other end may be further ahead than it was in the run.
  edge->set_force_payload(pacing_->replays());
  // Observers come before the first correction: they keep sums over all.
  for (const auto& of : observers_of_) edge->add_observer(of(peer));
  return edge;
}

absl::Status Edges::Add(NewEdge added) {
  const PeerId peer = added.peer;
  Entry* const there = Find(peer);
  // Its part of common state has been given back; only another incarnation of
  // the edge may mix.
  if (there != nullptr && there->edge->ended()) {
    Drop(peer);
  } else if (there != nullptr) {
    there->inactive = there->gone = false;
    there->refusals = {};  // it may be another incarnation
    there->address = added.address;
    there->transient = added.transient;
    if (added.transient) there->begins = RoundOf(added.frontier);
    transport_->Connect(peer, added.address);
    return absl::OkStatus();
  }
  GOSSAMER_ASSIGN_OR_RETURN(std::unique_ptr<Edge> edge, MakeEdge(added));
  EdgePace pace = pacing_->MakePace(/*upper=*/peer < options_.self);
  // Both are on the heap: moving the pace into the entry leaves them in place.
  edge->add_observer(pace.damping.get());
  edge->add_observer(pace.stagger.get());
  Entry& kept =
      entries_
          .emplace(peer, Entry{.pace = std::move(pace),
                               .edge = std::move(edge),
                               .codec = std::move(added.codec),
                               .other_codec = std::move(added.other_codec),
                               .address = added.address,
                               .begins = RoundOf(added.frontier),
                               .newcomer = added.newcomer,
                               .transient = added.transient})
          .first->second;
  // The peer of an edge that goes on from its record alone has no address.
  if (!added.absent) transport_->Connect(peer, added.address);
  TakeConnections(kept);
  return absl::OkStatus();
}

// A connection whose hello is refused ends.
void Edges::TakeConnections(Entry& entry) {
  const PeerId peer = entry.edge->other();
  // The loop is over a copy: refusing a connection closes it, which may change
  // the map.
  const std::map<ConnectionId, SharedBytes> open = connections_[peer];
  for (const auto& [connection, hello] : open) {
    entry.edge->ConnectionUp(connection);
    if (hello.empty()) continue;
    // The hello is consumed: the edge keeps what it needs of it.
    connections_[peer][connection] = {};
    const absl::Status taken =
        entry.edge->OnFrame(connection, hello.bytes(), SharedBytes());
    if (absl::IsAborted(taken)) return TakeOtherCodec(entry);
    if (taken.ok()) continue;
    Refuse(entry, connection, taken);
    // The others say the same, and end as well.
    if (entry.refusals.closed_until != absl::InfiniteFuture()) return;
  }
  Send(entry);
}

// Neither end knows the other's epoch, so nothing is lost; a new connection
// brings the other end's hello again.
void Edges::TakeOtherCodec(const Entry& entry) {
  const PeerId peer = entry.edge->other();
  const ExchangeId decided = entry.edge->decided();
  const bool inactive = entry.inactive, gone = entry.gone;
  const bool not_neighbor = entry.not_neighbor;
  NewEdge anew{.peer = peer,
               .address = entry.address,
               .frontier = decided,
               .codec = entry.other_codec,
               .other_codec = entry.codec,
               .newcomer = entry.newcomer,
               .transient = entry.transient};
  Drop(peer);
  Add(std::move(anew)).IgnoreError();  // without a record it cannot fail
  entries_.at(peer).not_neighbor = not_neighbor;
  if (inactive) Deactivate(peer, decided, gone);
}

void Edges::Drop(PeerId peer) {
  const auto it = entries_.find(peer);
  if (it == entries_.end()) return;
  // The epoch is kept for the next edge to this peer (MakeEdge).
  last_epochs_[peer] = it->second.edge->state().epoch;
  corrections_of_gone_ += it->second.edge->corrections();
  clipped_of_gone_ += it->second.edge->codec_state().clipping().clipped;
  // Observers give back what the edge has added before it is destroyed.
  it->second.edge->End();
  entries_.erase(it);
  transport_->Disconnect(peer);
  Changed();
}

void Edges::BeginIncarnation() {
  while (!entries_.empty()) Drop(entries_.begin()->first);
  // The incarnation that begins may take part in rounds that this one has
  // skipped.
  frontier_ = 0;
  for (const auto& [peer, epoch] : last_epochs_) {
    epoch_ = std::max(epoch_, epoch);
  }
  // Other ends may remember any epoch of this incarnation: all edges to come
  // begin above the largest.
  if (SeededBug("same-epochs")) return last_epochs_.clear();
  epoch_ = EpochAbove(epoch_, options_.epoch);
}

void Edges::SetOverlap(int h) {
  overlap_ = h;
  for (auto& [peer, entry] : entries_) entry.edge->set_overlap(h);
}

void Edges::SetNeighbors(const std::set<PeerId>& neighbors) {
  for (auto& [peer, entry] : entries_) {
    // Waiters poll again: an edge that the newest view has no use for is not
    // waited for unless it is connected.
    entry.not_neighbor = !neighbors.contains(peer);
  }
  Changed();
}

void Edges::Deactivate(PeerId peer, ExchangeId id, bool gone) {
  Entry* const entry = Find(peer);
  if (entry == nullptr || entry->inactive) return;
  entry->inactive = true;
  entry->gone = gone;
  entry->last_used = loop_->Now();
  entry->edge->SkipTo(id);
  // The other end may wait for a round that this end skips from now on: it
  // learns so at once, since no emission will say it.
  entry->edge->Announce();
  Flush(*entry);
  Changed();
}

// Nothing of this end is outstanding then, so no correction is lost
// (PROTOCOL.md 7.1, invariant 7).
void Edges::PruneInactive() {
  const absl::Time now = loop_->Now();
  std::vector<PeerId> expired;
  for (auto& [peer, entry] : entries_) {
    if (!entry.inactive) continue;
    if (!entry.edge->settled()) {
      // The minute begins when nothing is outstanding any more.
      entry.last_used = now;
    } else if (entry.gone) {
      entry.edge->End();
    }
    if (now - entry.last_used > KeepTimeOf(entry)) expired.push_back(peer);
  }
  for (const PeerId peer : expired) Drop(peer);
}

void Edges::Send(Entry& entry) {
  for (Edge::OutFrame& f : entry.edge->TakeFrames()) {
    // Without a connection nothing is lost: the next hello brings it again.
    transport_->Send(entry.edge->other(), Channel::kEdge,
                     Frame{.head = SharedBytes::FromVector(std::move(f.head)),
                           .body = std::move(f.body),
                           .exchange = f.exchange});
  }
}

void Edges::Flush(Entry& entry) {
  // An acknowledgement is due for the newest state: while the queue is full it
  // waits, and later ones take it along.
  if (!transport_->IsWritable(entry.edge->other())) return;
  entry.edge->Flush();
  Send(entry);
}

void Edges::FlushAll() {
  // The watch calls this a few times a second, which is often enough for
  // minutes.
  ReopenClosed();
  for (auto& [peer, entry] : entries_) Flush(entry);
}

void Edges::BeginRecord(ExchangeId cut, SavedEdges spare) {
  for (auto& [peer, entry] : entries_) {
    // All ids below the cut are decided here before the record begins
    // (PROTOCOL.md 6).
    entry.edge->SkipTo(cut);
    entry.edge->BeginRecord(cut, std::move(spare[peer]));
    entry.edge->Announce();  // the others seal their records by it
  }
  FlushAll();
}

void Edges::DropRecord(ExchangeId cut) {
  for (auto& [peer, entry] : entries_) entry.edge->DropRecord(cut);
}

// An inactive edge's other end may be inactive already, one that has begun anew
// knows nothing of the cut, and an edge of later rounds may not be there yet:
// their records are not waited for.
bool Edges::Sealed(const Entry& entry, ExchangeId cut) {
  return entry.inactive || (entry.transient && entry.begins >= RoundOf(cut)) ||
         entry.edge->Sealed(cut) || entry.edge->Unsealable(cut);
}

bool Edges::Sealed(ExchangeId cut) const {
  return std::all_of(entries_.begin(), entries_.end(),
                     [cut](const auto& e) { return Sealed(e.second, cut); });
}

SavedEdges Edges::TakeRecords(ExchangeId cut) {
  SavedEdges records;
  for (auto& [peer, entry] : entries_) {
    if (auto record = entry.edge->TakeRecord(cut)) {
      records.emplace(peer, *std::move(record));
    }
  }
  return records;
}

bool Edges::Settled(bool inactive) const {
  return std::all_of(
      entries_.begin(), entries_.end(), [inactive](const auto& e) {
        const Edge& edge = *e.second.edge;
        if (!inactive && e.second.inactive) return true;
        // An answer that is due and can go is sent before
        // anybody leaves.
        return edge.settled() && !(edge.state().ready && edge.state().ack_due);
      });
}

bool Edges::MaySettle(ExchangeId cut) const {
  return std::all_of(entries_.begin(), entries_.end(), [cut](const auto& e) {
    const Edge& edge = *e.second.edge;
    return edge.state().ready || (edge.settled() && Sealed(e.second, cut));
  });
}

uint64_t Edges::corrections() const {
  uint64_t n = corrections_of_gone_;
  for (const auto& [peer, entry] : entries_) n += entry.edge->corrections();
  return n;
}

std::optional<Clipping> Edges::TakeClipping() {
  if (options_.limits.clip_radius == 0) return std::nullopt;
  Clipping all{.clipped = clipped_of_gone_};
  for (auto& [peer, entry] : entries_) {
    all.clipped += entry.edge->codec_state().clipping().clipped;
    all.longest = std::max(all.longest, entry.edge->TakeLongest());
  }
  return all;
}

void Edges::OnUp(PeerId peer, ConnectionId connection) {
  // A new connection is a sign of life, also of a peer without an edge.
  if (on_heard_) on_heard_(peer);
  connections_[peer].try_emplace(connection);
  if (Entry* const entry = Find(peer); entry != nullptr) {
    entry->edge->ConnectionUp(connection);
    Send(*entry);
    // The reason of a refusal cannot go out on the connection that it closes,
    // so the next one carries it.
    std::string& why = entry->refusals.unreported;
    if (!why.empty() && transport_->Send(peer, Channel::kNotice,
                                         {EncodeNotice(why), SharedBytes()})) {
      why.clear();
    }
  }
  if (on_up_) on_up_(peer);
  Changed();
}

void Edges::OnFrame(PeerId peer, ConnectionId connection, Channel channel,
                    Frame frame) {
  if (on_heard_) on_heard_(peer);
  Entry* const entry = Find(peer);
  if (channel == Channel::kNotice) {
    if (entry != nullptr) OnNotice(*entry, frame);
    return;
  }
  // Frames of other channels need no edge: probes and states come from any
  // member.
  if (channel != Channel::kEdge) {
    const auto handler = on_frame_.find(channel);
    if (handler != on_frame_.end()) handler->second(peer, std::move(frame));
    Changed();
    return;
  }
  if (entry != nullptr)
    return OnEdgeFrame(*entry, connection, std::move(frame));
  // A frame of a peer without an edge: it is the other end's hello, if that end
  // knows the view first.
  const auto open = connections_[peer].find(connection);
  if (open != connections_[peer].end()) open->second = std::move(frame.head);
}

void Edges::OnEdgeFrame(Entry& entry, ConnectionId connection, Frame frame) {
  // The transit counts whatever the frame holds: it tells how fast the way is.
  pacing_->OnTransit(entry.pace, frame.transit);
  const absl::Status status = entry.edge->OnFrame(
      connection, frame.head.bytes(), std::move(frame.body));
  if (absl::IsAborted(status)) return TakeOtherCodec(entry);
  if (!status.ok()) return Refuse(entry, connection, status);
  // An inactive edge is kept for as long as its other end still speaks.
  if (entry.inactive) entry.last_used = loop_->Now();
  ReportLost(entry);
  // Arrivals are noted at once, not at the boundary: the deadline is about the
  // way, not about this peer's steps.
  pacing_->OnReceived(entry.pace, *entry.edge);
  // In a replay the other end may have to wait for the acknowledgement of what
  // this end skipped, which comes with the next boundary, while that waits for
  // what the other end is to send then.
  if (pacing_->replays()) entry.edge->CompleteSkips();
  Send(entry);
  Flush(entry);
  Changed();
}

void Edges::OnDown(PeerId peer, ConnectionId connection,
                   const absl::Status& why) {
  if (const auto open = connections_.find(peer); open != connections_.end()) {
    open->second.erase(connection);
    if (open->second.empty()) connections_.erase(open);
  }
  if (Entry* const entry = Find(peer); entry != nullptr) {
    // The end goes on with an older connection if one is open (PROTOCOL.md
    // 4.6).
    entry->edge->ConnectionDown(connection);
    ReportLost(*entry);
    Send(*entry);
    // Nothing is lost on an edge between two exchanges.
    const bool idle =
        entry->edge->settled() && (entry->inactive || entry->transient);
    if (const uint64_t news = idle ? 0 : entry->downs.Due(loop_->Now());
        news > 0) {
      Report(
          "edge_down",
          absl::StrCat("peer ", peer.value, ": ", std::string(why.message())),
          news);
    }
  }
  Changed();
}

void Edges::Refuse(Entry& entry, ConnectionId connection,
                   const absl::Status& why) {
  const PeerId peer = entry.edge->other();
  Report("edge_refused",
         absl::StrCat("peer ", peer.value, ": ", std::string(why.message())));
  // A disconnect loses nothing; a reset might (PROTOCOL.md 5).
  transport_->Close(peer, connection, why);
  Refusals& refusals = entry.refusals;
  refusals.unreported = std::string(why.message());
  // Another run or layout does not change by trying again.
  if (++refusals.violations >= kMaxViolations ||
      why.code() == absl::StatusCode::kFailedPrecondition) {
    refusals.closed_for =
        std::clamp(2 * refusals.closed_for, kMinClosed, kMaxClosed);
    refusals.closed_until = loop_->Now() + refusals.closed_for;
    Report("edge_closed",
           absl::StrCat("peer ", peer.value, " is not heard for ",
                        absl::FormatDuration(refusals.closed_for),
                        ": it does not fit this run"));
    transport_->Disconnect(peer);
  }
}

// The notice is believed as far as a line goes: it moves nothing.
void Edges::OnNotice(Entry& entry, const Frame& frame) const {
  Refusals& refusals = entry.refusals;
  const uint64_t news = refusals.throttle.Due(++refusals.reported_by_other);
  if (news == 0) return;
  Report("payloads_refused",
         absl::StrCat("peer ", entry.edge->other().value,
                      " has refused what this peer sent, ",
                      refusals.reported_by_other,
                      " times so far: ", DecodeNotice(frame.head)),
         news);
}

void Edges::ReopenClosed() {
  const absl::Time now = loop_->Now();
  for (auto& [peer, entry] : entries_) {
    if (now < entry.refusals.closed_until) continue;
    entry.refusals.closed_until = absl::InfiniteFuture();
    // One more violation closes it again, for twice as long.
    entry.refusals.violations = kMaxViolations - 1;
    transport_->Connect(peer, entry.address);
  }
}

void Edges::ReportLost(Entry& entry) const {
  const std::vector<ExchangeId> lost = entry.edge->TakeLost();
  if (lost.empty()) return;
  Report("edge_lost",
         absl::StrCat("peer ", entry.edge->other().value,
                      " began anew; the corrections of round ",
                      absl::StrJoin(lost, ", ",
                                    [](std::string* out, ExchangeId id) {
                                      absl::StrAppend(out, RoundOf(id));
                                    }),
                      " may have been applied at one end only"));
}

void Edges::ReportClipped(Entry& entry) const {
  const Clipping& seen = entry.edge->codec_state().clipping();
  if (const uint64_t more = entry.left_out.Due(seen.left_out); more != 0) {
    Report("edge_exploded",
           absl::StrFormat("peer %d: %d of %d corrections so far were left "
                           "out: a parameter differs by more than "
                           "%g",
                           entry.edge->other().value, seen.left_out,
                           entry.edge->corrections() + seen.left_out,
                           options_.limits.largest),
           more);
  }
  const uint64_t news = entry.clipped.Due(seen.clipped);
  if (news == 0) return;
  Report("edge_clipped",
         absl::StrFormat("peer %d: %d of %d corrections so far were shortened "
                         "to mixing.clip_radius %g; its difference is up to "
                         "%.3g a parameter (root mean square)",
                         entry.edge->other().value, seen.clipped,
                         entry.edge->corrections(), options_.limits.clip_radius,
                         seen.longest),
         news);
}

void Edges::Report(EventKind kind, const std::string& detail,
                   uint64_t times) const {
  if (on_event_) on_event_(kind, detail, times);
}

void Edges::Changed() const {
  if (on_change_) on_change_();
}

}  // namespace gossamer
