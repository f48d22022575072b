#include "topology/fleet/control_plane.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "algorithms/base/plain_text.h"
#include "algorithms/base/seeded_bug.h"
#include "algorithms/base/status_macros.h"
#include "topology/fleet/control_messages.h"
#include "topology/fleet/protocol.h"
#include "topology/fleet/view_mac.h"

namespace gossamer {
namespace {

// A measurement, and heartbeats before and after it.
constexpr absl::Duration kSlotLimit = absl::Seconds(40);
// Room for a count or a loss beside its name in a message.
constexpr size_t kCountBytes = 16;
// The losses that are among what every peer has: those of a GAN.  In
// MaxAnswerBytes there is room for them beside the longest address.
constexpr size_t kMaxLossBytes = 64;

size_t LossBytes(const wire::PeerStatus& status) {
  size_t bytes = 0;
  for (const std::string& player : status.loss_player()) {
    bytes += player.size() + kCountBytes;
  }
  return bytes;
}

// Leaves out the last players' losses, of a game whose names are long or many.
void CutLosses(wire::PeerStatus& status) {
  while (LossBytes(status) > kMaxLossBytes) {
    status.mutable_loss_player()->RemoveLast();
    status.mutable_loss()->RemoveLast();
  }
}

}  // namespace

ControlPlane::ControlPlane(std::unique_ptr<Fleet> fleet, SaveRecord save,
                           Clock clock, Log log,
                           std::shared_ptr<ServiceEvents> events, SignView sign)
    : clock_(std::move(clock)),
      log_(std::move(log)),
      save_(std::move(save)),
      fleet_(std::move(fleet)),
      adds_mac_(sign == nullptr),
      survey_(kSlotLimit),
      view_answers_(adds_mac_ ? SignView([this](wire::ViewMessage& view) {
        return AddMac(fleet_->record().mac_key, view);
      })
                              : std::move(sign)),
      saved_(fleet_->record()),
      events_(events ? events : std::make_shared<ServiceEvents>(log_)) {}

absl::StatusOr<std::unique_ptr<ControlPlane>> ControlPlane::Create(
    FleetOptions options, std::optional<FleetRecord> stored, SaveRecord save,
    Clock clock, Log log, std::shared_ptr<ServiceEvents> events,
    SignView sign) {
  const bool resumed = stored && stored->view.epoch != 0;
  GOSSAMER_ASSIGN_OR_RETURN(
      std::unique_ptr<Fleet> fleet,
      Fleet::Create(std::move(options), std::move(stored), clock()));
  std::unique_ptr<ControlPlane> plane(
      new ControlPlane(std::move(fleet), std::move(save), std::move(clock),
                       std::move(log), std::move(events), std::move(sign)));
  if (resumed) {
    plane->log_(absl::StrFormat(
        "resumed from the stored state: view %d of %d peers",
        plane->saved_.view.epoch, plane->saved_.view.members.size()));
  }
  // The new generation is on the disk before the first answer names it: two
  // incarnations of the service that both answer by one generation would name
  // two views alike.
  GOSSAMER_RETURN_IF_ERROR(plane->Save());
  return plane;
}

ControlPlane::Progress ControlPlane::Tick() {
  const absl::Time now = clock_();
  fleet_->Tick(now);
  survey_.Tick(now);
  ReportNotes();
  // A save that failed is tried again at the next event or tick; nothing that
  // it would have made durable has been answered meanwhile.
  Save().IgnoreError();
  Progress progress{.finished = fleet_->Finished(),
                    .lost = fleet_->Lost(now),
                    .unfinished = 0};
  for (const MemberRecord& m : fleet_->record().members) {
    progress.unfinished += IsMemberOrLeaving(m) && !m.finished;
    progress.some_finished |= IsMemberOrLeaving(m) && m.finished;
  }
  return progress;
}

void ControlPlane::ReportNotes() {
  for (const std::string& note : fleet_->TakeNotes()) log_(note);
}

absl::Status ControlPlane::Save() {
  ReportNotes();
  // Most heartbeats change nothing that is saved, so most need no write.
  if (fleet_->version() == saved_version_ || SeededBug("answer-unsaved")) {
    return absl::OkStatus();
  }
  // Saved first, answered and logged afterwards: a peer acts on an answer at
  // once, and a service that came back without what it had said could
  // contradict it.
  const absl::Status saved = save_(fleet_->record());
  if (!saved.ok()) {
    // Once until a save succeeds again: every heartbeat of the fleet comes by
    // here.
    if (!std::exchange(unsaved_reported_, true)) {
      events_->Report("save_failed", std::string(saved.message()));
    }
    return absl::UnavailableError(saved.message());
  }
  if (std::exchange(unsaved_reported_, false))
    events_->Report("saves_again", "");
  LogChanges(saved_);
  saved_ = fleet_->record();
  saved_version_ = fleet_->version();
  return absl::OkStatus();
}

// Lines are made by comparing the record that was saved before with the present
// one, so that they show what was decided, whichever part decided it.
void ControlPlane::LogChanges(const FleetRecord& before) {
  const FleetRecord& after = fleet_->record();
  // Both lists are in the order of ids.
  auto old = before.members.begin();
  for (const MemberRecord& m : after.members) {
    while (old != before.members.end() && old->id < m.id) ++old;
    const bool known = old != before.members.end() && old->id == m.id;
    if (!known || old->incarnation_id != m.incarnation_id) {
      log_(absl::StrFormat("peer %d %s from %s (%d of %d)", m.id.value,
                           known ? "is back" : "registered",
                           PlainText(m.address), fleet_->registered(),
                           fleet_->options().expected));
    }
    if (m.finished && !(known && old->finished)) {
      const bool left = m.standing == Standing::kLeft;
      log_(absl::StrCat("peer ", m.id.value, " has ",
                        left ? "left" : "finished"));
    }
    if (known && old->standing != m.standing) LogStanding(*old, m);
  }
  if (after.view.epoch != before.view.epoch) {
    log_(absl::StrFormat(
        "view %d: %d peers, %s, from round %d%s", after.view.epoch,
        after.view.members.size(), after.view.schedule.graph,
        after.view.from_round,
        after.members[0].resume_round == after.view.from_round
            ? ", from a checkpoint"
        : after.view.overlap_steps != before.view.overlap_steps
            ? absl::StrCat(", overlap_steps ", after.view.overlap_steps)
            : ""));
  }
  if (after.stop.round != 0 &&
      !(after.stop.round == before.stop.round &&
        after.stop.committed == before.stop.committed)) {
    log_(absl::StrFormat("stop at round %d %s", after.stop.round,
                         after.stop.committed ? "agreed" : "proposed"));
  }
}

void ControlPlane::LogStanding(const MemberRecord& before,
                               const MemberRecord& after) {
  const uint64_t id = after.id.value;
  switch (after.standing) {
    case Standing::kEvicted:
      // The peer was in no view, so no view has lost it.
      if (before.standing == Standing::kJoining) break;
      log_(absl::StrCat("peer ", id, " is removed: ", WhyEvicted(after.id)));
      break;
    case Standing::kLeaving:
      log_(absl::StrFormat("peer %d leaves", id));
      break;
    case Standing::kJoining:
      log_(absl::StrFormat("peer %d is to join", id));
      break;
    case Standing::kMember:
      log_(absl::StrFormat("peer %d joins", id));
      break;
    case Standing::kLeft:
      break;
  }
}

std::string ControlPlane::WhyEvicted(PeerId id) const {
  std::string why = fleet_->WhyEvicted(id);
  if (!why.empty()) return why;
  return absl::StrCat("no heartbeat for ",
                      absl::FormatDuration(fleet_->options().lease),
                      ", and neighbours suspect it");
}

// An empty name asks for whichever run this service has, as a person does.
absl::Status ControlPlane::CheckRun(const std::string& run_id) const {
  if (run_id.empty() || run_id == fleet_->options().run_id) {
    return absl::OkStatus();
  }
  return absl::NotFoundError(
      absl::StrFormat("this service runs \"%s\", not \"%s\"",
                      fleet_->options().run_id, run_id));
}

// A request comes from outside and may come at any rate: its text is made one
// plain line, and the lines are throttled.
absl::Status ControlPlane::Refuse(std::string_view call,
                                  const absl::Status& why) {
  events_->ReportByTime(
      "request_refused", clock_(),
      absl::StrCat(std::string(call), ": ", PlainText(why.message())));
  return why;
}

// A store with a key has made every view of a run that is under way.
bool ControlPlane::IsForeign(const Registration& r,
                             const wire::RegisterRequest& request) const {
  const FleetRecord& record = fleet_->record();
  return r.view && r.view->NewerThan(record.view) && record.assembled &&
         !fleet_->Finished() && !record.mac_key.empty() &&
         !HasMac(record.mac_key, request.view());
}

absl::Status ControlPlane::Register(const wire::RegisterRequest& request,
                                    wire::RegisterResponse& response) {
  Registration r = RegistrationOf(request);
  if (adds_mac_ && IsForeign(r, request)) {
    r.foreign = true;
    events_->ReportByTime(
        "request_refused", clock_(),
        absl::StrFormat("register of peer %d: the view that it trains by is of "
                        "no service with this store, and not taken",
                        r.peer_id.value));
  }
  const absl::StatusOr<PeerId> id = fleet_->Register(r, clock_());
  if (!id.ok()) {
    const std::string what = absl::StrCat("at ", PlainText(r.address), ": ",
                                          PlainText(id.status().message()));
    // A peer that waits asks again by itself; one that is refused needs a
    // person.
    if (absl::IsUnavailable(id.status())) {
      events_->ReportByTime("peer_waits", clock_(), what);
    } else {
      events_->ReportByTime("peer_refused", clock_(), what);
    }
    return id.status();
  }
  GOSSAMER_RETURN_IF_ERROR(Save());
  response.set_peer_id(id->value);
  response.set_registered(static_cast<uint32_t>(fleet_->registered()));
  response.set_expected(static_cast<uint32_t>(fleet_->options().expected));
  response.set_heartbeat_seconds(
      absl::ToDoubleSeconds(fleet_->options().heartbeat));
  response.set_service_generation(fleet_->record().generation);
  response.set_protocol_version(*kControlVersions.Agree(r.versions));
  return absl::OkStatus();
}

absl::Status ControlPlane::Heartbeat(const wire::HeartbeatRequest& request,
                                     wire::HeartbeatResponse& response) {
  const std::string call =
      absl::StrCat("heartbeat of peer ", request.peer_id());
  const absl::StatusOr<FleetHeartbeat> heartbeat = HeartbeatOf(request);
  if (!heartbeat.ok()) return Refuse(call, heartbeat.status());
  const absl::StatusOr<FleetAnswer> answer =
      fleet_->Heartbeat(*heartbeat, clock_());
  if (!answer.ok()) return Refuse(call, answer.status());
  GOSSAMER_RETURN_IF_ERROR(Save());
  Fill(*answer, response);
  if (answer->view != nullptr) {
    GOSSAMER_RETURN_IF_ERROR(
        view_answers_.Fill(answer->view, request, clock_(), response));
  }
  response.set_registered(static_cast<uint32_t>(answer->registered));
  response.set_expected(static_cast<uint32_t>(fleet_->options().expected));
  Survey(request, response);
  return absl::OkStatus();
}

void ControlPlane::Survey(const wire::HeartbeatRequest& request,
                          wire::HeartbeatResponse& response) {
  const PeerId peer{request.peer_id()};
  if (request.survey_number() != 0) {
    std::optional<LinkMeasurement> link;
    if (request.survey_measured()) {
      link = {.rtt_seconds = request.survey_rtt_seconds(),
              .bytes_per_second = request.survey_bytes_per_second()};
    }
    survey_.Report(peer, request.survey_number(), link, clock_());
  }
  const std::optional<LinkSurvey::Task> task = survey_.TaskOf(peer);
  if (!task) return;
  // The address is the newest one of the other member.  If that one has gone
  // since, there is no task, and the slot ends by its limit.
  const MemberRecord* m = FindMember(fleet_->record().members, task->other);
  if (m == nullptr) return;
  response.set_survey_number(task->number);
  response.set_survey_peer(m->id.value);
  response.set_survey_address(m->address);
}

absl::Status ControlPlane::CheckSurvey(
    const wire::MeasureLinksRequest& request) const {
  GOSSAMER_RETURN_IF_ERROR(CheckRun(request.run_id()));
  const View& view = fleet_->record().view;
  if (view.epoch == 0 || fleet_->Finished()) {
    return absl::FailedPreconditionError(
        "nobody trains: ways are measured between the members of a running "
        "fleet");
  }
  if (view.members.size() <= kMaxSurveyed) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "the fleet has ", view.members.size(),
      " members; ways are measured between at most ", kMaxSurveyed));
}

