#include "topology/fleet/fleet.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "algorithms/base/status_macros.h"
#include "topology/fleet/protocol.h"
#include "topology/fleet/sketch.h"

namespace gossamer {
namespace {

// Decisions look at every member.  So many times in the interval of heartbeats
// they are taken where more peers than that send some, and at every tick; the
// cost of a heartbeat then does not grow with the fleet.  In smaller fleets
// every heartbeat decides.
constexpr int kDecisionsAnInterval = 16;
// Views that are kept for members which resume from different rounds.
constexpr size_t kMaxResumed = 16;

// Limits on what a heartbeat may say, so that one peer can neither move rounds
// out of the range of messages nor make a member's record grow.
absl::Status CheckReport(const FleetHeartbeat& heartbeat) {
  const PeerReport& report = heartbeat.report;
  for (const uint64_t round :
       {report.round, heartbeat.round_begun, heartbeat.acknowledged_stop}) {
    if (round <= kMaxRound) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("heartbeat: round ", round, " is out of range"));
  }
  if (report.sketch.size() % kSketchBuckets != 0 ||
      report.sketch.size() > kMaxPlayers * kSketchBuckets) {
    return absl::InvalidArgumentError(
        absl::StrCat("heartbeat: a sketch has ", kSketchBuckets,
                     " numbers of each player, "
                     "and a game at most ",
                     kMaxPlayers, " players: not ", report.sketch.size()));
  }
  if (heartbeat.suspected.size() > kMaxSuspected) {
    return absl::InvalidArgumentError(
        absl::StrCat("heartbeat: suspects ", heartbeat.suspected.size(),
                     " peers; at most ", kMaxSuspected, " fit"));
  }
  if (report.losses.size() > kMaxPlayers) {
    return absl::InvalidArgumentError(
        absl::StrCat("heartbeat: losses of ", report.losses.size(),
                     " players; at most ", kMaxPlayers, " fit"));
  }
  for (const PlayerLoss& loss : report.losses) {
    if (IsPlayerName(loss.player)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("heartbeat: the name of a player has ", loss.player.size(),
                     " bytes; it must have 1 to ", kMaxPlayerNameBytes));
  }
  return absl::OkStatus();
}

// The generation is later than that of the incarnation before.  The clock
// enters because the disk may be an earlier one and forget incarnations
// between: two of them must not name two views alike.
uint64_t NextGeneration(uint64_t stored, absl::Time now) {
  const auto clock =
      static_cast<uint64_t>(std::max<int64_t>(absl::ToUnixMillis(now), 0));
  return LaterGeneration(clock, stored) ? clock : stored + 1;
}

absl::Status Superseded(PeerId id) {
  return absl::AbortedError(
      absl::StrCat("another process has registered as peer ", id.value,
                   " since; two processes must not share an id"));
}

// The players' names are those of the losses that a peer reports.
std::optional<Consensus> ConsensusOf(
    uint64_t round, const std::vector<std::vector<double>>& sketches,
    const std::vector<FleetPeer>& peers) {
  for (const std::vector<double>& sketch : sketches) {
    if (sketch.size() != sketches[0].size()) return std::nullopt;
  }
  Consensus consensus = {.round = round};
  const std::vector<double> distances = ConsensusDistances(sketches);
  for (const double d : distances) consensus.distance += d;
  if (distances.size() < 2) return consensus;
  for (const FleetPeer& peer : peers) {
    const PlayerLosses names = Bounded(peer.report.losses);
    if (names.size() != distances.size()) continue;
    for (size_t i = 0; i < names.size(); ++i) {
      consensus.players.push_back({names[i].player, distances[i]});
    }
    break;
  }
  return consensus;
}

}  // namespace

