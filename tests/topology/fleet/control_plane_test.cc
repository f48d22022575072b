// The control plane around a fleet: its log and counts of bad requests, its
// answers to people, and surveys across a restart.

#include "topology/fleet/control_plane.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "algorithms/game/player_losses.h"
#include "topology/fleet/event_kind.h"
#include "topology/fleet/protocol.h"
#include "topology/fleet/view_mac.h"

namespace gossamer {
namespace control_plane_test {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsNan;
using ::testing::Not;
using ::testing::Pair;
using ::testing::SizeIs;

constexpr int kMany = 100;

class ControlPlaneTest : public ::testing::Test {
 protected:
  void SetUp() override { Begin(std::nullopt); }
  // Starts another process of the service.
  void Begin(std::optional<FleetRecord> stored) {
    FleetOptions options;
    options.run_id = "run";
    options.expected = 2;
    options.mac_key = mac_key_;
    options.elastic = elastic_;
    auto plane = ControlPlane::Create(
        options, std::move(stored),
        [this](const FleetRecord& record) {
          saved_ = record;
          return absl::OkStatus();
        },
        [this] { return now_; },
        [this](const std::string& line) { lines_.push_back(line); });
    ASSERT_TRUE(plane.ok()) << plane.status();
    plane_ = *std::move(plane);
  }
  absl::Status Register(const std::string& run, const std::string& address) {
    wire::RegisterRequest request;
    request.set_protocol_version(kControlVersions.newest);
    request.set_run_id(run);
    request.set_incarnation_id(7);
    request.set_address(address);
    wire::RegisterResponse response;
    return plane_->Register(request, response);
  }

  // Peer `id` registers; with `view` as one that trains by it.
  absl::Status Register(uint64_t id, const wire::ViewMessage* view) {
    wire::RegisterRequest request;
    request.set_protocol_version(kControlVersions.newest);
    request.set_run_id("run");
    request.set_peer_id(id);
    request.set_incarnation_id(id);
    request.set_address(absl::StrCat("host:", id));
    request.set_has_parameters(view != nullptr);
    request.set_trains(view != nullptr);
    if (view != nullptr) *request.mutable_view() = *view;
    wire::RegisterResponse response;
    return plane_->Register(request, response);
  }
  // The view that two peers begin by.
  wire::ViewMessage Assemble() {
    for (const uint64_t id : {1, 2}) {
      EXPECT_EQ(Register(id, nullptr), absl::OkStatus());
    }
    const wire::HeartbeatResponse answer = Hear(1, 0);
    EXPECT_TRUE(answer.has_view());
    return answer.view();
  }

  // The status of a fleet of kMany peers with the longest addresses, each of
  // which has sent what `report` writes; it fits into an answer.
  wire::FleetStatus StatusOfMany(
      const std::function<void(uint64_t, wire::HeartbeatRequest&)>& report) {
    FleetOptions options;
    options.run_id = "run";
    options.expected = kMany;
    auto plane = ControlPlane::Create(
        options, std::nullopt,
        [](const FleetRecord&) { return absl::OkStatus(); },
        [this] { return now_; }, [](const std::string&) {});
    EXPECT_TRUE(plane.ok()) << plane.status();
    for (uint64_t id = 1; id <= kMany; ++id) {
      wire::RegisterRequest registration;
      registration.set_protocol_version(kControlVersions.newest);
      registration.set_run_id("run");
      registration.set_incarnation_id(id);
      registration.set_peer_id(id);
      registration.set_address(std::string(kMaxAddressBytes, 'a'));
      wire::RegisterResponse registered;
      EXPECT_TRUE((*plane)->Register(registration, registered).ok());
      wire::HeartbeatRequest request;
      request.set_run_id("run");
      request.set_peer_id(id);
      request.set_incarnation_id(id);
      report(id, request);
      wire::HeartbeatResponse response;
      EXPECT_EQ((*plane)->Heartbeat(request, response), absl::OkStatus());
    }
    wire::FleetStatus status;
    EXPECT_TRUE((*plane)->GetStatus({}, status).ok());
    EXPECT_EQ(status.peers_size(), kMany);
    EXPECT_LT(status.ByteSizeLong(),
              static_cast<size_t>(MaxAnswerBytes(kMany)));
    return status;
  }

