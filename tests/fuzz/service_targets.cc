// Records that the topology service keeps over a restart, and its answers to
// people.

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "proto/topology.pb.h"
#include "runtime/base/protobuf_errors.h"
#include "runtime/cli/fleet_client.h"
#include "runtime/cli/survey_network.h"
#include "runtime/lab/scenario.h"
#include "runtime/telemetry/progress.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/message.h"
#include "topology/fleet/control_plane.h"
#include "topology/fleet/record_message.h"

namespace gossamer::fuzz {
namespace {

// Schedules of large views take long, which is allowed, so views are small.
constexpr size_t kMembers = 16;

bool Same(const FleetRecord& a, const FleetRecord& b) {
  return a.members == b.members && a.view.members == b.view.members &&
         a.view.epoch == b.view.epoch && a.generation == b.generation;
}

// A service that starts with a record; its members call it, and so does an
// unknown peer.
void GoOn(const FleetRecord& record) {
  if (record.members.size() > kMembers) return;
  FleetOptions options;
  options.run_id = "run";
  if (record.view.epoch != 0) {
    options.run_id = record.view.run_id;
    options.expected = static_cast<int>(record.view.members.size());
    options.schedule = record.view.schedule;
    options.seed = record.view.seed;
  }
  absl::Time now = absl::FromUnixSeconds(1'000);
  auto plane = ControlPlane::Create(
      options, record, [](const FleetRecord&) { return absl::OkStatus(); },
      [&now] { return now; }, [](const std::string&) {});
  if (!plane.ok()) return;
  for (const MemberRecord& m : record.members) {
    wire::HeartbeatRequest request;
    request.set_run_id(options.run_id);
    request.set_peer_id(m.id.value);
    request.set_incarnation_id(m.incarnation_id);
    request.set_round(m.resume_round);
    request.add_suspected(record.members.front().id.value);
    wire::HeartbeatResponse response;
    (void)(*plane)->Heartbeat(request, response);
    now += absl::Seconds(3);
    (void)(*plane)->Tick();
  }
  wire::StopResponse stop;
  (void)(*plane)->Stop({}, stop);
  wire::FleetStatus status;
  (void)(*plane)->GetStatus({}, status);
}

// The record that an instance finds in etcd.
void StoredFleetBytes(Bytes input) {
  SilenceProtobuf();
  const auto record = RecordFromBytes(AbslText(input));
  if (!record.ok()) return;
  const auto again = RecordFromBytes(ToBytes(*record));
  Require(again.ok() && Same(*again, *record),
          "a record says the same once more");
  GoOn(*record);
}

// The status as gossamer status and train show it.
void StatusAnswer(Bytes input) {
  constexpr int kWidth = 100;
  wire::FleetStatus status;
  if (!Parse(input, status)) return;
  for (const uint64_t rounds : {uint64_t{100}, UINT64_MAX}) {
    const FleetProgress progress = ProgressOf(status, rounds, "run");
    for (const std::string& line : FormatTable(progress, kWidth)) {
      Require(line.size() <= kWidth, "a line does not wrap");
    }
    (void)FormatLine(progress);
  }
}

// The scenario that gossamer measure makes of an answer.
void SurveyAnswer(Bytes input) {
  wire::LinkSurveyStatus status;
  if (!Parse(input, status)) return;
  const auto network = NetworkOf(status);
  if (!network.ok()) return;
  const auto again =
      ParseScenario(ScenarioFileOf(*network), "fuzz", std::nullopt);
  Require(again.ok() && again->hosts.size() == network->names.size(),
          "what was measured can be planned with");
}

}  // namespace

std::span<const Target> ServiceTargets() {
  static constexpr Target kTargets[] = {
      {"stored-fleet", StoredFleetBytes},
      {"fleet-status", StatusAnswer, kProtobufReserve},
      {"survey-answer", SurveyAnswer}};
  return kTargets;
}

}  // namespace gossamer::fuzz