// The parts are made in the order of their members in the header, each after
// those that it refers to.
Fleet::Fleet(FleetOptions options, FleetRecord record, absl::Time now)
    : options_(std::move(options)),
      record_(std::move(record)),
      sizes_(options_, notes_),
      roster_(record_, options_.lease, now),
      rounds_(roster_, record_.view, options_.heartbeat),
      suspicion_(roster_, record_.view, notes_),
      views_(options_, record_, roster_, rounds_, suspicion_),
      stop_(record_.stop, options_.lease, roster_, rounds_, views_),
      evictions_(options_.heartbeat, roster_, views_, suspicion_, sizes_),
      departures_(options_.heartbeat, roster_, rounds_, suspicion_, views_,
                  sizes_, stop_),
      registrar_(options_, roster_, views_, sizes_),
      admission_(options_, roster_, rounds_, views_, departures_, stop_, sizes_,
                 notes_),
      donors_(roster_),
      view_recovery_(options_, roster_, suspicion_, views_, stop_, notes_) {}

absl::StatusOr<std::unique_ptr<Fleet>> Fleet::Create(
    FleetOptions options, std::optional<FleetRecord> stored, absl::Time now) {
  GOSSAMER_RETURN_IF_ERROR(CheckFleetSize(options, options.expected));
  if (options.run_id.empty()) {
    return absl::InvalidArgumentError("a run needs a name: give --run");
  }
  FleetRecord record;
  if (stored) record = *std::move(stored);
  record.generation = NextGeneration(record.generation, now);
  if (record.members.empty()) {
    record.configuration_hash = options.configuration_hash;
  }
  std::unique_ptr<Fleet> fleet(
      new Fleet(std::move(options), std::move(record), now));
  GOSSAMER_RETURN_IF_ERROR(fleet->CheckStored());
  return fleet;
}

// A service that was started with other options must not go on with a fleet
// that is under way: its next view would have a graph or a seed that the peers'
// configuration does not.  A run that is over may be followed by any other one.
absl::Status Fleet::CheckStored() const {
  const View& view = views_.view();
  if (view.epoch == 0 || Finished()) return absl::OkStatus();
  const uint64_t configuration = options_.configuration_hash;
  if (SameFleet(view, views_.assembled(), options_) &&
      (configuration == 0 || configuration == roster_.configuration_hash())) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrFormat(
      "what is stored is run \"%s\" of %d peers, graph %s, seed %d, "
      "configuration %016x, which has not finished; start with the "
      "same options to go on with it, or with another --state or name",
      view.run_id, view.members.size(), view.schedule.graph, view.seed,
      roster_.configuration_hash()));
}

absl::StatusOr<PeerId> Fleet::Register(const Registration& r, absl::Time now) {
  const bool first = roster_.members().empty() || Finished() ||
                     (!views_.assembled() && view_recovery_.CanRecoverFrom(r));
  // The request is checked before a view is taken back from it.  A view is
  // taken back before the peer's record is looked up, which that view may
  // bring.
  GOSSAMER_RETURN_IF_ERROR(registrar_.Check(r, first));
  if (view_recovery_.CanRecoverFrom(r)) ResetDecisions();
  GOSSAMER_RETURN_IF_ERROR(view_recovery_.Recover(r, now));
  const bool known =
      std::ranges::any_of(roster_.members(), [&](const MemberRecord& m) {
        return m.incarnation_id == r.incarnation_id;
      });
  if (Finished() && !known && !r.has_parameters) {
    // The run is over and a peer starts again: another fleet gathers.
    view_recovery_.ResetRun();
    views_.Disassemble();
    ResetDecisions();
  }
  const PeerId id = roster_.AssignId(r);
  const MemberRecord* member = roster_.Find(id);
  if (member == nullptr || member->incarnation_id != r.incarnation_id) {
    // An incarnation that begins here is newer than one that trains by a view
    // of an earlier incarnation of the service.
    if (member != nullptr && r.trains && roster_.live(id).registered_here &&
        !roster_.live(id).trains) {
      return Superseded(id);
    }
    GOSSAMER_RETURN_IF_ERROR(RegisterIncarnation(r, id, now));
  }
  LiveMember& live = roster_.live(id);
  // A registration renews the lease, also a repeated one of the same
  // incarnation: its first answer may have been lost.
  live.last_heard = now;
  live.registered_here = true;
  if (r.trains) roster_.MarkIncomplete();
  if (r.trains) live.well_since = std::min(live.well_since, now);
  if (!evictions_.waits_for_more()) admission_.AdmitPending(now);
  return id;
}