absl::Status ControlPlane::MeasureLinks(
    const wire::MeasureLinksRequest& request,
    wire::LinkSurveyStatus& response) {
  const absl::Status can = CheckSurvey(request);
  if (!can.ok()) return Refuse("survey", can);
  const View& view = fleet_->record().view;
  // A second request joins the survey under way: two at once would measure each
  // other's traffic.
  if (request.start() && !survey_.running()) {
    std::vector<PeerId> members;
    for (const Member& m : view.members) members.push_back(m.id);
    survey_.Start(std::move(members), fleet_->record().generation, clock_());
    log_(absl::StrCat("measures the ways between ", view.members.size(),
                      " members"));
  }
  response.set_turn(static_cast<uint32_t>(survey_.slot()));
  response.set_turns(static_cast<uint32_t>(survey_.slots()));
  for (const PeerId from : survey_.members()) {
    response.add_member_id(from.value);
    for (const PeerId to : survey_.members()) {
      const auto link = survey_.link(from, to);
      // A full matrix, row by row; -1 is a link that was not measured.
      response.add_rtt_seconds(link ? link->rtt_seconds : -1);
      response.add_bytes_per_second(link ? link->bytes_per_second : -1);
    }
  }
  for (const FleetPeer& peer : fleet_->Snapshot(clock_()).peers) {
    const double busy = peer.report.timing.busy_seconds;
    if (std::isfinite(busy)) {
      response.set_busy_seconds(std::max(response.busy_seconds(), busy));
    }
  }
  return absl::OkStatus();
}

