// Views: joining, adopting, rows, rounds and the agreed stop.

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "algorithms/base/seeded_bug.h"
#include "algorithms/base/status_macros.h"
#include "runtime/neighborhood/replica_budget.h"
#include "runtime/peer/peer.h"
#include "topology/mixing_matrix.h"

namespace gossamer {
namespace {

// How long a round waits for neighbours that have not been met, where there are
// deadlines; and while one that has been met waits for this peer.
constexpr absl::Duration kMeetLimit = absl::Seconds(5);
constexpr absl::Duration kAwaitedLimit = absl::Milliseconds(500);
// Of the largest step size that is stable, as much is used.
constexpr double kMargin = 2.0 / 3;
// And of what is late, whose age is taken as the worst that was seen.
constexpr double kDampedMargin = 0.9;

// Of edges whose replicas do not fit.
std::string ReplicalessOf(const Codec& codec) {
  return absl::StrCat("diff-int8:fragments=", codec.fragments());
}

// Who may be in a row of `rank` from this round on.
std::set<PeerId> PartnersOf(const View& view, const MixingSchedule& schedule,
                            int rank, uint64_t round) {
  std::set<PeerId> partners;
  if (schedule.fixed()) {
    for (const Neighbor& n : schedule.Row(rank, round).neighbors) {
      partners.insert(view.members[static_cast<size_t>(n.rank)].id);
    }
    return partners;
  }
  for (const Member& m : view.members) {
    if (m.id != view.members[static_cast<size_t>(rank)].id) {
      partners.insert(m.id);
    }
  }
  return partners;
}

absl::Status NotInTheFleet(absl::Duration limit) {
  return absl::DeadlineExceededError(absl::StrCat(
      "not in the fleet within ", absl::FormatDuration(limit),
      " (mixing.liveness_limit); start the missing peers, or look at the "
      "topology service's status"));
}

// The fewest partners are asked of a first view alone: whoever trains goes on.
absl::Status CheckView(const View& view, const PeerSpec& spec, bool first) {
  if (!view.RankOf(spec.self)) {
    return absl::FailedPreconditionError(
        absl::StrCat("peer ", spec.self.value, " is not in view ", view.epoch,
                     " of run '", view.run_id, "'"));
  }
  if (!first || spec.min_partners == 0) return absl::OkStatus();
  GOSSAMER_ASSIGN_OR_RETURN(const auto schedule, view.MakeSchedule());
  const int partners = FewestPartners(*schedule);
  if (partners >= spec.min_partners) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "view ", view.epoch, " has graph ", view.schedule.graph,
      " with schedule ", view.schedule.schedule, ", where some mix with ",
      partners, " others; mixing.clip_radius needs ", spec.min_partners,
      ": give the topology service the same configuration"));
}

}  // namespace

// Until the first view, or the first one of another life.
Task<absl::Status> Peer::Join() {
  Membership* const m = parts_.membership;
  const absl::Time limit = parts_.loop->Now() + spec_.liveness_limit;
  for (;;) {
    const bool news = co_await waiter_.Until(
        [this, m] {
          return m->view().epoch != 0 || m->outside() || leaves_now_ ||
                 m->stop().committed || !m->refused().ok() ||
                 (!has_state_ && !m->donors().empty());
        },
        limit);
    if (leaves_now_) {
      left_ = true;
      co_return absl::OkStatus();
    }
    if (!news) co_return NotInTheFleet(spec_.liveness_limit);
    if (m->view().epoch != 0) {
      if (m->view().DepartureOf(spec_.self)) {
        left_ = true;
        co_return absl::OkStatus();
      }
      GOSSAMER_CO_RETURN_IF_ERROR(CheckView(m->view(), spec_, /*first=*/true));
      const bool had = has_state_;
      Task<absl::StatusOr<SavedEdges>> taken = TakeUp();
      const absl::StatusOr<SavedEdges> saved = co_await taken.result();
      GOSSAMER_CO_RETURN_IF_ERROR(saved.status());
      if (m->view().epoch == 0 || m->view().DepartureOf(spec_.self) ||
          leaves_now_) {
        // A service that has lost this peer lets it in with what members give.
        if (!leaves_now_) has_state_ = had;
        continue;
      }
      has_state_ = false;
      co_return AdoptView(*saved);
    }
    GOSSAMER_CO_RETURN_IF_ERROR(m->refused());
    if (m->stop().committed) {
      stopped_ = true;  // the others have ended without this one
      co_return absl::OkStatus();
    }
    // Donors that never give would have it ask for ever.
    if (parts_.loop->Now() >= limit)
      co_return NotInTheFleet(spec_.liveness_limit);
    if (m->outside()) {
      // Given up while it waited: it was frozen, or the service away.
      m->Rejoin(/*trained=*/has_state_ || steps_ > 0);
      continue;
    }
    Task<absl::Status> state = GetState();
    GOSSAMER_CO_RETURN_IF_ERROR(co_await state.result());
  }
}

