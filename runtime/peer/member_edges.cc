#include "runtime/peer/member_edges.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "algorithms/base/seeded_bug.h"
#include "algorithms/base/status_macros.h"
#include "algorithms/compress/player_codecs.h"
#include "runtime/neighborhood/replica_budget.h"
#include "topology/graph.h"

namespace gossamer {
namespace {

// Returns the codec of edges whose replicas do not fit into memory: differences
// need no state, and as many fragments keep payloads about as small.
std::string ReplicalessOf(const Codec& codec) {
  return absl::StrCat("diff-int8:fragments=", codec.parts());
}

// Rounds from the making of an edge to its first exchange, where neighbours
// change with the rounds: a connection takes some round trips.  The end that
// dials is later by kDialerDelay, so that the other one, which may be rounds
// behind, knows the edge by then.
constexpr uint64_t kAhead = 16, kDialerDelay = 4;
// Rounds that a peer looks ahead.  An edge with a shared round in them is not
// forgotten: the other end, rounds ahead, may rely on it already.
constexpr uint64_t kHorizon = 2 * kAhead;
// Rounds for which an edge waits after its last exchange before it becomes
// inactive: exchanges are under way for kMaxOverlap of them.
constexpr uint64_t kBehind = kMaxOverlap + 4;

// The most rounds that a peer looks back where it learns late of a view or has
// jumped, and for which an edge waits for a peer that is late.
constexpr uint64_t kMaxLate = 256;

// Members that may be in a row of `self` from this round on.
std::set<PeerId> NeighborsIn(const View& view, const MixingSchedule& schedule,
                             PeerId self) {
  std::set<PeerId> neighbors;
  for (const int rank : NeighborsOf(schedule, *view.RankOf(self))) {
    neighbors.insert(view.members[static_cast<size_t>(rank)].id);
  }
  return neighbors;
}

// Whether edges may be forgotten and made again: replicas have a codec that
// takes their place, other memory of edges has not.
bool LoseNothing(const MemberEdges::Parts& parts) {
  if (parts.codec == nullptr) return true;  // no edges at all
  const Codec& codec = *parts.codec;
  return !parts.edges_sum && codec.memory() != EdgeMemory::kShared &&
         !(codec.needs_replica() && NamesPlayers(codec.name()));
}

// Returns nothing if the view does not have the peer.  A leaver still trains.
std::optional<std::string> AddressOf(const View& view, PeerId peer) {
  for (const Departure& d : view.departures) {
    if (d.id == peer) return d.address;
  }
  const std::optional<int> rank = view.RankOf(peer);
  if (!rank) return std::nullopt;
  return view.members[static_cast<size_t>(*rank)].address;
}

}  // namespace

MemberEdges::MemberEdges(const PeerSpec& spec, Parts parts)
    : spec_(spec),
      parts_(std::move(parts)),
      max_neighbors_(LoseNothing(parts_) ? spec.max_neighbors : kMaxPeers) {}

void MemberEdges::OnView(const Membership& membership) {
  if (!membership.view().NewerThan(*known_)) return;
  std::shared_ptr<const View> newest = membership.SharedView();
  DropMembers(*newest);
  AddMembers(newest);
  known_ = std::move(newest);
}

void MemberEdges::DropMembers(const View& newest) {
  for (const PeerId peer : parts_.neighborhood->Peers()) {
    if (newest.RankOf(peer) ||
        (newest.DepartureOf(peer) && !SeededBug("drop-leavers"))) {
      continue;
    }
    // The peer was not there before either: its edge goes on from a record
    // alone.
    if (!known_->RankOf(peer) && !known_->DepartureOf(peer)) continue;
    parts_.reporter->Report(
        "member_removed",
        absl::StrFormat("peer %d is in no view any more; what was under way "
                        "with it is given up",
                        peer.value));
    // The log ends before the edge goes: it must not claim that what follows
    // can be repeated.
    parts_.decisions->NoteMembers(parts_.state->round());
    parts_.neighborhood->Drop(peer);
    shared_rounds_.erase(peer);
  }
}

void MemberEdges::AddMembers(const std::shared_ptr<const View>& view) {
  const View& newest = *view;
  if (!newest.RankOf(spec_.self) || parts_.lifecycle->over()) {
    // It leaves or ends, and still mixes with those who have come back
    // elsewhere.  An edge that began now would have nothing to settle, and
    // never be sealed.
    return Readdress(newest);
  }
  auto schedule = ScheduleOf(parts_.make_schedule, newest);
  if (!schedule.ok()) return;  // reported when the view is adopted
  ReportComingAndGoing(newest);
  time_varying_ = IsTimeVarying(newest.schedule.graph);
  next_ = {.view = view, .schedule = *std::move(schedule)};
  sure_from_ = std::max(newest.from_round, parts_.state->round());
  next_.persistent = HasPersistentEdges(*next_.schedule, max_neighbors_);
  if (!next_.persistent) return AddEdgesOfNextView();
  // A failure comes again, and ends the run, when the view is adopted.
  ConnectNeighbors(newest, *next_.schedule, {}, /*newcomers=*/true)
      .IgnoreError();
}

// Members may have come back elsewhere.
void MemberEdges::Readdress(const View& newest) {
  for (const Member& m : newest.members) {
    if (!parts_.neighborhood->Has(m.id)) continue;
    parts_.transport->Connect(m.id, m.address);
  }
}

void MemberEdges::ReportComingAndGoing(const View& newest) {
  // Of ten thousand members a few are new: one walk along both lists.
  auto known = known_->members.begin();
  for (const Member& m : newest.members) {
    while (known != known_->members.end() && known->id < m.id) ++known;
    if (known != known_->members.end() && known->id == m.id) continue;
    parts_.reporter->Report(
        "member_joined", absl::StrFormat("peer %d, from round %d", m.id.value,
                                         newest.from_round));
  }
  for (const Departure& d : newest.departures) {
    if (!known_->RankOf(d.id) || d.id == spec_.self) continue;
    parts_.reporter->Report(
        "member_leaves",
        absl::StrFormat("peer %d, from round %d", d.id.value, d.round));
  }
}

absl::Status MemberEdges::Connect(
    std::shared_ptr<const View> in_use,
    std::shared_ptr<const MixingSchedule> schedule, const SavedEdges& saved) {
  const View& view = *in_use;
  time_varying_ = IsTimeVarying(view.schedule.graph);
  const bool persistent = HasPersistentEdges(*schedule, max_neighbors_);
  std::set<PeerId> neighbors;
  if (persistent) {
    GOSSAMER_RETURN_IF_ERROR(
        ConnectNeighbors(view, *schedule, saved, /*newcomers=*/false));
    neighbors = NeighborsIn(view, *schedule, spec_.self);
    shared_rounds_.clear();
  } else {
    for (const auto& [peer, rounds] : shared_rounds_) neighbors.insert(peer);
    if (parts_.codec->needs_replica() && !std::exchange(reported_, true)) {
      parts_.reporter->Report(
          "replicas",
          absl::StrFormat("edges of %d peers last for some rounds and have no "
                          "replicas; they use %s",
                          view.members.size(), ReplicalessOf(*parts_.codec)));
    }
  }
  next_ = {};
  GOSSAMER_RETURN_IF_ERROR(ConnectSaved(view, saved));
  // Edges to members that are in no row of this schedule complete what is under
  // way and are forgotten later.
  for (const PeerId peer : parts_.neighborhood->Peers()) {
    if (neighbors.contains(peer)) continue;
    parts_.neighborhood->Deactivate(peer, MakeExchangeId(parts_.state->round()),
                                    /*gone=*/!view.RankOf(peer));
  }
  now_ = {.view = in_use,
          .schedule = std::move(schedule),
          .persistent = persistent};
  // Of rounds that were past when the view was learnt the other end may have
  // forgotten the edge.
  sure_from_ = std::max(sure_from_, parts_.state->round());
  known_ = std::move(in_use);
  return absl::OkStatus();
}

void MemberEdges::Reset() {
  known_ = std::make_shared<const View>();
  now_ = next_ = {};
  shared_rounds_.clear();
  sure_from_ = 0;
}

// The edges are made at once: a member that began by the view may be waiting
// for this peer, and this round for that member.
void MemberEdges::AddEdgesOfNextView() {
  const uint64_t from_round = next_.view->from_round;
  for (auto& [peer, rounds] : shared_rounds_) {
    rounds.erase(rounds.lower_bound(from_round), rounds.end());
  }
  now_.gathered_to = std::min(now_.gathered_to, from_round);
  parts_.neighborhood->SetNeighbors({});
  Readdress(*next_.view);
  LookAhead(next_, parts_.state->round() + kHorizon);
  // A failure comes again, and ends the run, at the next round.
  if (!SeededBug("meet-late")) MakeEdges(*next_.view).IgnoreError();
}

// Rounds that are past count, too, where this peer learns late of the view or
// has jumped over them: the edge tells a member that waits in one of them.
uint64_t MemberEdges::FirstToGather(const View& view) const {
  const uint64_t round = parts_.state->round();
  return std::max(view.from_round, round - std::min(round, kMaxLate));
}

absl::Status MemberEdges::OnRound() {
  const bool next = next_.schedule != nullptr && !next_.persistent;
  if (now_.persistent && !next) return absl::OkStatus();
  const uint64_t end = parts_.state->round() + kHorizon;
  if (next) LookAhead(next_, end);
  if (!now_.persistent) {
    const bool last = next_.schedule == nullptr;
    LookAhead(now_, last ? end : std::min(end, next_.view->from_round));
  }
  GOSSAMER_RETURN_IF_ERROR(
      MakeEdges(SeededBug("meet-by-old-view") ? *now_.view : *known_));
  if (!now_.persistent) DeactivatePast();
  return absl::OkStatus();
}

// An edge whose other end has not answered stays active, if that end must know
// it: its silence counts.
void MemberEdges::DeactivatePast() {
  const uint64_t round = parts_.state->round();
  std::set<PeerId> neighbors;
  for (auto it = shared_rounds_.begin(); it != shared_rounds_.end();) {
    auto& [peer, rounds] = *it;
    const bool silence_counts =
        rounds.lower_bound(sure_from_) != rounds.end() &&
        !parts_.neighborhood->EdgeDone(peer);
    const uint64_t behind = silence_counts ? kMaxLate : kBehind;
    std::erase_if(rounds, [=](uint64_t r) { return r + behind < round; });
    if (rounds.empty()) {
      parts_.neighborhood->Deactivate(peer, MakeExchangeId(round),
                                      /*gone=*/false);
      it = shared_rounds_.erase(it);
      continue;
    }
    if (Expects(rounds)) neighbors.insert(peer);
    ++it;
  }
  // Of a view that has edges to all they are neighbours already.
  if (next_.schedule == nullptr || !next_.persistent) {
    parts_.neighborhood->SetNeighbors(neighbors);
  }
}

bool MemberEdges::Expects(const SharedRounds& rounds) const {
  const auto next = rounds.lower_bound(parts_.state->round());
  const auto sure = rounds.lower_bound(sure_from_);
  return sure != rounds.end() && (next == rounds.end() || *sure <= *next ||
                                  SeededBug("expect-by-any-view"));
}

void MemberEdges::LookAhead(Horizon& horizon, uint64_t end) {
  const View& view = *horizon.view;
  const std::optional<int> rank = view.RankOf(spec_.self);
  horizon.gathered_to = std::max(horizon.gathered_to, FirstToGather(view));
  for (; horizon.gathered_to < std::min(end, spec_.rounds + 1);
       ++horizon.gathered_to) {
    const uint64_t round = horizon.gathered_to;
    if (!rank) continue;  // it leaves
    for (const Neighbor& n : horizon.schedule->Row(*rank, round).neighbors) {
      const Member& m = view.members[static_cast<size_t>(n.rank)];
      shared_rounds_[m.id].insert(round);
    }
  }
}

absl::Status MemberEdges::MakeEdges(const View& addresses) {
  const uint64_t round = parts_.state->round();
  for (const auto& [peer, rounds] : shared_rounds_) {
    // A newer view may have taken all shared rounds.
    if (rounds.empty() || parts_.neighborhood->HasActiveEdge(peer)) continue;
    const uint64_t lead = spec_.self < peer ? kAhead - kDialerDelay : kAhead;
    const auto next = rounds.lower_bound(round);
    const uint64_t first = next == rounds.end() ? round : *next;
    // The other end may be waiting for this peer in a past round.
    const bool late =
        *rounds.begin() < round && !SeededBug("forget-late-meetings");
    // An inactive edge is there, and is active again at once.
    const bool there = parts_.neighborhood->Has(peer);
    if (first >= round + lead && !late && !there) continue;
    GOSSAMER_RETURN_IF_ERROR(AddEdgeFor(peer, first, addresses));
  }
  return absl::OkStatus();
}

absl::Status MemberEdges::AddEdgeFor(PeerId peer, uint64_t first,
                                     const View& addresses) {
  const std::optional<std::string> address = AddressOf(addresses, peer);
  // A peer of the view in use may have gone since.
  if (!address) return absl::OkStatus();
  // The end that looks so far ahead may be the only one that knows the edge.
  // Without deadlines it is waited for all the same: timing decides nothing.
  const bool early = first > parts_.state->round();
  return AddEdge(
      {.peer = peer,
       .address = *address,
       .frontier = MakeExchangeId(first),
       .newcomer = early && spec_.deadline.kind != DeadlinePolicy::Kind::kNone,
       .transient = true},
      /*replica=*/!parts_.codec->needs_replica());
}

absl::Status MemberEdges::ConnectNeighbors(const View& view,
                                           const MixingSchedule& schedule,
                                           const SavedEdges& saved,
                                           bool newcomers) {
  const int rank = *view.RankOf(spec_.self);
  const ReplicaBudget budget(spec_.replica_memory,
                             parts_.state->layout().size(), schedule);
  const std::set<PeerId> neighbors = NeighborsIn(view, schedule, spec_.self);
  const uint64_t round = parts_.state->round();
  // An edge that is made before its view begins has no exchanges below it.
  const uint64_t from = newcomers ? std::max(round, view.from_round) : round;
  size_t without = 0;
  for (const PeerId neighbor : neighbors) {
    const int other = *view.RankOf(neighbor);
    const Member& m = view.members[static_cast<size_t>(other)];
    const auto it = saved.find(m.id);
    const bool fits =
        !parts_.codec->needs_replica() || budget.Covers(rank, other);
    // Only edges that are made now: the report comes once.
    if (!fits && !parts_.neighborhood->Has(m.id)) ++without;
    GOSSAMER_RETURN_IF_ERROR(
        AddEdge({.peer = m.id,
                 .address = m.address,
                 .frontier = MakeExchangeId(from),
                 .saved = it == saved.end() ? nullptr : &it->second,
                 .newcomer = newcomers},
                /*replica=*/fits));
  }
  parts_.neighborhood->SetNeighbors(neighbors);
  if (without > 0) {
    parts_.reporter->Report(
        "replicas",
        absl::StrFormat("mixing.replica_memory_mb allows no replicas on %d of "
                        "%d edges; they use %s",
                        without, neighbors.size(),
                        ReplicalessOf(*parts_.codec)));
  }
  return absl::OkStatus();
}

// Exchanges under way with other peers end as they would have, also with those
// that are not there: a record has both messages of each exchange.
absl::Status MemberEdges::ConnectSaved(const View& view,
                                       const SavedEdges& saved) {
  for (const auto& [peer, edge] : saved) {
    if (parts_.neighborhood->Has(peer)) continue;
    const std::optional<std::string> address = AddressOf(view, peer);
    const bool absent = !address;
    GOSSAMER_RETURN_IF_ERROR(
        AddEdge({.peer = peer,
                 .address = address.value_or(""),
                 .frontier = MakeExchangeId(parts_.state->round()),
                 .saved = &edge,
                 .absent = absent},
                /*replica=*/true));
  }
  return absl::OkStatus();
}

// A member that mixed with the incarnation before, in a view that it has not
// left yet or until it leaves, would wait for what that incarnation owed it in
// rounds that this one does not take part in.  This one does not know which
// they are, so it announces its epoch to everybody.  The same holds of a view
// that named this incarnation and that it did not begin by.
absl::Status MemberEdges::AnnounceEpoch(const View& view, bool under_way) {
  // All members of a first view begin at one round, and so do those of a
  // resumed run: nobody remembers an earlier incarnation.
  const bool together =
      !under_way && view.from_round <= std::max<uint64_t>(view.resume_round, 1);
  if (together || SeededBug("greet-nobody")) return absl::OkStatus();
  std::vector<Member> others = view.members;
  for (const Departure& d : view.departures) {
    others.push_back({.id = d.id, .address = d.address});
  }
  const ExchangeId frontier = MakeExchangeId(parts_.state->round());
  // As the edges to the others have them.
  const bool replica = now_.persistent || !parts_.codec->needs_replica();
  for (const Member& other : others) {
    if (other.id == spec_.self || parts_.neighborhood->Has(other.id)) continue;
    GOSSAMER_RETURN_IF_ERROR(AddEdge(
        {.peer = other.id, .address = other.address, .frontier = frontier},
        replica));
    // The edge is in no row; it exists to announce the new epoch, and is
    // forgotten after a minute.
    parts_.neighborhood->Deactivate(other.id, frontier, /*gone=*/false);
  }
  return absl::OkStatus();
}

// A record is of the codec that its edge had: peers may have had other ranks
// then, and the budget of replicas goes by ranks.
absl::Status MemberEdges::AddEdge(Neighborhood::NewEdge edge, bool replica) {
  const bool bounded = parts_.codec->needs_replica() &&
                       (spec_.replica_memory != 0 || time_varying_);
  if (bounded && replicaless_ == nullptr) {
    auto made = Codec::Create(ReplicalessOf(*parts_.codec),
                              parts_.state->layout(), parts_.state->queue());
    // It may be that no edge will need it.
    if (!made.ok() && (!replica || spec_.replica_memory != 0)) {
      return made.status();
    }
    if (made.ok()) replicaless_ = *std::move(made);
  }
  edge.codec = replica ? parts_.codec : replicaless_;
  if (bounded) {
    edge.other_codec = replica ? replicaless_ : parts_.codec;
  }
  const absl::Status added = parts_.neighborhood->Add(edge);
  if (added.ok() || edge.saved == nullptr || edge.other_codec == nullptr) {
    return added;
  }
  // The record did not fit the codec that this view would choose.
  std::swap(edge.codec, edge.other_codec);
  return parts_.neighborhood->Add(edge).ok() ? absl::OkStatus() : added;
}

}  // namespace gossamer
