// The edges of a neighbourhood: added, at rest, given up, recorded.

#include <algorithm>
#include <utility>

#include "algorithms/base/seeded_bug.h"
#include "algorithms/base/status_macros.h"
#include "runtime/neighborhood/neighborhood.h"

namespace gossamer {
namespace {

// What the other end of a resting edge may still need is an acknowledgement,
// or an answer if it learns of the view late.
constexpr absl::Duration kRestedFor = absl::Minutes(1);

EdgeOptions EdgeOptionsOf(const NeighborhoodOptions& options, PeerId other) {
  EdgeOptions o;
  o.self = options.self;
  o.other = other;
  o.run_id = options.run_id;
  o.window = options.window;
  o.layout = options.layout;
  o.clip_radius = options.clip_radius;
  o.summed = options.summed;
  o.largest = options.largest;
  return o;
}

}  // namespace

absl::Status Neighborhood::Add(NewEdge added) {
  const PeerId peer = added.peer;
  const auto it = edges_.find(peer);
  if (it != edges_.end() && it->second.edge->ended()) {
    Drop(peer);
  } else if (it != edges_.end()) {
    it->second.resting = it->second.gone = false;
    it->second.refusals = {};  // it may be another life
    it->second.address = added.address;
    transport_->Connect(peer, added.address);
    return absl::OkStatus();
  }
  EdgeOptions o = EdgeOptionsOf(options_, peer);
  o.epoch = epoch_;
  if (const auto last = last_epochs_.find(peer); last != last_epochs_.end()) {
    o.epoch = EpochAbove(std::max(last->second, epoch_), epoch_);
  }
  o.frontier = added.frontier;
  o.yields = added.other_codec != nullptr;
  std::unique_ptr<Edge> edge;
  if (added.saved != nullptr) {
    GOSSAMER_ASSIGN_OR_RETURN(edge, Edge::Resume(std::move(o), added.codec, x_,
                                                 cache_, *added.saved));
  } else {
    edge = std::make_unique<Edge>(std::move(o), added.codec, x_, cache_);
  }
  // In no row of a round that is under way: its later phases may wait for who
  // waits for the first of this one.
  edge->Pass(passed_);
  edge->set_overlap(overlap_);
  edge->set_insist(decisions_->replays());
  for (const auto& of : observers_of_) edge->add_observer(of(peer));
  auto damping = std::make_unique<Damping>();
  auto turns = std::make_unique<PayloadTurns>(peer < options_.self);
  edge->add_observer(damping.get());
  edge->add_observer(turns.get());
  Entry entry{std::move(damping),
              std::move(turns),
              std::move(edge),
              std::move(added.codec),
              std::move(added.other_codec),
              DeadlineEstimator(options_.deadline),
              {}};
  entry.newcomer = added.newcomer;
  entry.begins = RoundOf(added.frontier);
  entry.address = added.address;
  Entry& kept = edges_.emplace(peer, std::move(entry)).first->second;
  if (!added.absent) transport_->Connect(peer, added.address);
  // A connection that was opened for something else serves the edge as well;
  // one whose hello is refused ends.
  const std::map<ConnectionId, Payload> open = connections_[peer];
  for (const auto& [connection, hello] : open) {
    kept.edge->ConnectionUp(connection);
    if (hello.empty()) continue;
    connections_[peer][connection] = {};
    const absl::Status heard =
        kept.edge->OnFrame(connection, hello.bytes(), Payload());
    if (absl::IsAborted(heard)) {
      TakeOtherCodec(kept);
      return absl::OkStatus();
    }
    if (heard.ok()) continue;
    Refuse(kept, connection, heard);
    // The others say the same, and end as well.
    if (kept.refusals.closed_until != absl::InfiniteFuture())
      return absl::OkStatus();
  }
  Send(kept);
  return absl::OkStatus();
}

// The two have not met, so nothing is lost; a new connection brings the
// other end's hello again.
void Neighborhood::TakeOtherCodec(const Entry& entry) {
  const PeerId peer = entry.edge->other();
  const ExchangeId decided = entry.edge->decided();
  const bool resting = entry.resting, gone = entry.gone;
  const bool passing = entry.passing;
  NewEdge anew{.peer = peer,
               .address = entry.address,
               .frontier = decided,
               .codec = entry.other_codec,
               .other_codec = entry.codec,
               .newcomer = entry.newcomer};
  Drop(peer);
  Add(std::move(anew)).IgnoreError();  // without a record it cannot fail
  edges_.at(peer).passing = passing;
  if (resting) Rest(peer, decided, gone);
}

void Neighborhood::Drop(PeerId peer) {
  const auto it = edges_.find(peer);
  if (it == edges_.end()) return;
  last_epochs_[peer] = it->second.edge->state().epoch;
  clipped_of_gone_ += it->second.edge->side().clipping().clipped;
  it->second.edge->End();
  edges_.erase(it);
  transport_->Disconnect(peer);
  Changed();
}

bool Neighborhood::Connected(PeerId peer) const {
  const auto open = connections_.find(peer);
  return open != connections_.end() && !open->second.empty();
}

void Neighborhood::BeginIncarnation() {
  for (const PeerId peer : Peers()) Drop(peer);
  passed_ = 0;
  for (const auto& [peer, epoch] : last_epochs_) {
    epoch_ = std::max(epoch_, epoch);
  }
  if (SeededBug("same-epochs")) return last_epochs_.clear();
  epoch_ = EpochAbove(epoch_, options_.epoch);
}

void Neighborhood::Rest(PeerId peer, ExchangeId id, bool gone) {
  const auto it = edges_.find(peer);
  if (it == edges_.end() || it->second.resting) return;
  Entry& entry = it->second;
  entry.resting = true;
  entry.gone = gone;
  entry.busy = loop_->Now();
  entry.edge->Pass(id);
  entry.edge->Announce();
  Flush(entry);
  Changed();
}

// Nothing of this end is outstanding then, so no correction is lost (EDGE 7,
// invariant 7).
void Neighborhood::ForgetRested() {
  const absl::Time now = loop_->Now();
  std::vector<PeerId> rested;
  for (auto& [peer, entry] : edges_) {
    if (!entry.resting) continue;
    if (!entry.edge->settled()) {
      entry.busy = now;
    } else if (entry.gone) {
      entry.edge->End();
    }
    if (now - entry.busy > kRestedFor) rested.push_back(peer);
  }
  for (const PeerId peer : rested) Drop(peer);
}

std::set<PeerId> Neighborhood::Peers() const {
  std::set<PeerId> peers;
  for (const auto& [peer, entry] : edges_) peers.insert(peer);
  return peers;
}

std::set<PeerId> Neighborhood::Watched() const {
  std::set<PeerId> peers;
  for (const auto& [peer, entry] : edges_) {
    if (!entry.resting) peers.insert(peer);
  }
  return peers;
}

const Neighborhood::Entry* Neighborhood::Find(const RowEntry& r) const {
  const auto it = edges_.find(r.peer);
  return it == edges_.end() ? nullptr : &it->second;
}

bool Neighborhood::Waits(const Entry& entry) {
  return !entry.resting && entry.edge->ExpectsAnswer() &&
         (!entry.newcomer || entry.edge->acquainted()) &&
         (!entry.passing || entry.edge->state().ready);
}

void Neighborhood::SetPartners(const std::set<PeerId>& partners) {
  for (auto& [peer, entry] : edges_) entry.passing = !partners.contains(peer);
  Changed();
}

void Neighborhood::BeginRecord(ExchangeId cut) {
  for (auto& [peer, entry] : edges_) {
    entry.edge->Pass(cut);
    entry.edge->BeginRecord(cut);
    entry.edge->Announce();  // the others seal their records by it
  }
  FlushAll();
}

// A resting edge's other end may be at rest already, and one that has begun
// anew knows nothing of the cut: their records are not waited for.
bool Neighborhood::Sealed(const Entry& entry) {
  return entry.resting || entry.edge->sealed() || entry.edge->Unsealable();
}

bool Neighborhood::Sealed() const {
  return std::all_of(edges_.begin(), edges_.end(),
                     [](const auto& e) { return Sealed(e.second); });
}

SavedEdges Neighborhood::TakeRecords() {
  SavedEdges records;
  for (auto& [peer, entry] : edges_) {
    if (auto record = entry.edge->TakeRecord()) {
      records.emplace(peer, *std::move(record));
    }
  }
  return records;
}

bool Neighborhood::Settled(bool resting) const {
  return std::all_of(edges_.begin(), edges_.end(), [resting](const auto& e) {
    const Edge& edge = *e.second.edge;
    if (!resting && e.second.resting) return true;
    // An answer that is due and can go is sent before anybody leaves.
    return edge.settled() && !(edge.state().ready && edge.state().owes);
  });
}

bool Neighborhood::MaySettle() const {
  return std::all_of(edges_.begin(), edges_.end(), [](const auto& e) {
    const Edge& edge = *e.second.edge;
    return edge.state().ready || (edge.settled() && Sealed(e.second));
  });
}

}  // namespace gossamer