absl::Status Fleet::RegisterIncarnation(const Registration& r, PeerId id,
                                        absl::Time now) {
  const MemberRecord* known = roster_.Find(id);
  const bool first = known == nullptr;
  MemberRecord member;
  if (known != nullptr) member = *known;
  member.id = id;
  // A member known from a view alone has no incarnation id: the incarnation
  // that says that it trains is that one.
  const bool recovered = known != nullptr &&
                         member.incarnation_id == kUnknownIncarnation &&
                         r.trains;
  const bool died_leaving = member.standing == Standing::kLeaving && !recovered;
  // Counted and judged before the new incarnation takes the record over, and
  // kept in the live part, which is reset below.
  int short_incarnations = 0;
  if (known != nullptr && !recovered && !r.trains) {
    short_incarnations = evictions_.ShortIncarnations(*known);
    evictions_.Quarantine(*known, now);
    member.standing = known->standing;
    member.removals = known->removals;
  }
  if (!recovered) {
    GOSSAMER_RETURN_IF_ERROR(registrar_.Classify(r, member, now));
  }
  if (roster_.members().empty()) roster_.TakeRunOf(r);
  // A peer at another address or on another device is admitted by a view that
  // has it.
  member.in_view =
      recovered && member.address == r.address && member.device == r.device;
  member.incarnation_id = r.incarnation_id;
  member.address = r.address;
  member.device = r.device;
  member.checkpoint_rounds = r.checkpoint_rounds;
  member.finished = false;
  roster_.Put(std::move(member));
  LiveMember& live = roster_.live(id);
  // Reports of the incarnation before say nothing of this one.
  live = {};
  live.first = first;
  live.registered = now;
  live.trains = r.trains;
  live.has_parameters = r.has_parameters;
  live.short_incarnations = short_incarnations;
  // The others wait for a leaver until the round of its departure.
  if (died_leaving && views_.assembled()) views_.Renew();
  roster_.Changed();
  return absl::OkStatus();
}

// kNotFound makes a peer register again, kAborted ends it.  So kAborted is only
// for the case in which it is certain that two processes share an id.
absl::Status Fleet::CheckHeartbeat(const FleetHeartbeat& heartbeat) const {
  if (heartbeat.run_id != options_.run_id) {
    return absl::FailedPreconditionError(
        absl::StrFormat("this service runs \"%s\", not \"%s\"", options_.run_id,
                        heartbeat.run_id));
  }
  const MemberRecord* member = roster_.Find(heartbeat.peer_id);
  if (member == nullptr) {
    return absl::NotFoundError(absl::StrCat("peer ", heartbeat.peer_id.value,
                                            " is not registered here"));
  }
  if (member->incarnation_id != heartbeat.incarnation_id) {
    // A service that was started since, from a disk that may be older, does not
    // know which of the two registered last: the one that registers again.  By
    // a clock that is behind, the generation of the peer's service may be above
    // the present one, or the same.
    if (heartbeat.registered_generation != views_.generation() ||
        !roster_.live(member->id).registered_here) {
      return absl::NotFoundError(
          absl::StrCat("this incarnation of peer ", heartbeat.peer_id.value,
                       " is not registered here any more"));
    }
    return Superseded(heartbeat.peer_id);
  }
  if (heartbeat.view_epoch != 0 &&
      (!views_.assembled() || view_recovery_.HasNewerView(heartbeat))) {
    return absl::NotFoundError(
        absl::StrCat("of the view that peer ", heartbeat.peer_id.value,
                     " trains by nothing is known here"));
  }
  return CheckReport(heartbeat);
}