// Without deadlines every edge has to be met.  With them, who cannot be reached
// must not hold up the others: once one of them has begun the round it waits
// for this peer.
Task<bool> Peer::MeetRow(std::span<const RowEntry> row, ExchangeId id) {
  absl::Time limit = parts_.loop->Now() + spec_.liveness_limit;
  const bool patient = spec_.deadline.kind == DeadlinePolicy::Kind::kNone;
  if (!patient) limit = std::min(limit, parts_.loop->Now() + kMeetLimit);
  absl::Time awaited = absl::InfiniteFuture();
  co_return co_await waiter_.Until(
      [&] {
        if (!patient && !neighborhood_.Alone(id)) {
          awaited = std::min(awaited, parts_.loop->Now() + kAwaitedLimit);
        }
        return neighborhood_.Acquainted(row) || asked_in_vain_ ||
               EndedBehind() || parts_.loop->Now() >= awaited;
      },
      limit, [&] { return awaited; });
}

absl::Status Peer::AdoptView(const SavedEdges& saved) {
  const View& newest = parts_.membership->view();
  const bool first = view_.epoch == 0;
  if (!newest.NewerThan(view_) || (!first && round_ < newest.from_round)) {
    return absl::OkStatus();
  }
  if (!first && decisions_.replays()) return absl::OkStatus();
  // It leaves before that view begins.
  if (newest.DepartureOf(spec_.self)) return absl::OkStatus();
  GOSSAMER_RETURN_IF_ERROR(CheckView(newest, spec_, first));
  GOSSAMER_ASSIGN_OR_RETURN(schedule_, newest.MakeSchedule());
  const bool others = !first && newest.members != view_.members;
  if (others) decisions_.TellMembers(round_);
  if (first && newest.resume_round == 0) common_.OnNewIncarnation();
  view_ = newest;
  rank_ = *view_.RankOf(spec_.self);
  LetGo(view_);
  GOSSAMER_RETURN_IF_ERROR(AdoptOverlap(view_.overlap_steps));
  if (first) {
    round_ = view_.resume_round != 0 ? view_.resume_round
                                     : std::max<uint64_t>(1, view_.from_round);
  }
  if (first && view_.resume_round != 0) {
    common_.Restored(saved);
    // What was in flight at the checkpoint is due as it was then.
    const auto h = static_cast<uint64_t>(overlap_);
    for (uint64_t r = round_; r-- > 1 && r + h > round_;) rows_[r] = RowOf(r);
  }
  GOSSAMER_RETURN_IF_ERROR(ConnectMembers(saved));
  return first ? GreetOthers() : absl::OkStatus();
}

