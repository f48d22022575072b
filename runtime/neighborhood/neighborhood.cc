#include "runtime/neighborhood/neighborhood.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "algorithms/base/seeded_bug.h"
#include "topology/fleet/protocol.h"

namespace gossamer {
namespace {

// Emissions whose answers are still of interest to the deadline.
constexpr size_t kMaxPendingArrivals = 64;
// Of the last 16 exchanges of an edge whose ends are out of step.
constexpr int kMissed = 2;

}  // namespace

Neighborhood::Neighborhood(NeighborhoodOptions options, EventLoop* loop,
                           Transport* transport, std::span<float> x)
    : options_(std::move(options)),
      loop_(loop),
      transport_(transport),
      x_(x),
      cache_(std::make_shared<SnapshotCache>()),
      arrivals_(options_.deadline),
      epoch_(options_.epoch) {
  transport_->SetListener(this);
}

void Neighborhood::SetOverlap(int h, double stable) {
  overlap_ = h;
  stable_ = stable;
  for (auto& [peer, entry] : edges_) entry.edge->set_overlap(h);
}

void Neighborhood::SetBusy(absl::Duration own, absl::Duration slowest) {
  busy_ = own;
  slowest_ = slowest;
}

void Neighborhood::Emit(std::span<const RowEntry> row, ExchangeId id,
                        bool finite) {
  ForgetRested();
  if (options_.deadline.kind != DeadlinePolicy::Kind::kNone) {
    possible_ = PossibleDeadline();
  }
  passed_ = MakeExchangeId(RoundOf(id) + 1);
  for (auto& [peer, entry] : edges_) {
    const auto it = std::find_if(
        row.begin(), row.end(),
        [peer = peer](const RowEntry& r) { return r.peer == peer; });
    // One that was given up and is to come back begins at a later round.
    if (id < entry.edge->decided()) continue;
    // All phases at once: one that takes this peer for a partner, by a view
    // that only one of them has, would wait for the second phase while this
    // peer waits, round about, for it.
    if (it == row.end()) {
      entry.edge->Pass(passed_);
      // The other end may have heard it by a hello that does not come again.
      if (decisions_->replays()) entry.edge->Announce();
      continue;
    }
    if (const auto wish = entry.formats.Choose(*entry.codec, slowest_)) {
      entry.edge->set_wish(*wish);
    }
    const bool pays = finite && !decisions_->Skips(peer, id) &&
                      !(entry.overdue && SeededBug("stay-apart"));
    if (const auto format = decisions_->Format(peer, id)) {
      entry.edge->use_format(*format);
    }
    TellFormat(entry, id);
    entry.damping->Emitted(RoundOf(id));
    const float damped =
        it->coefficient *
        static_cast<float>(entry.damping->Factor(stable_, overlap_));
    if (!entry.edge->Emit(id, damped, pays && !LetsPass(entry, id))) {
      ++skipped_;
      decisions_->TellSkip(peer, id);
    }
    entry.emitted.emplace(id, loop_->Now());
    if (entry.emitted.size() > kMaxPendingArrivals) {
      // It has taken at least so long.  Who was behind found all answers there
      // already and has learnt a deadline that nobody can keep: if it never
      // counted what it outruns, it would go on outrunning.  A lost connection
      // says nothing of how long exchanges take.
      if (entry.edge->state().ready) {
        entry.deadline.RecordMissing(loop_->Now() -
                                     entry.emitted.begin()->second);
      }
      entry.emitted.erase(entry.emitted.begin());
    }
    NoteArrivals(entry);
    Send(entry);
  }
  for (auto& [peer, entry] : edges_) Flush(entry);
  transport_->Flush();
}

// Where all wait for all, turns meet by themselves.
bool Neighborhood::LetsPass(Entry& entry, ExchangeId id) const {
  return options_.deadline.kind != DeadlinePolicy::Kind::kNone &&
         !decisions_->replays() && entry.edge->HasRoom() &&
         entry.edge->heard() <= id && !SeededBug("keep-turns") &&
         entry.turns->LetPass(id);
}

void Neighborhood::TellFormat(Entry& entry, ExchangeId id) const {
  const WireFormat used = entry.edge->format();
  if (entry.codec->choices().empty() || used == entry.told) return;
  decisions_->TellFormat(entry.edge->other(), id, used);
  if (entry.told != WireFormat::kDenseF32) {
    Tell("codec", absl::StrFormat(
                      "to peer %d: %d bytes a payload instead of %d, as it "
                      "wishes",
                      entry.edge->other().value, entry.codec->EncodedSize(used),
                      entry.codec->EncodedSize(entry.told)));
  }
  entry.told = used;
}

void Neighborhood::Pass(ExchangeId id) {
  for (auto& [peer, entry] : edges_) {
    entry.edge->Pass(id);
    Flush(entry);
  }
}

void Neighborhood::Complete(ExchangeId limit) {
  // Each edge's correction is added by itself, sorted by neighbour: rounding
  // errors at the two ends then cancel, and a run can be replayed
  // (PROTOCOL.md 7.2).
  ++boundary_;
  for (auto& [peer, entry] : edges_) {
    entry.edge->Complete(decisions_->Done(peer, boundary_).value_or(limit));
    entry.damping->Completed(limit);
    const bool behind = entry.edge->IncompleteBelow(limit);
    if (behind || entry.behind) {
      decisions_->TellDone(peer, boundary_, entry.edge->done());
    }
    entry.behind = behind;
    TellClipped(entry);
  }
}

void Neighborhood::SetDecisions(Decisions* decisions) {
  decisions_ = decisions;
  for (auto& [peer, entry] : edges_) {
    entry.edge->set_insist(decisions->replays());
  }
}

bool Neighborhood::CanEmit(std::span<const RowEntry> row, ExchangeId id) const {
  return std::all_of(row.begin(), row.end(), [&](const RowEntry& r) {
    const Entry* entry = Find(r);
    return entry == nullptr || decisions_->Skips(r.peer, id) ||
           entry->edge->HasRoom();
  });
}

bool Neighborhood::CanComplete(ExchangeId limit) const {
  return std::all_of(edges_.begin(), edges_.end(), [&](const auto& e) {
    const auto done = decisions_->Done(e.first, boundary_ + 1);
    const Edge& edge = *e.second.edge;
    return done ? edge.heard() >= *done : !edge.UnheardBelow(limit);
  });
}

bool Neighborhood::Arrived(std::span<const RowEntry> row, ExchangeId id,
                           absl::Duration round) {
  bool waiting = false;
  bool any = false;
  for (const RowEntry& r : row) {
    const auto it = edges_.find(r.peer);
    if (it == edges_.end()) continue;
    Entry& entry = it->second;
    if (entry.edge->heard() > id) {
      if (!SeededBug("stay-apart")) entry.overdue = false;
      continue;
    }
    any = any ||
          (!entry.resting && (!entry.newcomer || entry.edge->acquainted()));
    if (entry.overdue || !Waits(entry)) continue;
    if (loop_->Now() < DeadlineOf(entry, id, round)) {
      waiting = true;
      continue;
    }
    entry.overdue = true;
    ++late_;
    Tell("overdue", absl::StrCat("peer ", r.peer.value, " missed round ",
                                 RoundOf(id), "; going on without it"));
  }
  if (waiting) return false;
  return !any || !Alone(id) || loop_->Now() >= FirstDeadline(row, id, round);
}

absl::Time Neighborhood::NextDeadline(std::span<const RowEntry> row,
                                      ExchangeId id,
                                      absl::Duration round) const {
  std::vector<RowEntry> waited;
  for (const RowEntry& r : row) {
    const Entry* entry = Find(r);
    if (entry != nullptr && entry->edge->heard() <= id && !entry->overdue &&
        Waits(*entry)) {
      waited.push_back(r);
    }
  }
  return FirstDeadline(waited.empty() ? row : waited, id, round);
}

bool Neighborhood::Alone(ExchangeId id) const {
  return std::all_of(edges_.begin(), edges_.end(), [id](const auto& e) {
    return e.second.edge->heard() <= id;
  });
}

absl::Time Neighborhood::FirstDeadline(std::span<const RowEntry> row,
                                       ExchangeId id,
                                       absl::Duration round) const {
  absl::Time first = absl::InfiniteFuture();
  for (const RowEntry& r : row) {
    const Entry* entry = Find(r);
    if (entry == nullptr) continue;
    first = std::min(first, DeadlineOf(*entry, id, round));
  }
  return first;
}

// Were every correction late, mixing would act on what is rounds old, and on a
// random schedule the fleet would diverge.  So a deadline that half of the
// edges do not keep is the mistake, not the edges.  One that is learnt has the
// rounds, too, behind which an exchange hides.
std::optional<absl::Duration> Neighborhood::PossibleDeadline() const {
  std::vector<absl::Duration> typical;
  for (const auto& [peer, entry] : edges_) {
    if (const auto t = entry.deadline.Typical()) typical.push_back(*t);
  }
  if (typical.empty()) return std::nullopt;
  const auto middle =
      typical.begin() + static_cast<ptrdiff_t>((typical.size() - 1) / 2);
  std::nth_element(typical.begin(), middle, typical.end());
  if (options_.deadline.kind == DeadlinePolicy::Kind::kFixed) return *middle;
  return std::max(*middle, std::max(1, overlap_) * busy_);
}

absl::Time Neighborhood::DeadlineOf(const Entry& entry, ExchangeId id,
                                    absl::Duration round) const {
  const auto it = entry.emitted.find(id);
  const absl::Time from =
      it == entry.emitted.end() ? absl::InfinitePast() : it->second;
  const absl::Duration limit =
      entry.deadline.Limit(round, arrivals_, possible_);
  if (limit == absl::InfiniteDuration()) return absl::InfiniteFuture();
  return from + limit;
}

bool Neighborhood::Acquainted(std::span<const RowEntry> row) const {
  bool any = false, met = false, all = true;
  for (const RowEntry& r : row) {
    const Entry* entry = Find(r);
    if (entry == nullptr || entry->resting) continue;
    if (entry->passing && !entry->edge->state().ready) continue;
    any = true;
    // Who did not answer when it was waited for may never be met.
    const bool known = entry->overdue || entry->edge->acquainted();
    met = met || known;
    all = all && (entry->newcomer || known);
  }
  return !any || (all && met);
}

RoundsSeen Neighborhood::LookAround() const {
  RoundsSeen seen;
  for (const auto& [peer, entry] : edges_) {
    const uint64_t round = RoundOf(entry.edge->heard());
    if (entry.resting || !entry.edge->acquainted() || round >= kMaxRound) {
      continue;
    }
    // Where a new edge begins is ahead of everybody: who is there, or where its
    // overlap lets it go alone, waits for the others.
    const auto alone = static_cast<uint64_t>(options_.window);
    if (!entry.newcomer || round > entry.begins + alone) {
      seen.heard.push_back(round);
      if (entry.damping->missed() >= kMissed) seen.missing.push_back(round);
    }
    std::set<uint64_t> rounds;  // phases of a round count once
    for (const auto& payload : entry.edge->state().theirs) {
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
    const Entry* entry = Find(r);
    if (entry != nullptr && !entry->resting && entry->edge->heard() <= id) {
      missing.push_back(r.peer);
    }
  }
  return missing;
}

void Neighborhood::FlushAll() {
  ReopenClosed();
  for (auto& [peer, entry] : edges_) Flush(entry);
}

uint64_t Neighborhood::corrections() const {
  uint64_t n = 0;
  for (const auto& [peer, entry] : edges_) n += entry.edge->corrections();
  return n;
}

std::optional<Clipping> Neighborhood::TakeClipping() {
  if (options_.clip_radius == 0) return std::nullopt;
  Clipping all{.clipped = clipped_of_gone_};
  for (auto& [peer, entry] : edges_) {
    all.clipped += entry.edge->side().clipping().clipped;
    all.longest = std::max(all.longest, entry.edge->TakeLongest());
  }
  return all;
}

absl::Duration Neighborhood::TakeExchangeTime() {
  return std::exchange(exchange_time_, absl::ZeroDuration());
}

const Edge* Neighborhood::edge(PeerId peer) const {
  const auto it = edges_.find(peer);
  return it == edges_.end() ? nullptr : it->second.edge.get();
}

void Neighborhood::VisitEdges(
    absl::FunctionRef<void(const Edge&)> visit) const {
  for (const auto& [peer, entry] : edges_) visit(*entry.edge);
}

void Neighborhood::Send(Entry& entry) {
  for (Edge::OutFrame& f : entry.edge->TakeFrames()) {
    // Without a connection nothing is lost: the next hello brings it again.
    transport_->Send(
        entry.edge->other(), Channel::kEdge,
        Frame{Payload::FromVector(std::move(f.head)), std::move(f.body)});
  }
}

void Neighborhood::Flush(Entry& entry) {
  if (!transport_->Idle(entry.edge->other())) return;
  entry.edge->Flush();
  Send(entry);
}

void Neighborhood::NoteArrivals(Entry& entry) {
  const ExchangeId heard = entry.edge->heard();
  auto it = entry.emitted.begin();
  while (it != entry.emitted.end() && it->first < heard) {
    const absl::Duration took = loop_->Now() - it->second;
    entry.deadline.Record(took);
    arrivals_.Record(took);
    exchange_time_ = std::max(exchange_time_, took);
    // Who sets a deadline has answers waited for that keep it.
    if (options_.deadline.kind == DeadlinePolicy::Kind::kFixed &&
        took <= options_.deadline.fixed && !SeededBug("stay-apart")) {
      entry.overdue = false;
    }
    it = entry.emitted.erase(it);
  }
}

void Neighborhood::Tell(EventKind kind, const std::string& detail,
                        uint64_t times) const {
  if (on_event_) on_event_(kind, detail, times);
}

void Neighborhood::Changed() const {
  if (on_change_) on_change_();
}

}  // namespace gossamer