absl::StatusOr<FleetAnswer> Fleet::Heartbeat(const FleetHeartbeat& heartbeat,
                                             absl::Time now) {
  GOSSAMER_RETURN_IF_ERROR(CheckHeartbeat(heartbeat));
  MemberRecord& member = *roster_.Find(heartbeat.peer_id);
  // Taken before the last heartbeat of a leaver makes it one that has left.  A
  // peer that trains may stand at a stop that an older disk has forgotten, and
  // that others have ended at.
  const bool steers = IsMemberOrLeaving(member) &&
                      (member.in_view || heartbeat.view_epoch != 0);
  // The heartbeat is learnt first and the answer is made last, so that the
  // answer shows every decision that the heartbeat has caused.
  Learn(heartbeat, member, now);
  views_.ReplaceForgotten(KnownView(heartbeat), member, now);
  if (steers) {
    stop_.OnAcknowledged(heartbeat.acknowledged_stop);
    // Decide and Tick see to a stop that is proposed.
    if (heartbeat.request_stop && !stop_.proposed()) {
      GOSSAMER_RETURN_IF_ERROR(RequestStop(now).status());
    }
  }
  if (++undecided_ * kDecisionsAnInterval >= outlook_.heard) Decide(now);
  // Behind the decisions, which may just have admitted the member.
  GOSSAMER_RETURN_IF_ERROR(
      admission_.CheckAdmissible(member, outlook_.trained));
  return Answer(heartbeat, now);
}

void Fleet::Decide(absl::Time now) {
  undecided_ = 0;
  if (!evictions_.waits_for_more()) admission_.AdmitPending(now);
  evictions_.EvictSilent(now);
  if (!evictions_.waits_for_more()) departures_.LetLeave(now);
  if (!stop_.proposed()) views_.AdaptOverlap();
  stop_.Advance(now);
  departures_.NoteGone(now);
  const std::vector<uint64_t> rounds = rounds_.Rounds();
  outlook_ = {.fleet_round = rounds_.FleetRound(now),
              .second_round = rounds.size() > 1 ? rounds[1] : 0,
              .fleet_busy = rounds_.SlowestBusy(),
              .registered = roster_.registered()};
  for (const MemberRecord& m : roster_.members()) {
    const absl::Time heard = roster_.live(m.id).last_heard;
    outlook_.heard += roster_.HasLease(m, now);
    if (m.in_view && !m.finished) {
      outlook_.trained = std::max(outlook_.trained, heard);
    }
  }
  donors_.Choose(admission_.Joining(now), now);
}

void Fleet::ResetDecisions() {
  undecided_ = 0;
  outlook_ = {};
  donors_.Reset();
}

void Fleet::Learn(const FleetHeartbeat& heartbeat, MemberRecord& member,
                  absl::Time now) {
  // Before the lease is renewed: whether it had run out tells how long the
  // member has been well.
  evictions_.OnRoundBegun(member, heartbeat.round_begun, now);
  roster_.Hear(heartbeat, member, now);
  suspicion_.Learn(heartbeat, now);
  if (heartbeat.finished && !member.finished) {
    departures_.OnFinished(member, now);
  }
}

FleetAnswer Fleet::Answer(const FleetHeartbeat& heartbeat, absl::Time now) {
  FleetAnswer answer;
  answer.fleet_round = outlook_.fleet_round;
  answer.second_round = outlook_.second_round;
  answer.fleet_busy = outlook_.fleet_busy;
  answer.registered = outlook_.registered;
  const MemberRecord& member = *roster_.Find(heartbeat.peer_id);
  if (!IsMemberOrLeaving(member)) {
    AnswerOutside(member, now, answer);
    return answer;
  }
  if (admission_.EndedWithout(member, now)) answer.stop = stop_.Ended();
  if (member.needs_parameters) answer.donors = donors_.Of(member.id);
  // A stop is for those that train: a member that waits for parameters has no
  // round to stop at yet.
  if (roster_.TrainsHere(member)) answer.stop = stop_.state();
  if (!member.in_view) return answer;
  answer.joiners = donors_.JoinersOf(member.id);
  answer.first_named = roster_.FirstNamedBy(views_.view().epoch, member);
  answer.heard = suspicion_.HeardSince(member.id, now);
  // A view is sent only until the member says that it knows it, so that most
  // answers are small.
  if (views_.view().NewerThan(KnownView(heartbeat))) {
    answer.view = ViewFrom(member.resume_round);
  }
  return answer;
}