absl::Status Peer::ConnectMembers(const SavedEdges& saved) {
  std::vector<PeerId> ids;
  for (const Member& m : view_.members) ids.push_back(m.id);
  if (spec_.centralized) {
    for (const Member& m : view_.members) {
      if (m.id != spec_.self) parts_.transport->Connect(m.id, m.address);
    }
    if (const auto index = decisions_.all_reduce()) all_reducer_.Prefer(*index);
    return all_reducer_.SetMembers(spec_.all_reduce, rank_, ids, Operation(),
                                   parts_.game->layout(),
                                   parts_.gradients.get());
  }
  GOSSAMER_RETURN_IF_ERROR(
      Connect(view_, *schedule_, saved, /*newcomers=*/false));
  // What was under way with others ends as it would have, also with those that
  // are not there: a record has both messages of each exchange.
  std::map<PeerId, std::string> addresses;  // who leaves still trains
  for (const Member& m : view_.members) addresses[m.id] = m.address;
  for (const Departure& d : view_.departures) addresses[d.id] = d.address;
  for (const auto& [peer, edge] : saved) {
    if (neighborhood_.Has(peer)) continue;
    const auto there = addresses.find(peer);
    const bool absent = there == addresses.end();
    GOSSAMER_RETURN_IF_ERROR(AddEdge({.peer = peer,
                                      .address = absent ? "" : there->second,
                                      .frontier = MakeExchangeId(round_),
                                      .saved = &edge,
                                      .absent = absent},
                                     /*replica=*/true));
  }
  const std::set<PeerId> partners =
      PartnersOf(view_, *schedule_, rank_, view_.from_round);
  for (const PeerId peer : neighborhood_.Peers()) {
    if (!partners.contains(peer)) {
      neighborhood_.Rest(peer, MakeExchangeId(round_),
                         /*gone=*/!view_.RankOf(peer));
    }
  }
  met_ = view_;
  WatchNeighbors();
  return absl::OkStatus();
}

// A record is of the codec that its edge had: peers may have had other ranks
// then, and the budget of replicas goes by ranks.
absl::Status Peer::AddEdge(Neighborhood::NewEdge edge, bool replica) {
  if (replicaless_ == nullptr) {
    GOSSAMER_ASSIGN_OR_RETURN(
        replicaless_,
        Codec::Create(ReplicalessOf(*parts_.codec), parts_.game->layout()));
  }
  edge.codec = replica ? parts_.codec : replicaless_;
  if (spec_.replica_memory != 0 && parts_.codec->needs_replica()) {
    edge.other_codec = replica ? replicaless_ : parts_.codec;
  }
  const absl::Status added = neighborhood_.Add(edge);
  if (added.ok() || edge.saved == nullptr || edge.other_codec == nullptr) {
    return added;
  }
  std::swap(edge.codec, edge.other_codec);
  return neighborhood_.Add(edge).ok() ? absl::OkStatus() : added;
}

absl::Status Peer::Connect(const View& view, const MixingSchedule& schedule,
                           const SavedEdges& saved, bool newcomers) {
  const ParameterLayout& layout = parts_.game->layout();
  const int rank = *view.RankOf(spec_.self);
  const ReplicaBudget budget(spec_.replica_memory, layout.size(), schedule);
  const std::set<PeerId> partners =
      PartnersOf(view, schedule, rank, view.from_round);
  size_t without = 0;
  for (const Member& m : view.members) {
    if (!partners.contains(m.id)) continue;
    const auto it = saved.find(m.id);
    const bool fits = !parts_.codec->needs_replica() ||
                      budget.Covers(rank, *view.RankOf(m.id));
    if (!fits && !neighborhood_.Has(m.id)) ++without;
    const uint64_t from = newcomers ? view.from_round : round_;
    GOSSAMER_RETURN_IF_ERROR(
        AddEdge({.peer = m.id,
                 .address = m.address,
                 .frontier = MakeExchangeId(std::max(round_, from)),
                 .saved = it == saved.end() ? nullptr : &it->second,
                 .newcomer = newcomers},
                /*replica=*/fits));
  }
  neighborhood_.SetPartners(partners);
  if (without > 0) {
    Tell("replicas",
         absl::StrFormat("mixing.replica_memory_mb allows no replicas on %d of "
                         "%d edges; they use %s",
                         without, partners.size(),
                         ReplicalessOf(*parts_.codec)));
  }
  return absl::OkStatus();
}

// `overlap`: what the view says, or a replay.
absl::Status Peer::AdoptOverlap(int overlap) {
  const int before = overlap_;
  overlap_ = spec_.overlap_steps;
  if (overlap_ == kAutoOverlap) {
    overlap_ = std::clamp(overlap, 1, kMaxOverlap);
    decisions_.TellOverlap(round_, overlap_);
    Tell("overlap",
         absl::StrFormat("overlap_steps %d from round %d (was %d); measured "
                         "here: a round without waiting %.1f ms, an exchange "
                         "%.1f ms",
                         overlap_, round_, before, 1e3 * busy_.Quantile(0.5),
                         1e3 * exchanges_.Quantile(0.9)));
  }
  busy_.Clear();
  exchanges_.Clear();
  GOSSAMER_ASSIGN_OR_RETURN(gamma_, StepSize());
  if (spec_.chebyshev) {
    if (!schedule_->fixed()) {
      return absl::InvalidArgumentError(
          "chebyshev gossip needs a fixed schedule");
    }
    omega_ = ChebyshevWeights(ContractionOfNorm(*schedule_, gamma_),
                              spec_.mixing_rounds);
  }
  neighborhood_.SetOverlap(
      overlap_, kDampedMargin * StableStepSize(*schedule_, /*age=*/0) / gamma_);
  return absl::OkStatus();
}

