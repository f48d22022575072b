// The bytes of the control plane in this version, and the answers to other
// versions.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "proto/topology.pb.h"
#include "runtime/membership/topology_client.h"
#include "runtime/sim/virtual_loop.h"
#include "tests/fuzz/golden_wire.h"
#include "topology/fleet/fleet.h"
#include "topology/fleet/protocol.h"
#include "topology/fleet/record_message.h"
#include "topology/fleet/view_change.h"
#include "topology/fleet/view_mac.h"
#include "topology/fleet/view_message.h"

namespace gossamer {
namespace golden_control_test {

using ::testing::AllOf;
using ::testing::HasSubstr;

wire::RegisterRequest RegisterOf(uint64_t id) {
  wire::RegisterRequest r;
  r.set_protocol_version(kControlVersions.newest);
  r.set_run_id("run");
  r.set_peer_id(id);
  r.set_incarnation_id(5);
  r.set_address("127.0.0.1:7000");
  r.set_layout_fingerprint(0x1234);
  r.set_configuration_hash(0x5678);
  r.add_checkpoint_rounds(100);
  return r;
}

wire::HeartbeatRequest HeartbeatOf(uint64_t id) {
  wire::HeartbeatRequest h;
  h.set_run_id("run");
  h.set_peer_id(id);
  h.set_incarnation_id(5);
  h.set_round(12);
  h.set_steps(11);
  h.set_rounds_per_second(2.5);
  h.set_sketch(std::string(16, '\0'));
  h.set_sketch_round(8);
  h.set_round_begun(12);
  return h;
}

View SomeView() {
  View view;
  view.run_id = "run";
  view.generation = 1;
  view.epoch = 2;
  view.from_round = 30;
  for (const uint64_t id : {1, 2, 5}) {
    view.members.push_back({{id}, absl::StrCat("10.0.0.", id, ":7800")});
  }
  view.departures.push_back({{4}, 30, "10.0.0.4:7800"});
  view.schedule.graph = "ring";
  view.seed = 9;
  view.gamma = 0.5;
  view.overlap_steps = 1;
  view.configuration_hash = 0x5678;
  view.resume_round = 20;
  return view;
}

TEST(GoldenControlTest, MessagesAreAsTheyWere) {
  ExpectGoldenWire("view/three",
                   BytesOf(ToMessage(SomeView()).SerializeAsString()));
  // Two peers register and send a heartbeat each: a kind, a length, a request.
  std::vector<std::byte> calls;
  for (const uint64_t id : {1, 2}) {
    calls.push_back(std::byte{0});
    AppendPiece(BytesOf(RegisterOf(id).SerializeAsString()), calls);
  }
  for (const uint64_t id : {1, 2}) {
    calls.push_back(std::byte{4});
    AppendPiece(BytesOf(HeartbeatOf(id).SerializeAsString()), calls);
  }
  calls.insert(calls.end(), {std::byte{6}, std::byte{0}, std::byte{0},
                             std::byte{7}, std::byte{0}, std::byte{0}});
  ExpectGoldenWire("control/two", calls);
}

// Two peers measure the link between them for a survey.
TEST(GoldenControlTest, ASurveyIsAsItWas) {
  std::vector<std::byte> calls;
  for (const uint64_t id : {1, 2}) {
    calls.push_back(std::byte{0});
    AppendPiece(BytesOf(RegisterOf(id).SerializeAsString()), calls);
  }
  wire::MeasureLinksRequest measure;
  measure.set_run_id("run");
  measure.set_start(true);
  calls.push_back(std::byte{14});
  AppendPiece(BytesOf(measure.SerializeAsString()), calls);
  // The number follows the generation of a service that begins at 1,000 s, as
  // the fuzz target's does (LinkSurvey::Start).
  constexpr uint64_t kFirstTurn = uint64_t{1'000'000} << 14;
  for (const uint64_t turn : {0, 1, 2, 3}) {
    for (const uint64_t id : {1, 2}) {
      wire::HeartbeatRequest h = HeartbeatOf(id);
      h.set_survey_number(kFirstTurn + turn);
      h.set_survey_measured(true);
      h.set_survey_rtt_seconds(0.1);
      h.set_survey_bytes_per_second(1e6);
      calls.push_back(std::byte{4});
      AppendPiece(BytesOf(h.SerializeAsString()), calls);
    }
  }
  measure.set_start(false);
  calls.push_back(std::byte{14});
  AppendPiece(BytesOf(measure.SerializeAsString()), calls);
  ExpectGoldenWire("control/survey", calls);
}

// The answers to peer 2: its registration, then a view and its tasks.
TEST(GoldenControlTest, AnswersAreAsTheyWere) {
  wire::RegisterResponse registered;
  registered.set_peer_id(2);
  registered.set_registered(1);
  registered.set_expected(3);
  registered.set_heartbeat_seconds(1);
  registered.set_service_generation(1);
  wire::HeartbeatResponse heard;
  *heard.mutable_view() = ToMessage(SomeView());
  heard.set_fleet_round(40);
  heard.set_second_round(39);
  heard.set_fleet_busy_seconds(0.1);
  heard.set_stop_round(50);
  heard.add_joiner_id(7);
  heard.add_joiner_address("10.0.0.7:7800");
  heard.set_survey_number(1);
  heard.set_survey_peer(5);
  heard.set_survey_address("10.0.0.5:7800");
  wire::HeartbeatResponse outside;
  outside.set_outside(true);
  outside.set_wait_seconds(2);
  std::vector<std::byte> answers = {std::byte{3}};
  AppendPiece(BytesOf(registered.SerializeAsString()), answers);
  for (const wire::HeartbeatResponse& h : {heard, outside}) {
    // The step is two seconds, in units of 20 ms.
    answers.insert(answers.end(), {std::byte{0}, std::byte{100}, std::byte{3}});
    AppendPiece(BytesOf(h.SerializeAsString()), answers);
  }
  ExpectGoldenWire("service-answers/two", answers);
}

// Peer 2 hears of a view, and then that peer 5 has gone and peer 6 has come.
TEST(GoldenControlTest, AChangeOfAViewIsAsItWas) {
  wire::RegisterResponse registered;
  registered.set_peer_id(2);
  View next = SomeView();
  ++next.epoch;
  next.from_round = 50;
  next.members.back() = {.id = {6}, .address = "10.0.0.6:7800"};
  wire::HeartbeatResponse first, second;
  *first.mutable_view() = ToMessage(SomeView());
  *second.mutable_view_change() = ChangeOf(first.view(), ToMessage(next));
  std::vector<std::byte> answers = {std::byte{3}};
  AppendPiece(BytesOf(registered.SerializeAsString()), answers);
  for (const wire::HeartbeatResponse& h : {first, second}) {
    answers.insert(answers.end(), {std::byte{0}, std::byte{100}, std::byte{3}});
    AppendPiece(BytesOf(h.SerializeAsString()), answers);
  }
  ExpectGoldenWire("service-answers/change", answers);
}

// A peer may hand back to a later release what this release has given it.  The
// value is Python's, of tests/golden/wire/view/three.bin.
TEST(GoldenControlTest, TheMacOfAViewIsAsItWas) {
  wire::ViewMessage view = ToMessage(SomeView());
  ASSERT_EQ(AddMac("key", view), absl::OkStatus());
  EXPECT_EQ(absl::BytesToHexString(view.signature()),
            "458b1a65c816965ca24b7351ada658e9"
            "7a2774b05c1643b118d7ab0b28efacf9");
  EXPECT_TRUE(HasMac("key", view));
  view.set_from_round(view.from_round() + 1);
  EXPECT_FALSE(HasMac("key", view));
}

// A later release finds in etcd the record that this release has left there.
TEST(GoldenControlTest, AStoredFleetIsAsItWas) {
  FleetRecord record;
  record.generation = 3;
  record.layout_fingerprint = 0x1234;
  record.configuration_hash = 0x5678;
  record.assembled = true;
  record.stop = {.round = 50, .committed = false};
  record.counts = {
      .suspicions = 5, .removals = 4, .returns = 3, .joins = 2, .leaves = 1};
  record.view = SomeView();
  for (const Member& m : record.view.members) {
    record.members.push_back({.id = m.id,
                              .incarnation_id = 5,
                              .address = m.address,
                              .checkpoint_rounds = {10, 20},
                              .in_view = true,
                              .resume_round = 20});
  }
  record.members.back().standing = Standing::kLeaving;
  ExpectGoldenWire("stored-fleet/three", BytesOf(ToBytes(record)));
  record.mac_key = "key";
  ExpectGoldenWire("stored-fleet/keyed", BytesOf(ToBytes(record)));
}

// A service that speaks a version of its own choice.
class ChoosingCalls final : public TopologyCalls {
 public:
  ChoosingCalls(EventLoop* loop, uint32_t version)
      : loop_(loop), version_(version) {}
  void Register(wire::RegisterRequest request,
                Done<wire::RegisterResponse> done) override {
    EXPECT_EQ(request.protocol_version(), kControlVersions.newest);
    EXPECT_EQ(request.oldest_protocol_version(), kControlVersions.oldest);
    wire::RegisterResponse response;
    response.set_peer_id(1);
    response.set_protocol_version(version_);
    loop_->Post([done, response] { done(absl::OkStatus(), response); });
  }
  void Heartbeat(wire::HeartbeatRequest,
                 Done<wire::HeartbeatResponse>) override {}

