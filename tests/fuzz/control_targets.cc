// Messages between peers and the topology service.

#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "proto/topology.pb.h"
#include "runtime/base/protobuf_errors.h"
#include "runtime/membership/topology_client.h"
#include "runtime/sim/virtual_loop.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/message.h"
#include "topology/fleet/control_plane.h"
#include "topology/fleet/parse_message.h"
#include "topology/fleet/protocol.h"
#include "topology/fleet/view_message.h"

namespace gossamer::fuzz {
namespace {

// Schedules of large views take long, which is allowed, so views are small.
constexpr size_t kMembers = 16;
constexpr uint64_t kRounds = 4;
// A silence longer than any that a service can ask for.
constexpr absl::Duration kLongestSilence = absl::Minutes(10);

// Calls of a service of two peers: each a kind, two bytes of length and the
// request.  The clock goes on between them.
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
  while (in.AnotherStep()) {
    const uint8_t kind = in.Byte();
    const Bytes bytes = in.TakePiece();
    now += absl::Milliseconds(kind);
    if (kind % 8 < 3) {
      wire::RegisterRequest request;
      wire::RegisterResponse response;
      if (!Parse(bytes, request)) continue;
      // Fuzzed bytes alone would hardly have the right values.
      if (kind % 2 == 0) {
        request.set_protocol_version(kControlVersions.newest);
        request.set_run_id("run");
      }
      (void)(*plane)->Register(request, response);
    } else if (kind % 8 < 6) {
      wire::HeartbeatRequest request;
      wire::HeartbeatResponse response;
      if (!Parse(bytes, request)) continue;
      if (kind % 2 == 0) request.set_run_id("run");
      (void)(*plane)->Heartbeat(request, response);
    } else if (kind % 16 == 14) {
      wire::MeasureLinksRequest request;
      wire::LinkSurveyStatus response;
      if (!Parse(bytes, request)) continue;
      if (kind >= 128) request.set_run_id("run");
      (void)(*plane)->MeasureLinks(request, response);
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
  SilenceProtobuf();
  wire::ViewMessage message;
  if (!ParseMessage(input, message)) return;
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

// The calls of one client, of which at most one is under way.
struct UnderWay {
  TopologyCalls::Done<wire::RegisterResponse> registering;
  TopologyCalls::Done<wire::HeartbeatResponse> heartbeat;
  bool any() const { return registering || heartbeat; }
};

// Calls that are held until the target answers them.
class HeldCalls final : public TopologyCalls {
 public:
  explicit HeldCalls(UnderWay* under_way) : under_way_(under_way) {}
  void Register(wire::RegisterRequest,
                Done<wire::RegisterResponse> done) override {
    Require(!under_way_->any(), "one call at a time");
    under_way_->registering = std::move(done);
  }
  void Heartbeat(wire::HeartbeatRequest,
                 Done<wire::HeartbeatResponse> done) override {
    Require(!under_way_->any(), "one call at a time");
    under_way_->heartbeat = std::move(done);
  }

 private:
  UnderWay* const under_way_;
};

template <typename Response>
void Answer(TopologyCalls::Done<Response>& call, const absl::Status& status,
            Bytes bytes) {
  Response response;
  if (!call || (status.ok() && !Parse(bytes, response))) return;
  std::exchange(call, nullptr)(status, response);
}

// A peer and a service that gives any answers: each step is time that passes, a
// wish of the peer, or an answer.
void Answers(Bytes input) {
  Input in(input);
  VirtualLoop loop;
  UnderWay calls;
  TopologyClientOptions options;
  options.run_id = "run";
  options.peer_id = {2};
  options.incarnation_id = 5;
  bool believed = true;
  options.check_view = [&believed](const wire::ViewMessage& view) {
    believed = view.signature().empty();
    return believed ? absl::OkStatus() : absl::UnauthenticatedError("fuzz");
  };
  TopologyClient client(options, &loop, std::make_unique<HeldCalls>(&calls));
  bool refused = false;
  client.SetOnRefused([&](const absl::Status&) { refused = true; });
  client.Start();
  while (in.AnotherStep()) {
    const uint8_t kind = in.Byte();
    const View before = client.view();
    believed = true;
    if (kind % 8 == 0) {
      loop.RunFor(absl::Milliseconds(20 * in.Byte()));
    } else if (kind % 8 == 1) {
      client.Rejoin(/*trained=*/kind > 128);
      if (kind > 192) client.RequestLeave();
    } else {
      const auto code =
          static_cast<absl::StatusCode>(kind % 8 == 2 ? in.Byte() % 17 : 0);
      const Bytes bytes = in.TakePiece();
      Answer(calls.registering, absl::Status(code, "fuzz"), bytes);
      Answer(calls.heartbeat, absl::Status(code, "fuzz"), bytes);
      Require(!before.NewerThan(client.view()), "no older view is adopted");
      Require(believed || !client.view().NewerThan(before),
              "no view is adopted that nobody vouches for");
    }
    Require(client.donors().size() <= kMaxDonors &&
                client.joiners().size() <= kMaxJoiners,
            "who gives and who gets is bounded");
    Require(client.fleet_round().value_or(0) <= kMaxRound &&
                client.second_round().value_or(0) <= kMaxRound &&
                client.stop().round <= kMaxRound,
            "no round is beyond all runs");
    Require(std::isfinite(client.fleet_busy().value_or(0)),
            "a round does not take for ever");
  }
  loop.RunFor(kLongestSilence);
  Require(refused || calls.any(), "a peer goes on asking until it is refused");
}

}  // namespace

std::span<const Target> ControlTargets() {
  static constexpr Target kTargets[] = {
      {"control", Calls, kProtobufReserve},
      {"view", ViewBytes},
      {"service-answers", Answers, kProtobufReserve}};
  return kTargets;
}

}  // namespace gossamer::fuzz
