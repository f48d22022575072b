#include "topology/fleet/fleet.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "algorithms/base/seeded_bug.h"
#include "algorithms/base/status_macros.h"
#include "topology/fleet/protocol.h"
#include "topology/fleet/sketch.h"
#include "topology/graph.h"

namespace gossamer {
namespace {

constexpr size_t kSketchesKept = 8;

}  // namespace

bool SameFleet(const View& view, bool assembled, const FleetOptions& o) {
  // Members have come and gone since the first view.
  const bool changed = o.elastic || !assembled;
  return view.run_id == o.run_id && view.seed == o.seed &&
         (changed || view.members.size() == static_cast<size_t>(o.expected)) &&
         view.schedule == o.schedule;
}

namespace {

absl::Status CheckReport(const FleetHeartbeat& heartbeat) {
  const PeerReport& report = heartbeat.report;
  for (const uint64_t round :
       {report.round, heartbeat.round_begun, heartbeat.acknowledged_stop}) {
    if (round <= kMaxRound) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("heartbeat: round ", round, " is out of range"));
  }
  if (!report.sketch.empty() &&
      report.sketch.size() != static_cast<size_t>(kSketchBuckets)) {
    return absl::InvalidArgumentError(
        absl::StrCat("heartbeat: a sketch has ", kSketchBuckets,
                     " numbers, not ", report.sketch.size()));
  }
  if (heartbeat.suspected.size() > kMaxSuspected) {
    return absl::InvalidArgumentError(
        absl::StrCat("heartbeat: suspects ", heartbeat.suspected.size(),
                     " peers; at most ", kMaxSuspected, " fit"));
  }
  return absl::OkStatus();
}

// Larger than that of the life before, though the disk may be one of earlier
// and forget lives between: two of them must not name two views alike.
uint64_t NextGeneration(uint64_t stored, absl::Time now) {
  const int64_t clock = absl::ToUnixMillis(now);
  return std::max(stored + 1,
                  static_cast<uint64_t>(std::max<int64_t>(clock, 0)));
}

}  // namespace

Fleet::Fleet(FleetOptions options, FleetRecord record, absl::Time now)
    : options_(std::move(options)),
      record_(std::move(record)),
      started_(now),
      leases_from_(now) {
  // When they registered is not stored; who has not been let in yet still
  // waits for a word of somebody who has.
  for (const MemberRecord& m : record_.members) live_[m.id].registered = now;
}

absl::StatusOr<Fleet> Fleet::Create(FleetOptions options,
                                    std::optional<FleetRecord> stored,
                                    absl::Time now) {
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
  Fleet fleet(std::move(options), std::move(record), now);
  const View& view = fleet.record_.view;
  const uint64_t configuration = fleet.options_.configuration_hash;
  if (view.epoch != 0 && !fleet.Finished() &&
      !(SameFleet(view, fleet.record_.assembled, fleet.options_) &&
        (configuration == 0 ||
         configuration == fleet.record_.configuration_hash))) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "what is stored is run \"%s\" of %d peers, graph %s, schedule %s, "
        "seed %d, configuration %016x, which has not finished; start with the "
        "same options to go on with it, or with another --state or --run",
        view.run_id, view.members.size(), view.schedule.graph,
        view.schedule.schedule, view.seed, fleet.record_.configuration_hash));
  }
  return fleet;
}

absl::StatusOr<PeerId> Fleet::Register(const Registration& r, absl::Time now) {
  GOSSAMER_RETURN_IF_ERROR(CheckRegistration(r));
  GOSSAMER_RETURN_IF_ERROR(Recall(r, now));
  const bool known_life = std::any_of(
      record_.members.begin(), record_.members.end(),
      [&](const MemberRecord& m) { return m.boot_id == r.boot_id; });
  if (Finished() && !known_life && !r.has_parameters) {
    // The run is over and somebody starts again: assemble a new fleet.
    ForgetRun();
    record_.assembled = false;
  }
  GOSSAMER_ASSIGN_OR_RETURN(const PeerId id, AssignId(r));
  const MemberRecord* known = Find(id);
  MemberRecord member;
  if (known != nullptr) member = *known;
  member.id = id;
  if (member.boot_id != r.boot_id) {
    // Of its life no more is known than that it trains: this is it.
    const bool recalled =
        known != nullptr && member.boot_id == kUnknownLife && r.trains;
    const bool died_leaving =
        member.standing == Standing::kLeaving && !recalled;
    int short_lives = 0;
    if (known != nullptr && !recalled && !r.trains) {
      short_lives = ShortLives(*known);
      KeepOut(*known, now);
      member.standing = known->standing;
      member.removals = known->removals;
    }
    if (!recalled) GOSSAMER_RETURN_IF_ERROR(Admit(r, member, now));
    if (record_.members.empty()) {
      record_.configuration_hash = r.configuration_hash;
      record_.layout_fingerprint = r.layout_fingerprint;
    }
    // From another address it is let in by a view that has it.
    member.in_view = recalled && member.address == r.address;
    member.boot_id = r.boot_id;
    member.address = r.address;
    member.checkpoint_rounds = r.checkpoint_rounds;
    member.finished = false;
    Put(std::move(member));
    live_[id] = {};
    live_[id].registered = now;
    live_[id].trains = r.trains;
    live_[id].has_parameters = r.has_parameters;
    live_[id].short_lives = short_lives;
    // The others wait for it until the round of its departure.
    if (died_leaving && record_.assembled) {
      record_.view = NextView(FutureRound());
    }
    ++version_;
  }
  live_[id].last_heard = now;
  live_[id].registered_here = true;
  if (r.trains) live_[id].well_since = std::min(live_[id].well_since, now);
  Settle(now);
  return id;
}