 private:
  EventLoop* const loop_;
  const uint32_t version_;
};

TEST(GoldenControlTest, AServiceMayNotChooseWhatThePeerDoesNotSpeak) {
  for (const uint32_t version :
       {0u, kControlVersions.newest, kControlVersions.newest + 5}) {
    VirtualLoop loop;
    VirtualPeerLoop own(&loop);
    TopologyClientOptions options;
    options.service = "service";
    options.run_id = "run";
    options.peer_id = {1};
    options.incarnation_id = 5;
    options.address = "127.0.0.1:7000";
    TopologyClient client(std::move(options), &own,
                          std::make_unique<ChoosingCalls>(&own, version));
    client.Start();
    loop.RunFor(absl::Seconds(1));
    const bool spoken = version <= kControlVersions.newest;
    EXPECT_EQ(client.refused().ok(), spoken) << client.refused();
    EXPECT_THAT(std::string(client.refused().message()),
                HasSubstr(spoken ? "" : absl::StrCat("protocol ", version)));
  }
}

TEST(GoldenControlTest, AVersionInCommonIsSpokenAndNoneRefusedWithBoth) {
  const absl::Time now = absl::UnixEpoch();
  FleetOptions options;
  options.run_id = "run";
  options.expected = 2;
  auto fleet = Fleet::Create(options, std::nullopt, now);
  ASSERT_TRUE(fleet.ok()) << fleet.status();
  const auto [oldest, newest] = kControlVersions;
  Registration r;
  r.run_id = "run";
  r.peer_id = {1};
  r.incarnation_id = 5;
  r.address = "127.0.0.1:7000";
  for (const VersionRange other :
       {VersionRange{oldest - 1, oldest - 1}, {newest + 1, newest + 2}}) {
    r.versions = other;
    EXPECT_THAT(
        std::string((*fleet)->Register(r, now).status().message()),
        AllOf(
            HasSubstr(absl::StrCat("control protocol ", other.Text())),
            HasSubstr(absl::StrCat("the service ", kControlVersions.Text()))));
  }
  r.versions = {newest, newest + 3};  // a later release
  EXPECT_TRUE((*fleet)->Register(r, now).ok());
}

}  // namespace golden_control_test
}  // namespace gossamer