  // Sends the heartbeat of peer `id`, whose last task of a survey was
  // `measured`.
  wire::HeartbeatResponse Hear(uint64_t id, uint64_t measured) {
    wire::HeartbeatRequest request;
    request.set_run_id("run");
    request.set_peer_id(id);
    request.set_incarnation_id(id);
    request.set_survey_number(measured);
    request.set_survey_measured(measured != 0);
    request.set_survey_rtt_seconds(0.25);
    wire::HeartbeatResponse response;
    EXPECT_EQ(plane_->Heartbeat(request, response), absl::OkStatus());
    return response;
  }
  wire::LinkSurveyStatus Survey(bool start) {
    wire::MeasureLinksRequest request;
    request.set_run_id("run");
    request.set_start(start);
    wire::LinkSurveyStatus survey;
    EXPECT_EQ(plane_->MeasureLinks(request, survey), absl::OkStatus());
    return survey;
  }

  absl::Time now_ = absl::FromUnixSeconds(1'000'000);
  std::vector<std::string> lines_;
  std::string mac_key_;
  bool elastic_ = true;
  FleetRecord saved_;
  std::unique_ptr<ControlPlane> plane_;
};

// Without certificates a member may say anything of a view, but not make one.
TEST_F(ControlPlaneTest, AForgedViewIsNotTakenBack) {
  mac_key_ = "secret";
  Begin(std::nullopt);
  const wire::ViewMessage view = Assemble();
  EXPECT_THAT(view.signature(), SizeIs(32));
  EXPECT_EQ(saved_.mac_key, "secret") << "before the first answer";
  wire::ViewMessage forged = view;
  forged.set_generation((uint64_t{1} << 48) - 1);
  forged.add_member_id(3);
  forged.add_member_address("host:3");
  const auto expect_not_taken = [&](const absl::Status& registered) {
    EXPECT_EQ(registered.code(), absl::StatusCode::kUnavailable);
    const View& known = plane_->fleet().record().view;
    EXPECT_LT(known.generation, uint64_t{1} << 47);
    EXPECT_THAT(known.members, SizeIs(2));
    now_ += absl::Minutes(1);  // so that the next line comes
  };
  for (const std::string& mac : {view.signature(), std::string()}) {
    forged.set_signature(mac);
    expect_not_taken(Register(2, &forged));
    EXPECT_THAT(lines_, Contains(HasSubstr("not taken")));
    lines_.clear();
  }
  // Another incarnation with that disk does not take it either.
  mac_key_ = "another";
  Begin(saved_);
  expect_not_taken(Register(2, &forged));
  // A peer that the record does not know is to come as another incarnation,
  // where peers come and go.
  elastic_ = false;
  Begin(saved_);
  expect_not_taken(Register(3, &forged));
  elastic_ = true;
  Begin(saved_);
  EXPECT_EQ(Register(3, &forged), absl::OkStatus());
  wire::HeartbeatRequest beat;
  beat.set_run_id("run");
  beat.set_peer_id(3);
  beat.set_incarnation_id(3);
  beat.set_view_generation(forged.generation());
  beat.set_view_epoch(forged.epoch());
  wire::HeartbeatResponse answer;
  EXPECT_EQ(plane_->Heartbeat(beat, answer), absl::OkStatus());
  EXPECT_TRUE(answer.outside());
}

// The disk is from before the second view of the run.
TEST_F(ControlPlaneTest, AServiceWithAnOlderDiskTakesItsOwnViewBack) {
  mac_key_ = "secret";
  Begin(std::nullopt);
  wire::ViewMessage later = Assemble();
  later.set_generation(later.generation() + 1);
  later.set_epoch(2);
  ASSERT_EQ(AddMac("secret", later), absl::OkStatus());
  mac_key_ = "another";
  now_ = absl::FromUnixSeconds(1);
  Begin(saved_);
  EXPECT_EQ(Register(2, &later), absl::OkStatus());
  EXPECT_EQ(plane_->fleet().record().view.epoch, 2u);
  EXPECT_EQ(saved_.mac_key, "secret");
}

// Members may have newer views of the store that was lost, and nobody has its
// key.
TEST_F(ControlPlaneTest, AServiceThatLostItsDiskTakesAnyViewBack) {
  mac_key_ = "secret";
  Begin(std::nullopt);
  const wire::ViewMessage view = Assemble();
  wire::ViewMessage later = view;
  later.set_epoch(2);
  // A store that has another run's key, and gathers.
  FleetRecord gathers;
  gathers.mac_key = "another";
  Begin(gathers);
  EXPECT_EQ(Register(1, &view), absl::OkStatus());
  EXPECT_EQ(saved_.mac_key, "");
  EXPECT_EQ(Register(2, &later), absl::OkStatus());
  EXPECT_EQ(saved_.view.epoch, 2u);
}

// The store is that of a run which has ended, and the fleet is of another one.
TEST_F(ControlPlaneTest, AServiceOfAnEndedRunTakesTheViewOfAnother) {
  mac_key_ = "secret";
  Begin(std::nullopt);
  wire::ViewMessage view = Assemble();
  FleetRecord ended = saved_;
  for (MemberRecord& m : ended.members) m.finished = true;
  ended.stop = {.round = 5, .committed = true};
  view.set_generation(view.generation() + 10'000);
  view.clear_signature();
  Begin(ended);
  EXPECT_EQ(Register(1, &view), absl::OkStatus());
  EXPECT_EQ(saved_.stop.round, 0u);
  EXPECT_EQ(saved_.view.generation, view.generation());
}

// Certificates sign views in place of the key.
TEST_F(ControlPlaneTest, AServiceWithCertificatesDropsItsStoredKey) {
  FleetRecord before;
  before.mac_key = "secret";
  Begin(before);
  EXPECT_EQ(Assemble().signature(), "");
  EXPECT_EQ(saved_.mac_key, "");
}

TEST_F(ControlPlaneTest, TextOfARequestIsLoggedAsOneShortLine) {
  const std::string bad = "\n12:00:00 stop at round 1 agreed\x1b[2J";
  EXPECT_FALSE(Register("run", bad + std::string(60'000, 'a')).ok());
  now_ += absl::Minutes(1);
  EXPECT_FALSE(Register("other" + bad + std::string(60'000, 'r'), "a:1").ok());
  ASSERT_TRUE(Register("run", "a:1" + bad).ok());
  ASSERT_THAT(lines_, SizeIs(3));
  EXPECT_THAT(lines_, Each(Not(HasSubstr("\n"))));
  EXPECT_THAT(lines_, Each(Not(HasSubstr("\x1b"))));
  for (const std::string& line : lines_) EXPECT_LT(line.size(), 1500u);
}

TEST_F(ControlPlaneTest, AFloodOfRefusedPeersIsNoFloodOfLines) {
  EXPECT_FALSE(Register("other", "a:1").ok());
  for (int i = 0; i < 1000; ++i) {
    now_ += absl::Milliseconds(1);
    EXPECT_FALSE(Register("other", "a:1").ok());
  }
  EXPECT_THAT(lines_, SizeIs(1));
  now_ += absl::Minutes(1);
  EXPECT_FALSE(Register("other", "b:2").ok());
  EXPECT_THAT(lines_, ElementsAre(HasSubstr("a:1"), HasSubstr("b:2")));
  EXPECT_THAT(lines_[1], HasSubstr("1002 so far"));
}

// --exit-when-finished gives up on lost peers once others have finished; a peer
// that has left in good order in the middle of the run counts as neither.
TEST_F(ControlPlaneTest, APeerThatHasLeftDoesNotCountAsFinished) {
  FleetRecord record;
  for (const uint64_t id : {1, 2, 3}) {
    record.members.push_back(
        {.id = {id},
         .incarnation_id = id,
         .address = "a:1",
         .checkpoint_rounds = {},
         .in_view = id != 3,
         .finished = id == 3,
         .standing = id == 3 ? Standing::kLeft : Standing::kMember});
  }
  Begin(record);
  now_ += absl::Minutes(1);
  EXPECT_FALSE(plane_->Tick().some_finished);
  record.members[0].finished = true;
  Begin(record);
  EXPECT_TRUE(plane_->Tick().some_finished);
}

// A peer that must wait registers again and is admitted later, so the log does
// not call it refused.
TEST_F(ControlPlaneTest, APeerThatMustWaitIsNotReportedAsRefused) {
  wire::RegisterRequest trains;
  trains.set_protocol_version(kControlVersions.newest);
  trains.set_run_id("run");
  trains.set_peer_id(1);
  trains.set_incarnation_id(7);
  trains.set_address("a:1");
  trains.set_has_parameters(true);
  trains.set_trains(true);
  wire::RegisterResponse response;
  EXPECT_TRUE(absl::IsUnavailable(plane_->Register(trains, response)));
  EXPECT_THAT(lines_, ElementsAre(HasSubstr("peer_waits: at a:1: ")));
  wire::GetStatusRequest request;
  wire::FleetStatus status;
  ASSERT_TRUE(plane_->GetStatus(request, status).ok());
  EXPECT_EQ(status.service_events().at("peer_waits"), 1u);
  EXPECT_EQ(status.service_events().at("peer_refused"), 0u);
}

// Any process may ask; refusals get one line in ten seconds, and all are
// counted.
TEST_F(ControlPlaneTest, ARefusedRequestIsLoggedAndCounted) {
  wire::HeartbeatRequest unknown_peer, damaged;
  unknown_peer.set_run_id("run");
  unknown_peer.set_peer_id(9);
  damaged = unknown_peer;
  damaged.set_sketch("not of doubles");
  wire::StopRequest early, other_stop;
  early.set_run_id("run");
  other_stop.set_run_id("other\n");
  wire::GetStatusRequest other_status, status;
  other_status.set_run_id("other\n");
  wire::MeasureLinksRequest other_survey, early_survey;
  other_survey.set_run_id("other\n");
  wire::HeartbeatResponse beat;
  wire::StopResponse stopped;
  wire::FleetStatus known;
  wire::LinkSurveyStatus survey;
  auto refused = [&, times = 0u](const absl::Status& answer,
                                 const std::string& line) mutable {
    ++times;
    EXPECT_FALSE(answer.ok()) << line;
    ASSERT_EQ(lines_.size(), times) << line;
    EXPECT_THAT(lines_.back(), HasSubstr("request_refused: " + line));
    EXPECT_THAT(lines_.back(), Not(HasSubstr("\n")));
    now_ += absl::Minutes(1);
  };
  refused(plane_->Heartbeat(unknown_peer, beat), "heartbeat of peer 9: ");
  refused(plane_->Heartbeat(damaged, beat), "heartbeat of peer 9: ");
  refused(plane_->Stop(early, stopped), "stop: ");
  refused(plane_->Stop(other_stop, stopped), "stop: ");
  refused(plane_->GetStatus(other_status, known), "status: ");
  refused(plane_->MeasureLinks(other_survey, survey), "survey: ");
  refused(plane_->MeasureLinks(early_survey, survey), "survey: ");
  now_ -= absl::Minutes(1);
  for (int i = 0; i < 93; ++i) {
    EXPECT_FALSE(plane_->Heartbeat(unknown_peer, beat).ok());
  }
  EXPECT_EQ(lines_.size(), 7u);
  ASSERT_TRUE(plane_->GetStatus(status, known).ok());
  EXPECT_EQ(known.service_events().at("request_refused"), 100u);
}

// A peer reports the counts of its events; the service keeps those of kinds
// that it knows.
TEST_F(ControlPlaneTest, TheStatusCountsAPeersEventsByKind) {
  wire::RegisterRequest registration;
  registration.set_protocol_version(kControlVersions.newest);
  registration.set_run_id("run");
  registration.set_incarnation_id(1);
  registration.set_peer_id(1);
  registration.set_address("a:1");
  wire::RegisterResponse registered;
  ASSERT_TRUE(plane_->Register(registration, registered).ok());
  wire::HeartbeatRequest request;
  request.set_run_id("run");
  request.set_peer_id(1);
  request.set_incarnation_id(1);
  const auto status_events = [&] {
    wire::HeartbeatResponse response;
    EXPECT_EQ(plane_->Heartbeat(request, response), absl::OkStatus());
    wire::FleetStatus status;
    EXPECT_TRUE(plane_->GetStatus({}, status).ok());
    return std::map<std::string, uint64_t>(status.peers(0).events().begin(),
                                           status.peers(0).events().end());
  };
  // A peer of an older release reports none.
  EXPECT_TRUE(status_events().empty());
  auto& events = *request.mutable_events();
  events["checkpoint_failed"] = 2;
  events["step_skipped"] = uint64_t{1} << 40;
  events["checkpoint"] = 9;  // no trouble
  // Kinds of a later release, or invented ones, are dropped and no reason to
  // refuse.
  for (int i = 0; i < 1000; ++i) events[absl::StrCat("\x1b[2J", i)] = 1;
  EXPECT_THAT(status_events(),
              ElementsAre(Pair("checkpoint_failed", 2),
                          Pair("step_skipped", uint64_t{1} << 40)));
  // The latest report counts.
  events.clear();
  events["checkpoint_failed"] = 3;
  EXPECT_THAT(status_events(), ElementsAre(Pair("checkpoint_failed", 3)));
}

// The status of a hundred peers that report every kind of event fits into an
// answer.
TEST_F(ControlPlaneTest, AStatusOfManyTroublesStillFits) {
  const wire::FleetStatus status =
      StatusOfMany([](uint64_t, wire::HeartbeatRequest& request) {
        for (const EventInfo& kind : kEventKinds) {
          (*request.mutable_events())[std::string(kind.name)] = UINT64_MAX;
        }
      });
  EXPECT_GT(status.peers(0).events_size(), 20);
  EXPECT_EQ(status.peers(kMany - 1).events_size(), 0);
}

// Losses come and go as two lists, and a list that lacks values is malformed.
TEST_F(ControlPlaneTest, TheStatusHasTheLossesOfEveryPlayer) {
  ASSERT_TRUE(Register("run", "a:1").ok());
  wire::HeartbeatRequest request;
  request.set_run_id("run");
  request.set_peer_id(1);
  request.set_incarnation_id(7);
  for (const char* player : {"student", "critic", "adversary"}) {
    request.add_loss_player(player);
    request.add_loss(player[0] == 'c' ? std::nan("") : 0.5);
  }
  wire::HeartbeatResponse response;
  ASSERT_EQ(plane_->Heartbeat(request, response), absl::OkStatus());
  wire::FleetStatus status;
  ASSERT_TRUE(plane_->GetStatus({}, status).ok());
  EXPECT_THAT(status.peers(0).loss_player(),
              ElementsAre("student", "critic", "adversary"));
  EXPECT_THAT(status.peers(0).loss(), ElementsAre(0.5, IsNan(), 0.5));
  request.add_loss(1);
  EXPECT_EQ(plane_->Heartbeat(request, response).code(),
            absl::StatusCode::kInvalidArgument);
}

// The losses of a hundred peers fit into an answer: all players of the first
// peers, then as many as everybody has room for.
TEST_F(ControlPlaneTest, AStatusOfManyPlayersStillFits) {
  const wire::FleetStatus status = StatusOfMany([](uint64_t id,
                                                   wire::HeartbeatRequest&
                                                       request) {
    PlayerLosses losses = {{"generator", 1}, {"discriminator", 2}};
    if (id != kMany) {
      losses.resize(kMaxPlayers, {std::string(kMaxPlayerNameBytes, 'p'), 3});
    }
    for (const PlayerLoss& loss : losses) {
      request.add_loss_player(loss.player);
      request.add_loss(loss.value);
    }
  });
  EXPECT_EQ(status.peers(0).loss_size(), static_cast<int>(kMaxPlayers));
  for (const int last : {kMany - 2, kMany - 1}) {
    EXPECT_THAT(status.peers(last).loss_player(),
                ElementsAre("generator", "discriminator"));
    EXPECT_THAT(status.peers(last).loss(), ElementsAre(1, 2));
  }
}

TEST_F(ControlPlaneTest, ASurveyAfterARestartMeasuresAllLinksAgain) {
  for (const uint64_t id : {1, 2}) {
    wire::RegisterRequest request;
    request.set_protocol_version(kControlVersions.newest);
    request.set_run_id("run");
    request.set_peer_id(id);
    request.set_incarnation_id(id);
    request.set_address("a:1");
    wire::RegisterResponse response;
    ASSERT_EQ(plane_->Register(request, response), absl::OkStatus());
  }
  uint64_t measured = 0;
  for (int i = 0; i < 7; ++i) {
    Survey(/*start=*/true);
    const uint64_t number = Hear(1, 0).survey_number();
    EXPECT_GT(number, measured);
    measured = number;
    for (const uint64_t id : {1, 2}) Hear(id, measured);
    EXPECT_EQ(Survey(/*start=*/false).turn(), 1u);
  }
  // The clock may have been put back.  Peers of the first process ignore a task
  // whose number they have measured for, so numbers must rise all the same.
  now_ -= absl::Hours(1);
  Begin(plane_->fleet().record());
  Survey(/*start=*/true);
  for (int i = 0; i < 20; ++i) {
    for (const uint64_t id : {1, 2}) {
      EXPECT_GT(Hear(id, measured).survey_number(), measured);
    }
  }
  const wire::LinkSurveyStatus survey = Survey(/*start=*/true);
  EXPECT_EQ(survey.turn(), 0u);
  EXPECT_THAT(survey.rtt_seconds(), Each(-1));
}

}  // namespace control_plane_test
}  // namespace gossamer