void Fleet::ForgetRun() {
  record_.members.clear();
  record_.stop = {};
  record_.counts = {};
  live_.clear();
  suspicions_told_.clear();
}

absl::StatusOr<FleetAnswer> Fleet::Heartbeat(const FleetHeartbeat& heartbeat,
                                             absl::Time now) {
  if (heartbeat.run_id != options_.run_id) {
    return absl::FailedPreconditionError(
        absl::StrFormat("this service runs \"%s\", not \"%s\"", options_.run_id,
                        heartbeat.run_id));
  }
  MemberRecord* member = Find(heartbeat.peer_id);
  if (member == nullptr) {
    return absl::NotFoundError(absl::StrCat("peer ", heartbeat.peer_id.value,
                                            " is not registered here"));
  }
  if (member->boot_id != heartbeat.boot_id) {
    // Which of the two registered last is not known to a service that was
    // started since from a disk that may be older: whoever registers again is.
    // By a clock that is behind the generation of its service may be above this
    // one's, or the same.
    if (heartbeat.registered_generation != record_.generation ||
        !live_.at(member->id).registered_here) {
      return absl::NotFoundError(
          absl::StrCat("this life of peer ", heartbeat.peer_id.value,
                       " is not registered here any more"));
    }
    return absl::AbortedError(absl::StrCat(
        "another process has registered as peer ", heartbeat.peer_id.value,
        " since; two processes must not share an id"));
  }
  if (heartbeat.view_epoch != 0 &&
      (!record_.assembled || HasOneToHandBack(heartbeat))) {
    return absl::NotFoundError(
        absl::StrCat("of the view that peer ", heartbeat.peer_id.value,
                     " trains by nothing is known here"));
  }
  GOSSAMER_RETURN_IF_ERROR(CheckReport(heartbeat));
  // Before the last word of one that leaves makes it one that has left.
  const bool steers =
      OfTheFleet(*member) && (member->in_view || heartbeat.view_epoch != 0);
  Learn(heartbeat, *member, now);
  ReplaceForgotten(heartbeat, *member, now);
  // Who trains may stand at a stop that an older disk has forgotten, and that
  // others have ended at.
  if (steers) {
    HearOfStop(heartbeat.acknowledged_stop);
    if (heartbeat.request_stop) {
      GOSSAMER_RETURN_IF_ERROR(RequestStop(now).status());
    }
  }
  Settle(now);
  GOSSAMER_RETURN_IF_ERROR(CheckWhole(*Find(heartbeat.peer_id)));
  RemoveSilent(now);
  LetLeave(now);
  AdaptOverlap();
  AdvanceStop(now);
  NoteGone(now);
  FleetAnswer answer;
  answer.fleet_round = FleetRound(now);
  const std::vector<uint64_t> rounds = Rounds();
  if (rounds.size() > 1) answer.second_round = rounds[1];
  for (const MemberRecord& m : record_.members) {
    const double busy = live_.at(m.id).report.tempo.busy_seconds;
    if (OfTheFleet(m) && std::isfinite(busy)) {
      answer.fleet_busy = std::max(answer.fleet_busy, busy);
    }
  }
  member = Find(heartbeat.peer_id);
  if (!OfTheFleet(*member)) {
    AnswerOutside(*member, now, answer);
    return answer;
  }
  if (EndedWithout(*member, now)) answer.stop = Ended();
  if (member->needs_parameters) answer.donors = DonorsOf(*member, now);
  if (TrainsHere(*member)) answer.stop = record_.stop;
  if (!member->in_view) return answer;
  answer.joiners = JoinersOf(member->id, now);
  if (record_.view.NewerThan(KnownBy(heartbeat))) {
    answer.view = record_.view;
    answer.view->resume_round = member->resume_round;
  }
  return answer;
}