absl::StatusOr<float> Peer::StepSize() const {
  const float wanted =
      spec_.gamma > 0 ? static_cast<float>(spec_.gamma) : parts_.codec->gamma();
  const int age = overlap_ - 1;
  if (spec_.centralized || age < 1) return wanted;
  const double bound = StableStepSize(*schedule_, age);
  if (spec_.gamma == 0) {
    return std::min(wanted, static_cast<float>(bound * kMargin));
  }
  if (spec_.gamma < bound) return wanted;
  return absl::InvalidArgumentError(absl::StrCat(
      "mixing.gamma ", spec_.gamma, " is not stable with overlap_steps ",
      overlap_, " on this schedule: it must be below ", bound,
      "; leave it out to get ", bound * kMargin));
}

std::vector<RowEntry> Peer::RowOf(uint64_t round) const {
  std::vector<RowEntry> row;
  for (const Neighbor& n : schedule_->Row(rank_, round).neighbors) {
    row.push_back({view_.members[static_cast<size_t>(n.rank)].id,
                   gamma_ * static_cast<float>(n.weight)});
  }
  return row;
}

// The fleet took this peer for lost and has stopped at this round or before it:
// nobody will answer what is under way.  Of a centralized fleet its members say
// so themselves, though the service may be gone.
bool Peer::EndedBehind() const {
  const StopState stop = parts_.membership->stop();
  return (stop.committed && stop.round <= round_) ||
         all_reducer_.Abandoned(Operation());
}

// True if the fleet ends its run before this round (membership.h).
Task<bool> Peer::AtStop() {
  Membership* const m = parts_.membership;
  if (Leaves()) co_return false;
  if (decisions_.replays()) co_return round_ == decisions_.stop();
  const StopState stop = m->stop();
  // The others have ended without this one, which they took for lost.
  if (stop.committed && round_ > stop.round) co_return true;
  if (stop.round == 0 || round_ > stop.round) co_return false;
  m->AcknowledgeStop(stop.round);
  if (round_ < stop.round || SeededBug("run-past-stop")) co_return false;
  // At the round itself: the run ends here unless a peer has begun it already.
  // With the service gone the run goes on; nothing is lost by that.
  const uint64_t agreed = stop.round;
  const bool decided = co_await waiter_.Until(
      [this, m, agreed] {
        return m->stop().committed || m->stop().round != agreed ||
               all_reducer_.Abandoned(Operation()) || leaves_now_;
      },
      parts_.loop->Now() + spec_.liveness_limit);
  if (all_reducer_.Abandoned(Operation())) co_return true;
  co_return decided && m->stop().committed && m->stop().round == round_;
}

uint64_t Peer::DecideNextRound() {
  if (decisions_.replays()) return decisions_.Next(round_);
  const uint64_t next = NextRound();
  if (next != round_ + 1) decisions_.TellJump(round_, next);
  return next;
}

// Without deadlines nobody gets far ahead.
uint64_t Peer::NextRound() {
  const uint64_t next = round_ + 1;
  if (spec_.centralized || spec_.deadline.kind == DeadlinePolicy::Kind::kNone) {
    return next;
  }
  const Membership& m = *parts_.membership;
  const StopState stop = m.stop();
  const bool stops = stop.round != 0 && next <= stop.round;
  RoundsSeen seen = neighborhood_.LookAround();
  seen.fixed = schedule_->fixed();
  seen.pair = view_.members.size() <= 2;
  seen.fleet = m.fleet_round();
  seen.second = m.second_round();
  seen.last = stops ? std::min(stop.round, spec_.rounds) : spec_.rounds;
  return round_chooser_.Next(round_, overlap_, seen);
}

}  // namespace gossamer
