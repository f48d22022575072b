// What passes between peers and the topology service, what the service keeps,
// and certificates.

#include <memory>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "google/protobuf/stubs/logging.h"
#include "proto/topology.pb.h"
#include "runtime/identity/authority.h"
#include "runtime/identity/certificate.h"
#include "runtime/identity/identity.h"
#include "runtime/membership/protocol.h"
#include "runtime/membership/view_message.h"
#include "tests/fuzz/fuzz.h"
#include "topology/service/control_plane.h"
#include "topology/service/record_message.h"

namespace gossamer::fuzz {
namespace {

// Large views take long to schedule, as they may.
constexpr size_t kMembers = 16;
constexpr uint64_t kRounds = 4;

template <typename Message>
bool Parse(Bytes bytes, Message& message) {
  const google::protobuf::LogSilencer silent;
  return bytes.size() <= static_cast<size_t>(kMaxRequestBytes) &&
         message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

// Calls of a service of two peers, each a kind, two bytes of length and the
// request; between them the clock goes on.
void Calls(Bytes input) {
  Input in(input);
  FleetOptions options;
  options.run_id = "run";
  options.expected = 2;
  absl::Time now = absl::FromUnixSeconds(1'000);
  auto plane = ControlPlane::Create(
      options, std::nullopt,
      [](const FleetRecord&) { return absl::OkStatus(); },
      [&now] { return now; }, [](const std::string&) {});
  Require(plane.ok(), "a service of two peers starts");
  while (!in.empty()) {
    const uint8_t kind = in.Byte();
    const Bytes bytes = in.TakePiece();
    now += absl::Milliseconds(kind);
    if (kind % 8 < 3) {
      wire::RegisterRequest request;
      wire::RegisterResponse response;
      if (!Parse(bytes, request)) continue;
      // Fuzzed bytes alone would hardly hit these.
      if (kind % 2 == 0) {
        request.set_protocol_version(kControlProtocolVersion);
        request.set_run_id("run");
      }
      (void)(*plane)->Register(request, response);
    } else if (kind % 8 < 6) {
      wire::HeartbeatRequest request;
      wire::HeartbeatResponse response;
      if (!Parse(bytes, request)) continue;
      if (kind % 2 == 0) request.set_run_id("run");
      (void)(*plane)->Heartbeat(request, response);
    } else if (kind % 8 == 6) {
      wire::FleetStatus response;
      (void)(*plane)->GetStatus({}, response);
    } else {
      wire::StopResponse response;
      (void)(*plane)->Stop({}, response);
    }
    (void)(*plane)->Tick();
  }
}

void ViewBytes(Bytes input) {
  wire::ViewMessage message;
  if (!Parse(input, message)) return;
  const auto view = FromMessage(message);
  if (!view.ok()) return;
  const auto again = FromMessage(ToMessage(*view));
  Require(again.ok() && again->epoch == view->epoch &&
              again->members == view->members,
          "a view says the same once more");
  if (view->members.size() > kMembers) return;
  const int size = static_cast<int>(view->members.size());
  const auto schedule = view->MakeSchedule();
  if (!schedule.ok()) return;
  for (uint64_t round = 1; round <= kRounds; ++round) {
    for (int rank = 0; rank < size; ++rank) {
      (void)(*schedule)->Row(rank, view->from_round + round);
    }
  }
}

// What a replica finds in etcd, and what it makes of it: peers call as if they
// had been there, and nobody.
void StoredFleetBytes(Bytes input) {
  const google::protobuf::LogSilencer silent;
  const auto record = RecordFromBytes(AbslText(input));
  if (!record.ok()) return;
  const auto again = RecordFromBytes(ToBytes(*record));
  Require(again.ok() && again->members == record->members &&
              again->view.members == record->view.members &&
              again->generation == record->generation,
          "a record says the same once more");
  if (record->members.size() > kMembers) return;
  FleetOptions options;
  options.run_id = "run";
  if (record->view.epoch != 0) {
    options.run_id = record->view.run_id;
    options.expected = static_cast<int>(record->view.members.size());
    options.schedule = record->view.schedule;
    options.seed = record->view.seed;
  }
  absl::Time now = absl::FromUnixSeconds(1'000);
  auto plane = ControlPlane::Create(
      options, *record, [](const FleetRecord&) { return absl::OkStatus(); },
      [&now] { return now; }, [](const std::string&) {});
  if (!plane.ok()) return;
  for (const MemberRecord& m : record->members) {
    wire::HeartbeatRequest request;
    request.set_run_id(options.run_id);
    request.set_peer_id(m.id.value);
    request.set_boot_id(m.boot_id);
    request.set_round(m.resume_round);
    request.add_suspected(record->members.front().id.value);
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

void CertificateText(Bytes input) {
  static const KeyPair* const authority = new KeyPair(
      MakeAuthority("run", absl::FromUnixSeconds(0), absl::Hours(1)).value());
  static const Trust* const trust =
      new Trust(Trust::Create(authority->certificate, "").value());
  Require(!trust->Check(AbslText(input), absl::FromUnixSeconds(60)).ok(),
          "nobody has its key");
  const auto read = ReadCertificate(AbslText(input));
  if (read.ok()) {
    const auto again = ParseIdentity(ToUri(read->identity));
    Require(again.ok() && *again == read->identity,
            "an identity has one spelling");
  }
  (void)Trust::Create(authority->certificate, AbslText(input));
  (void)Trust::Create(AbslText(input), "");
}

void IdentityText(Bytes input) {
  const auto identity = ParseIdentity(AbslText(input));
  if (!identity.ok()) return;
  Require(ToUri(*identity) == AbslText(input), "an identity has one spelling");
}

}  // namespace

std::span<const Target> ControlTargets() {
  static constexpr Target kTargets[] = {{"control", Calls},
                                        {"view", ViewBytes},
                                        {"stored-fleet", StoredFleetBytes},
                                        {"certificate", CertificateText},
                                        {"identity", IdentityText}};
  return kTargets;
}

}  // namespace gossamer::fuzz
