#include "topology/fleet/control_messages.h"

#include <bit>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "topology/fleet/losses_message.h"
#include "topology/fleet/view_message.h"

namespace gossamer {
namespace {

std::vector<double> FromBytes(const std::string& bytes) {
  static_assert(std::endian::native == std::endian::little);
  std::vector<double> values(bytes.size() / sizeof(double));
  bytes.copy(reinterpret_cast<char*>(values.data()),
             values.size() * sizeof(double));
  return values;
}

PeerReport ReportOf(const wire::HeartbeatRequest& m) {
  PeerReport report;
  report.round = m.round();
  report.steps = m.steps();
  report.rounds_per_second = m.rounds_per_second();
  report.timing = {.busy_seconds = m.busy_seconds(),
                   .exchange_seconds = m.exchange_seconds(),
                   .rounds = m.tempo_rounds()};
  report.losses = LossesOf(m);
  if (m.has_score()) report.score = m.score();
  report.bytes_sent = m.bytes_sent();
  report.sketch = FromBytes(m.sketch());
  report.sketch_round = m.sketch_round();
  report.spoilt = m.spoilt();
  report.events.CopyFrom(m.events());
  return report;
}

std::string_view NameOf(Standing standing) {
  switch (standing) {
    case Standing::kMember:
      return "member";
    case Standing::kJoining:
      return "joining";
    case Standing::kLeaving:
      return "leaving";
    case Standing::kEvicted:
      // A word of `gossamer status --json`, which people's scripts read: it
      // stays.
      return "removed";
    case Standing::kLeft:
      return "left";
  }
  return "";
}

}  // namespace

Registration RegistrationOf(const wire::RegisterRequest& request) {
  Registration r;
  r.versions = VersionRange::Stated(request.oldest_protocol_version(),
                                    request.protocol_version());
  r.run_id = request.run_id();
  r.peer_id = {request.peer_id()};
  r.incarnation_id = request.incarnation_id();
  r.address = request.address();
  r.device = request.device();
  r.layout_fingerprint = request.layout_fingerprint();
  r.layout = request.layout();
  r.initial_parameters_hash = request.initial_parameters_hash();
  r.configuration_hash = request.configuration_hash();
  r.configuration = request.configuration();
  r.checkpoint_rounds.assign(request.checkpoint_rounds().begin(),
                             request.checkpoint_rounds().end());
  r.has_parameters = request.has_parameters();
  r.trains = request.trains();
  // A view that cannot be is as no view: the peer then registers as one that
  // the service does not know, and ViewRecovery says what is missing.
  if (r.trains && request.has_view()) {
    absl::StatusOr<View> view = FromMessage(request.view());
    if (view.ok()) r.view = *std::move(view);
  }
  return r;
}

absl::StatusOr<FleetHeartbeat> HeartbeatOf(
    const wire::HeartbeatRequest& request) {
  // The fleet checks how many numbers a sketch has; here they only have to be
  // whole.
  if (request.sketch().size() % sizeof(double) != 0) {
    return absl::InvalidArgumentError(
        "heartbeat: the sketch is not a list of float64");
  }
  if (request.loss_player_size() != request.loss_size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("heartbeat: ", request.loss_size(), " losses of ",
                     request.loss_player_size(), " players"));
  }
  FleetHeartbeat heartbeat;
  heartbeat.run_id = request.run_id();
  heartbeat.peer_id = {request.peer_id()};
  heartbeat.incarnation_id = request.incarnation_id();
  heartbeat.view_generation = request.view_generation();
  heartbeat.view_epoch = request.view_epoch();
  heartbeat.report = ReportOf(request);
  heartbeat.registered_generation = request.registered_generation();
  heartbeat.round_begun = request.round_begun();
  heartbeat.acknowledged_stop = request.acknowledged_stop();
  heartbeat.request_stop = request.request_stop();
  heartbeat.finished = request.finished();
  for (const auto id : request.suspected()) heartbeat.suspected.push_back({id});
  heartbeat.leaving = request.leaving();
  heartbeat.ready = request.ready();
  return heartbeat;
}

void Fill(const FleetAnswer& answer, wire::HeartbeatResponse& response) {
  response.set_fleet_round(answer.fleet_round);
  response.set_second_round(answer.second_round);
  response.set_fleet_busy_seconds(answer.fleet_busy);
  response.set_stop_round(answer.stop.round);
  response.set_stop_committed(answer.stop.committed);
  response.set_outside(answer.outside);
  response.set_first_named(answer.first_named);
  response.set_wait_seconds(absl::ToDoubleSeconds(answer.wait));
  for (const PeerId id : answer.heard) response.add_heard(id.value);
  for (const Member& m : answer.donors) {
    response.add_donor_id(m.id.value);
    response.add_donor_address(m.address);
  }
  for (const Member& m : answer.joiners) {
    response.add_joiner_id(m.id.value);
    response.add_joiner_address(m.address);
  }
}

void Fill(const FleetPeer& peer, wire::PeerStatus& status) {
  status.set_peer_id(peer.id.value);
  status.set_address(peer.address);
  status.set_device(peer.device);
  status.set_round(peer.report.round);
  status.set_steps(peer.report.steps);
  status.set_rounds_per_second(peer.report.rounds_per_second);
  AddLosses(peer.report.losses, status);
  if (peer.report.score) status.set_score(*peer.report.score);
  status.set_bytes_sent(peer.report.bytes_sent);
  status.set_seconds_since_heartbeat(
      absl::ToDoubleSeconds(peer.since_heartbeat));
  status.set_finished(peer.finished);
  status.set_standing(std::string(NameOf(peer.standing)));
  status.set_suspected_by(static_cast<uint32_t>(peer.suspected_by));
  status.set_removals(static_cast<uint32_t>(peer.removals));
  status.set_spoilt(peer.report.spoilt);
  peer.report.events.CopyTo(*status.mutable_events());
}

}  // namespace gossamer