void Fleet::Learn(const FleetHeartbeat& heartbeat, MemberRecord& member,
                  absl::Time now) {
  Live& live = live_[member.id];
  live.round_begun = heartbeat.round_begun;
  NoteWell(member, now);
  live.last_heard = now;
  live.acknowledged_stop = heartbeat.acknowledged_stop;
  live.report = heartbeat.report;
  live.ready = heartbeat.ready;
  live.trains = heartbeat.view_epoch != 0;
  if (!heartbeat.leaving) {
    live.leaving_since = absl::InfiniteFuture();
  } else {
    live.leaving_since = std::min(live.leaving_since, now);
  }
  LearnSuspected(heartbeat, now);
  if (heartbeat.finished && !member.finished) {
    member.finished = true;
    live.finished = now;
    if (member.standing == Standing::kLeaving) {
      member.standing = Standing::kLeft;
      ++record_.counts.leaves;
      // Who has not got to the round of its departure would wait for it.  The
      // same members mix from that round on, so nobody waits for another one;
      // an older disk may not know who they are.
      const std::vector<uint64_t> rounds = Rounds();
      if (!rounds.empty() &&
          rounds.back() < record_.view.DepartureOf(member.id).value_or(0)) {
        const bool own = record_.view.generation == record_.generation;
        record_.view = NextView(own ? record_.view.from_round : FutureRound());
      }
    }
    ++version_;
  }
  std::vector<double> sketch = std::move(live.report.sketch);
  live.report.sketch.clear();
  const bool finite = std::all_of(sketch.begin(), sketch.end(),
                                  [](double s) { return std::isfinite(s); });
  const uint64_t round = heartbeat.report.sketch_round;
  if (sketch.empty() || !finite ||
      (!live.sketches.empty() && live.sketches.back().first >= round)) {
    return;
  }
  live.sketches.emplace_back(round, std::move(sketch));
  if (live.sketches.size() > kSketchesKept) live.sketches.pop_front();
}

void Fleet::LearnSuspected(const FleetHeartbeat& heartbeat, absl::Time now) {
  Live& live = live_[heartbeat.peer_id];
  std::set<PeerId> suspected;
  for (const PeerId id : heartbeat.suspected) {
    if (Find(id) != nullptr) suspected.insert(id);
  }
  std::vector<PeerId> fresh;
  for (const PeerId id : suspected) {
    if (!live.suspected.contains(id) && Suspecters(id, now) == 0) {
      fresh.push_back(id);
    }
  }
  live.suspected = std::move(suspected);
  if (fresh.empty()) return;
  record_.counts.suspicions += fresh.size();
  // Whoever likes may suspect others, and not, as often as it may call.
  Throttle& told = suspicions_told_[heartbeat.peer_id];
  if (told.Due(now) > 0) {
    const uint64_t times = told.seen();
    Note(absl::StrFormat(
        "%s %s not answer peer %d%s", Named(fresh),
        fresh.size() == 1 ? "does" : "do", heartbeat.peer_id.value,
        times == 1 ? "" : absl::StrCat(" (", times, " times so far)")));
  }
}

FleetSnapshot Fleet::Snapshot(absl::Time now) const {
  FleetSnapshot snapshot;
  // How many peers have a sketch of a round, latest round first.
  std::map<uint64_t, std::vector<std::vector<double>>, std::greater<>> rounds;
  size_t members = 0;
  for (const MemberRecord& m : record_.members) {
    const Live& live = live_.at(m.id);
    snapshot.peers.push_back(
        {.id = m.id,
         .address = m.address,
         .report = live.report,
         .since_heartbeat = now - std::max(live.last_heard, started_),
         .finished = m.finished,
         .standing = m.standing,
         .suspected_by = Suspecters(m.id, now),
         .removals = m.removals});
    if (!OfTheFleet(m)) continue;
    ++members;
    for (const auto& [round, sketch] : live.sketches) {
      rounds[round].push_back(sketch);
    }
  }
  for (const auto& [round, sketches] : rounds) {
    if (sketches.size() < members) continue;
    snapshot.consensus_distance = ConsensusDistance(sketches);
    snapshot.consensus_round = round;
    break;
  }
  return snapshot;
}

bool Fleet::Finished() const {
  return record_.assembled &&
         std::all_of(record_.members.begin(), record_.members.end(),
                     [this](const MemberRecord& m) {
                       return m.finished || !OfTheFleet(m);
                     });
}

std::string Fleet::WhyRemoved(PeerId id) const {
  const auto live = live_.find(id);
  return live == live_.end() ? "" : live->second.why_removed;
}

void Fleet::Note(const std::string& line) {
  constexpr size_t kMaxNotes = 1000;
  if (notes_.size() < kMaxNotes) notes_.push_back(line);
}

bool Fleet::TrainsHere(const MemberRecord& m) const {
  return OfTheFleet(m) && (m.in_view || live_.at(m.id).trains);
}

MemberRecord* Fleet::Find(PeerId id) {
  for (MemberRecord& m : record_.members) {
    if (m.id == id) return &m;
  }
  return nullptr;
}

}  // namespace gossamer