absl::Status ControlPlane::GetStatus(const wire::GetStatusRequest& request,
                                     wire::FleetStatus& response) {
  const absl::Status run = CheckRun(request.run_id());
  if (!run.ok()) return Refuse("status", run);
  const FleetSnapshot snapshot = fleet_->Snapshot(clock_());
  response.set_run_id(fleet_->options().run_id);
  response.set_expected(static_cast<uint32_t>(fleet_->options().expected));
  response.set_view_epoch(fleet_->record().view.epoch);
  // The answer must fit though all are in trouble: the first peers then say
  // what their trouble is.  A quarter of the answer is for events, devices
  // and losses of many players, and the rest for what every peer has.
  auto room = static_cast<size_t>(
      MaxAnswerBytes(static_cast<int>(snapshot.peers.size())) / 4);
  if (const auto& consensus = snapshot.consensus) {
    response.set_consensus_distance(consensus->distance);
    response.set_consensus_round(consensus->round);
    for (const auto& [player, distance] : consensus->players) {
      room -= std::min(room, player.size() + kCountBytes);
      response.add_consensus_player(player);
      response.add_player_distance(distance);
    }
  }
  for (const FleetPeer& p : snapshot.peers) {
    wire::PeerStatus& status = *response.add_peers();
    Fill(p, status);
    size_t bytes = status.device().size();
    for (const auto& [name, count] : status.events()) {
      bytes += name.size() + kCountBytes;
    }
    if (LossBytes(status) > kMaxLossBytes) bytes += LossBytes(status);
    if (bytes > room) {
      status.clear_events();
      status.clear_device();
      CutLosses(status);
    }
    room -= std::min(room, bytes);
  }
  response.set_stop_round(fleet_->record().stop.round);
  response.set_stop_committed(fleet_->record().stop.committed);
  const FleetCounts& counts = fleet_->record().counts;
  response.set_suspicions(counts.suspicions);
  response.set_removals(counts.removals);
  response.set_returns(counts.returns);
  response.set_joins(counts.joins);
  response.set_leaves(counts.leaves);
  events_->CopyTo(*response.mutable_service_events());
  return absl::OkStatus();
}

absl::Status ControlPlane::Stop(const wire::StopRequest& request,
                                wire::StopResponse& response) {
  const absl::Status run = CheckRun(request.run_id());
  if (!run.ok()) return Refuse("stop", run);
  const absl::StatusOr<uint64_t> round = fleet_->RequestStop(clock_());
  if (!round.ok()) return Refuse("stop", round.status());
  GOSSAMER_RETURN_IF_ERROR(Save());
  response.set_stop_round(*round);
  return absl::OkStatus();
}

}  // namespace gossamer