std::shared_ptr<const View> Fleet::ViewFrom(uint64_t resume_round) {
  if (std::exchange(shared_version_, views_.version()) != views_.version()) {
    shared_.clear();
  }
  if (shared_.size() > kMaxResumed) shared_.clear();
  std::shared_ptr<const View>& shared = shared_[resume_round];
  if (shared == nullptr) {
    View view = views_.view();
    view.resume_round = resume_round;
    shared = std::make_shared<const View>(std::move(view));
  }
  return shared;
}

void Fleet::AnswerOutside(const MemberRecord& m, absl::Time now,
                          FleetAnswer& answer) {
  // A peer outside the fleet ends when the others have ended.
  if (Finished()) {
    answer.stop = stop_.Ended();
  } else if (stop_.state().committed) {
    answer.stop = stop_.state();
  }
  if (m.standing == Standing::kJoining) {
    answer.donors = donors_.Of(m.id);
    return;
  }
  answer.outside = m.standing == Standing::kEvicted;
  answer.wait =
      std::max(absl::ZeroDuration(), roster_.live(m.id).may_return - now);
}

absl::StatusOr<uint64_t> Fleet::RequestStop(absl::Time now) {
  if (!views_.assembled()) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "the run has not begun: %d of %d peers have registered; end the peers "
        "themselves",
        registered(), options_.expected));
  }
  stop_.Propose(now);
  return stop_.state().round;
}

// Leases also run out while no peer calls.
void Fleet::Tick(absl::Time now) {
  roster_.Tick(now);
  Decide(now);
  evictions_.EndQuarantines(now);
}

FleetSnapshot Fleet::Snapshot(absl::Time now) const {
  FleetSnapshot snapshot;
  // Members that have a sketch of a round, latest round first.
  std::map<uint64_t, size_t, std::greater<>> rounds;
  size_t members = 0;
  for (const MemberRecord& m : roster_.members()) {
    const LiveMember& live = roster_.live(m.id);
    snapshot.peers.push_back(
        {.id = m.id,
         .address = m.address,
         .device = m.device,
         .report = live.report,
         .since_heartbeat = now - std::max(live.last_heard, roster_.started()),
         .finished = m.finished,
         .standing = m.standing,
         .suspected_by = suspicion_.Suspecters(m.id, now),
         .removals = m.removals});
    if (!IsMemberOrLeaving(m)) continue;
    ++members;
    for (const auto& [round, sketch] : live.sketches) ++rounds[round];
  }
  // A distance is of one round: members report at different times, so the
  // newest round that all of them have sketched is looked for.
  for (const auto& [round, sketched] : rounds) {
    if (sketched < members) continue;
    std::vector<std::vector<double>> sketches;
    for (const MemberRecord& m : roster_.members()) {
      if (!IsMemberOrLeaving(m)) continue;
      for (const auto& [of, sketch] : roster_.live(m.id).sketches) {
        if (of == round) sketches.push_back(sketch);
      }
    }
    snapshot.consensus = ConsensusOf(round, sketches, snapshot.peers);
    break;
  }
  return snapshot;
}

bool Fleet::Has(PeerId id) const {
  const MemberRecord* member = roster_.Find(id);
  return member != nullptr && InTheView(*member);
}

std::string Fleet::WhyEvicted(PeerId id) const {
  return roster_.Find(id) == nullptr ? "" : roster_.live(id).why_evicted;
}

}  // namespace gossamer
