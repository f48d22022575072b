// The membership state machine: assembly, common checkpoints, addresses,
// rounds, stops, and the overlap that it chooses.

#include "topology/fleet/fleet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "algorithms/base/rng.h"
#include "topology/fleet/overlap_chooser.h"
#include "topology/fleet/protocol.h"
#include "topology/fleet/sketch.h"

namespace gossamer {
namespace fleet_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const absl::Time kStart = absl::FromUnixSeconds(1'000'000);

FleetOptions Options(int expected) {
  FleetOptions options;
  options.run_id = "run";
  options.expected = expected;
  options.lease = absl::Seconds(30);
  options.max_peers = expected;
  return options;
}

Registration Peer(uint64_t id, uint64_t incarnation,
                  const std::string& address = "") {
  Registration r;
  r.run_id = "run";
  r.peer_id = {id};
  r.incarnation_id = incarnation;
  r.address = address.empty() ? "host:" + std::to_string(incarnation) : address;
  r.layout_fingerprint = 0xabc;
  r.configuration_hash = 0xdef;
  return r;
}

FleetHeartbeat Beat(uint64_t id, uint64_t incarnation, uint64_t round = 0) {
  FleetHeartbeat h;
  h.run_id = "run";
  h.peer_id = {id};
  h.incarnation_id = incarnation;
  h.report.round = round;
  return h;
}

// A fleet and the time; peers 1 .. n are in the first view with incarnation ids
// 101 .. 100 + n.
class FleetTest : public testing::Test {
 protected:
  void Begin(int n, std::optional<FleetRecord> stored = std::nullopt) {
    auto fleet = Fleet::Create(Options(n), std::move(stored), now_);
    ASSERT_TRUE(fleet.ok()) << fleet.status();
    fleet_ = *std::move(fleet);
  }
  // Registers peers from 1 on, whose incarnation ids are their ids, with these
  // checkpoints.
  void Gather(const std::vector<std::vector<uint64_t>>& rounds) {
    Begin(static_cast<int>(rounds.size()));
    for (size_t i = 0; i < rounds.size(); ++i) {
      Registration r = Peer(static_cast<int>(i) + 1, i + 1);
      r.checkpoint_rounds = rounds[i];
      ASSERT_TRUE(fleet_->Register(r, now_).ok());
    }
  }
  void Assemble(int n) {
    Begin(n);
    for (int i = 1; i <= n; ++i) {
      ASSERT_TRUE(fleet_->Register(Peer(i, 100 + i), now_).ok());
    }
  }
  FleetAnswer Hear(const FleetHeartbeat& h) {
    now_ += absl::Milliseconds(1);
    auto answer = fleet_->Heartbeat(h, now_);
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.ok() ? *std::move(answer) : FleetAnswer{};
  }
  std::string Refusal(const Registration& r) {
    const auto id = fleet_->Register(r, now_);
    EXPECT_EQ(id.status().code(), absl::StatusCode::kFailedPrecondition);
    return std::string(id.status().message());
  }

  absl::Time now_ = kStart;
  std::unique_ptr<Fleet> fleet_;
};

TEST_F(FleetTest, MakesTheViewOnceAllHaveRegistered) {
  Begin(3);
  EXPECT_EQ(fleet_->Register(Peer(7, 1), now_)->value, 7);
  EXPECT_EQ(fleet_->Register(Peer(0, 2), now_)->value, 1);
  EXPECT_FALSE(Hear(Beat(7, 1)).view);
  EXPECT_EQ(fleet_->Register(Peer(0, 3), now_)->value, 2);
  const FleetAnswer answer = Hear(Beat(7, 1));
  ASSERT_TRUE(answer.view);
  EXPECT_EQ(answer.view->epoch, 1);
  EXPECT_EQ(answer.view->from_round, 1);
  EXPECT_EQ(answer.view->resume_round, 0);
  EXPECT_EQ(answer.view->configuration_hash, 0xdef);
  EXPECT_THAT(answer.view->members,
              ElementsAre(Member{{1}, "host:2"}, Member{{2}, "host:3"},
                          Member{{7}, "host:1"}));
}

TEST_F(FleetTest, SendsAViewOnlyToThoseWhoDoNotKnowIt) {
  Assemble(2);
  FleetHeartbeat h = Beat(1, 101);
  EXPECT_TRUE(Hear(h).view);
  h.view_generation = fleet_->record().generation;
  h.view_epoch = 1;
  EXPECT_FALSE(Hear(h).view);
}

TEST_F(FleetTest, RegisteringTwiceIsTheSame) {
  Begin(2);
  EXPECT_EQ(fleet_->Register(Peer(0, 5), now_)->value, 1);
  EXPECT_EQ(fleet_->Register(Peer(0, 5), now_)->value, 1);
  EXPECT_EQ(fleet_->Register(Peer(1, 5), now_)->value, 1);
  EXPECT_EQ(fleet_->registered(), 1);
}

TEST_F(FleetTest, NamesTheFirstTensorThatDiffers) {
  Begin(2);
  Registration first = Peer(1, 1);
  first.layout = "G.w 2,3\nD.w 4\n";
  ASSERT_TRUE(fleet_->Register(first, now_).ok());
  Registration r = Peer(2, 2);
  r.layout_fingerprint = 0x123;
  r.layout = "G.w 2,3\nD.w 5\n";
  EXPECT_THAT(Refusal(r), HasSubstr("tensor 2 is \"D.w 5\" of this peer and "
                                    "\"D.w 4\" of the run's first peer"));
}

TEST_F(FleetTest, RefusesFoundersThatBeginApart) {
  Begin(2);
  Registration first = Peer(1, 1);
  first.initial_parameters_hash = 7;
  ASSERT_TRUE(fleet_->Register(first, now_).ok());
  Registration r = Peer(2, 2);
  r.initial_parameters_hash = 8;
  EXPECT_THAT(Refusal(r), HasSubstr("begins with other parameters"));
  // A checkpoint's parameters are its own, and so are those of a game that
  // does not say.
  r.checkpoint_rounds = {10};
  EXPECT_TRUE(fleet_->Register(r, now_).ok());
  r.checkpoint_rounds.clear();
  r.initial_parameters_hash = 0;
  EXPECT_TRUE(fleet_->Register(r, now_).ok());
}

TEST_F(FleetTest, RefusesWhatDoesNotFitAndNamesBothSides) {
  Begin(3);
  ASSERT_TRUE(fleet_->Register(Peer(1, 1), now_).ok());
  Registration r = Peer(2, 2);
  r.layout_fingerprint = 0x123;
  EXPECT_THAT(Refusal(r), testing::AllOf(HasSubstr("0000000000000123"),
                                         HasSubstr("0000000000000abc")));
  r = Peer(2, 2);
  r.configuration_hash = 0x456;
  EXPECT_THAT(Refusal(r), testing::AllOf(HasSubstr("0000000000000456"),
                                         HasSubstr("0000000000000def")));
  r = Peer(2, 2);
  r.versions = {9, 9};
  EXPECT_THAT(Refusal(r), HasSubstr("protocol 9"));
  r = Peer(2, 2);
  r.run_id = "other";
  EXPECT_THAT(Refusal(r),
              testing::AllOf(HasSubstr("\"other\""), HasSubstr("\"run\"")));
  EXPECT_EQ(fleet_->registered(), 1);
}

TEST_F(FleetTest, NamesTheValueInWhichAConfigurationDiffers) {
  Begin(3);
  Registration r = Peer(1, 1);
  r.configuration = "mixing.graph: \"ring\"\nseed: 1\n";
  ASSERT_TRUE(fleet_->Register(r, now_).ok());
  r = Peer(2, 2);
  r.configuration_hash = 0x456;
  r.configuration = "mixing.graph: \"ring\"\nseed: 2\nseed: 3\n";
  EXPECT_THAT(Refusal(r),
              HasSubstr("the peer has seed: 2, seed: 3, the run seed: 1;"));
  r.configuration = "seed: 1\n";
  EXPECT_THAT(Refusal(r), HasSubstr("the peer has mixing.graph: \"\", the run "
                                    "mixing.graph: \"ring\""));
}

// A service that was started without the run's file must not decide otherwise
// than the peers expect.
TEST_F(FleetTest, AServiceWithoutTheFileHasThePeersValuesWhereItDecides) {
  FleetOptions options = Options(2);
  options.configuration =
      "mixing.graph: \"ring\"\nmixing.overlap_steps: steps_1\nseed: 1\n";
  options.decides = {"mixing.graph", "mixing.overlap_steps", "mixing.sites"};
  fleet_ = *Fleet::Create(options, std::nullopt, now_);
  Registration r = Peer(1, 1);
  const std::string ring = "mixing.graph: \"ring\"\n";
  const std::string steps = "mixing.overlap_steps: steps_1\n";
  r.configuration = "mixing.graph: \"torus\"\n" + steps;
  EXPECT_THAT(Refusal(r), HasSubstr("the peer has mixing.graph: \"torus\", and "
                                    "this service, which decides it, "
                                    "mixing.graph: \"ring\""));
  r.configuration = ring + "mixing.overlap_steps: auto\n";
  EXPECT_THAT(Refusal(r), HasSubstr("--set 'mixing.overlap_steps=auto'"));
  r.configuration = ring + steps + "mixing.sites: \"a:1 b:2\"\n";
  EXPECT_THAT(Refusal(r), HasSubstr("decides it, mixing.sites: \"\""));
  EXPECT_EQ(fleet_->registered(), 0);
  r.configuration = ring + steps + "seed: 7\n";
  EXPECT_TRUE(fleet_->Register(r, now_).ok());
  // A text that is too long for a request cannot be compared.
  r = Peer(2, 2);
  EXPECT_THAT(Refusal(r), HasSubstr("too long to be sent"));
  r.configuration = "mixing.graph: \"" + std::string(9000, 'x') + "\"\n";
  EXPECT_LT(Refusal(r).size(), 1000);
  // A peer that trains is not ended by a service that is wrong.
  for (const std::string& text : {r.configuration, ring}) {
    r.configuration = text;
    r.trains = true;
    EXPECT_EQ(fleet_->Register(r, now_).status().code(),
              absl::StatusCode::kUnavailable);
  }
}

TEST_F(FleetTest, RefusesOneTooManyAndMalformedRequests) {
  Assemble(2);
  EXPECT_THAT(Refusal(Peer(0, 50)), HasSubstr("already has its 2 peers"));
  for (auto spoil :
       {+[](Registration& r) { r.incarnation_id = 0; },
        +[](Registration& r) { r.address.clear(); },
        +[](Registration& r) { r.address.assign(256, 'a'); },
        +[](Registration& r) { r.device.assign(128, 'd'); },
        +[](Registration& r) {
          r.configuration.assign(kMaxConfigurationBytes + 1, 'c');
        },
        +[](Registration& r) { r.layout.assign(kMaxLayoutBytes + 1, 'l'); },
        +[](Registration& r) { r.checkpoint_rounds.resize(65); },
        +[](Registration& r) { r.checkpoint_rounds = {~0ull}; }}) {
    Registration r = Peer(1, 9);
    spoil(r);
    EXPECT_EQ(fleet_->Register(r, now_).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

TEST_F(FleetTest, ResumesFromTheLargestCommonCheckpoint) {
  Gather({{100, 200, 300}, {100, 200, 200}, {200, 100, 400, 300}});
  const FleetAnswer answer = Hear(Beat(1, 1));
  ASSERT_TRUE(answer.view);
  EXPECT_EQ(answer.view->resume_round, 200);
  EXPECT_EQ(answer.view->from_round, 200);
}

// One lost disk must not cost the checkpoints of all others.
TEST_F(FleetTest, ResumesFromWhatMostHaveIfNoneIsCommon) {
  Gather({{100, 200}, {100, 200}, {300}});
  const FleetAnswer answer = Hear(Beat(1, 1));
  ASSERT_TRUE(answer.view);
  EXPECT_EQ(answer.view->resume_round, 200);
  EXPECT_EQ(answer.view->members.size(), 3u);
  FleetHeartbeat third = Beat(3, 3);
  EXPECT_FALSE(Hear(third).view);
  EXPECT_FALSE(Hear(third).donors.empty());
  third.ready = true;
  now_ += absl::Milliseconds(1);
  Hear(Beat(1, 1, 205));
  const FleetAnswer in = Hear(third);
  ASSERT_TRUE(in.view);
  EXPECT_EQ(in.view->resume_round, 0u);
  EXPECT_GT(in.view->from_round, 205u);
}

TEST_F(FleetTest, HeartbeatsOfUnknownPeersAndOldIncarnationsAreRefused) {
  Assemble(2);
  EXPECT_EQ(fleet_->Heartbeat(Beat(9, 9), now_).status().code(),
            absl::StatusCode::kNotFound);
  ASSERT_TRUE(fleet_->Register(Peer(1, 201), now_).ok());
  FleetHeartbeat replaced = Beat(1, 101);
  replaced.registered_generation = fleet_->record().generation;
  EXPECT_EQ(fleet_->Heartbeat(replaced, now_).status().code(),
            absl::StatusCode::kAborted);
  replaced.registered_generation -= 1;
  EXPECT_EQ(fleet_->Heartbeat(replaced, now_).status().code(),
            absl::StatusCode::kNotFound);
  FleetHeartbeat h = Beat(2, 102);
  h.report.round = ~0ull;
  EXPECT_EQ(fleet_->Heartbeat(h, now_).status().code(),
            absl::StatusCode::kInvalidArgument);
  h = Beat(2, 102);
  h.report.sketch.assign(100, 1);
  EXPECT_EQ(fleet_->Heartbeat(h, now_).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(FleetTest, LossesOfTooManyPlayersOrTooLongNamesAreRefused) {
  Assemble(2);
  FleetHeartbeat h = Beat(2, 102);
  h.report.losses.assign(kMaxPlayers,
                         {std::string(kMaxPlayerNameBytes, 'p'), 1});
  EXPECT_TRUE(fleet_->Heartbeat(h, now_).ok());
  for (auto spoil : {+[](PlayerLosses& l) {
                       l.push_back({"p", 1});
                     },
                     +[](PlayerLosses& l) { l[3].player += 'p'; },
                     +[](PlayerLosses& l) { l[3].player.clear(); }}) {
    FleetHeartbeat bad = h;
    spoil(bad.report.losses);
    EXPECT_EQ(fleet_->Heartbeat(bad, now_).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

TEST_F(FleetTest, FleetRoundIsWhereTwoPeersAre) {
  Assemble(3);
  Hear(Beat(1, 101, 12));
  Hear(Beat(2, 102, 30));
  const FleetAnswer answer = Hear(Beat(3, 103, 20));
  EXPECT_EQ(answer.fleet_round, 20);
  EXPECT_EQ(answer.second_round, 20);
}

TEST_F(FleetTest, AReturningPeerGetsAViewOnceTheFleetIsHeardOf) {
  Assemble(3);
  for (int i = 1; i <= 3; ++i) Hear(Beat(i, 100 + i, 50));
  now_ += absl::Seconds(1);
  Registration r = Peer(2, 202, "host:102");
  r.checkpoint_rounds = {20, 40, 30};
  ASSERT_TRUE(fleet_->Register(r, now_).ok());
  EXPECT_FALSE(Hear(Beat(2, 202)).view);
  Hear(Beat(1, 101, 60));
  const FleetAnswer answer = Hear(Beat(2, 202));
  ASSERT_TRUE(answer.view);
  EXPECT_EQ(answer.view->epoch, 2);
  EXPECT_EQ(answer.view->resume_round, 40);
  EXPECT_EQ(Hear(Beat(1, 101)).view->resume_round, 0);
}

// The restarted service has heard no peer yet, so it does not know the fleet's
// round.
TEST_F(FleetTest, AReturningPeerIsLetInThoughTheServiceRestartsMeanwhile) {
  Assemble(2);
  Hear(Beat(1, 101));
  Registration r = Peer(2, 202);
  r.checkpoint_rounds = {5};
  ASSERT_TRUE(fleet_->Register(r, now_).ok());
  Begin(2, FleetRecord(fleet_->record()));
  EXPECT_FALSE(Hear(Beat(2, 202)).view) << "nobody has been heard of yet";
  Hear(Beat(1, 101));
  EXPECT_TRUE(Hear(Beat(2, 202)).view);
}

TEST_F(FleetTest, AnotherDeviceMakesAView) {
  Assemble(2);
  Registration r = Peer(2, 202);
  r.address = "host:102";
  r.device = "host/gpu";
  r.checkpoint_rounds = {5};
  ASSERT_TRUE(fleet_->Register(r, now_).ok());
  FleetHeartbeat h = Beat(1, 101, 55);
  h.view_generation = h.view_epoch = 1;
  const FleetAnswer answer = Hear(h);
  ASSERT_TRUE(answer.view);
  EXPECT_EQ(answer.view->members[0].device, "");
  EXPECT_EQ(answer.view->members[1].device, "host/gpu");
}

TEST_F(FleetTest, ANewAddressMakesAViewFarEnoughAhead) {
  Assemble(3);
  for (int i = 1; i <= 3; ++i) {
    FleetHeartbeat h = Beat(i, 100 + i, 50);
    h.report.rounds_per_second = 20;
    Hear(h);
  }
  Registration r = Peer(2, 202, "elsewhere:1");
  r.checkpoint_rounds = {5};
  ASSERT_TRUE(fleet_->Register(r, now_).ok());
  FleetHeartbeat h = Beat(1, 101, 55);
  h.report.rounds_per_second = 20;
  h.view_generation = h.view_epoch = 1;
  const FleetAnswer answer = Hear(h);
  ASSERT_TRUE(answer.view);
  EXPECT_EQ(answer.view->epoch, 2);
  EXPECT_EQ(answer.view->members[1].address, "elsewhere:1");
  // The view is three heartbeats of a second at 20 rounds a second ahead, and
  // some rounds more.
  EXPECT_GE(answer.view->from_round, 55 + 60);
  EXPECT_LE(answer.view->from_round, 55 + 100);
  EXPECT_TRUE(Hear(Beat(2, 202)).view);
}

TEST_F(FleetTest, AFleetThatDiedAsAWholeBeginsTogether) {
  Assemble(3);
  for (int i = 1; i <= 3; ++i) Hear(Beat(i, 100 + i, 500));
  now_ += absl::Seconds(2);
  const std::vector<uint64_t> rounds[] = {{400, 500}, {300, 400}, {400}};
  for (int i = 1; i <= 3; ++i) {
    Registration r = Peer(i, 200 + i);
    r.checkpoint_rounds = rounds[i - 1];
    ASSERT_TRUE(fleet_->Register(r, now_).ok());
    if (i < 3) {
      EXPECT_FALSE(Hear(Beat(i, 200 + i)).view);
    }
  }
  const FleetAnswer answer = Hear(Beat(1, 201));
  ASSERT_TRUE(answer.view);
  EXPECT_EQ(answer.view->epoch, 2);
  EXPECT_EQ(answer.view->resume_round, 400);
  EXPECT_EQ(answer.view->from_round, 400);
}

// All machines have lost their power, the service's too, so it knows no round.
TEST_F(FleetTest, AFleetThatDiedWithItsServiceBeginsFromWhatItHas) {
  Assemble(3);
  for (int i = 1; i <= 3; ++i) Hear(Beat(i, 100 + i, 5010));
  const FleetRecord stored = fleet_->record();
  now_ += absl::Hours(1);
  fleet_ = *Fleet::Create(fleet_->options(), stored, now_);
  for (int i = 1; i <= 3; ++i) {
    Registration r = Peer(i, 200 + i);
    r.checkpoint_rounds = {4800, 4900, 5000};
    ASSERT_TRUE(fleet_->Register(r, now_).ok());
  }
  const FleetAnswer answer = Hear(Beat(1, 201));
  ASSERT_TRUE(answer.view);
  EXPECT_EQ(answer.view->resume_round, 5000);
}

TEST_F(FleetTest, AFinishedRunCanBeStartedAgain) {
  Assemble(2);
  for (int i = 1; i <= 2; ++i) {
    FleetHeartbeat h = Beat(i, 100 + i, 1000);
    h.finished = true;
    Hear(h);
  }
  EXPECT_TRUE(fleet_->Finished());
  Registration r = Peer(0, 301);
  r.layout_fingerprint = 0x777;  // another model makes it a new run
  r.checkpoint_rounds = {1000};
  ASSERT_TRUE(fleet_->Register(r, now_).ok());
  EXPECT_FALSE(fleet_->Finished());
  EXPECT_EQ(fleet_->registered(), 1);
  r.incarnation_id = 302;
  ASSERT_TRUE(fleet_->Register(r, now_).ok());
  const FleetAnswer answer = Hear(Beat(1, 301));
  ASSERT_TRUE(answer.view);
  EXPECT_EQ(answer.view->epoch, 2);
  EXPECT_EQ(answer.view->resume_round, 1000);
  EXPECT_EQ(answer.stop.round, 0);
}

// A peer that lags is fast, and its rate says nothing about the others' rounds.
TEST_F(FleetTest, AFastLaggardDoesNotPutAViewOff) {
  Assemble(3);
  for (int i = 1; i <= 3; ++i) {
    FleetHeartbeat h = Beat(i, 100 + i, i == 3 ? 10 : 50);
    h.report.rounds_per_second = i == 3 ? 100 : 2;
    Hear(h);
  }
  EXPECT_EQ(*fleet_->RequestStop(now_), 50u + 6 + 2);
}

// The returning peer has an old checkpoint or none, and the others do not wait
// at its round.
TEST_F(FleetTest, AFleetThatKeepsItsMembersTakesNobodyBackUnderWay) {
  FleetOptions options = Options(2);
  options.elastic = false;
  fleet_ = *Fleet::Create(options, std::nullopt, now_);
  for (int i = 1; i <= 2; ++i) {
    ASSERT_TRUE(fleet_->Register(Peer(i, 100 + i), now_).ok());
  }
  Hear(Beat(1, 101, 40));
  Hear(Beat(2, 102, 40));
  now_ += absl::Seconds(1);
  Registration back = Peer(2, 202);
  back.checkpoint_rounds = {30};
  ASSERT_TRUE(fleet_->Register(back, now_).ok());
  // No peer has been heard since, so all may have died.
  EXPECT_FALSE(Hear(Beat(2, 202)).view);
  FleetHeartbeat one = Beat(1, 101, 41);
  one.view_epoch = 1;
  Hear(one);
  // The peer's old lease, which ends in a moment.
  EXPECT_FALSE(Hear(Beat(2, 202)).view);
  now_ += options.lease;
  Hear(one);
  const auto refused = fleet_->Heartbeat(Beat(2, 202), now_);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("takes nobody in under way"));
}

// Such a round delays neither a view nor a stop.
TEST_F(FleetTest, ARoundThatNobodyCanBeInHasNoSay) {
  Assemble(3);
  const auto tell = [this](uint64_t acknowledged) {
    FleetAnswer answer;
    for (int i = 1; i <= 3; ++i) {
      FleetHeartbeat h = Beat(i, 100 + i, i == 3 ? kMaxRound : 50 + i);
      h.round_begun = h.report.round;
      h.acknowledged_stop = i == 3 ? 0 : acknowledged;
      h.report.rounds_per_second = 2;
      answer = Hear(h);
    }
    return answer;
  };
  EXPECT_EQ(tell(0).fleet_round, 52u);
  // A stop that no service can have proposed counts no more: it would never
  // come.
  EXPECT_EQ(tell(uint64_t{1} << 40).stop.round, 0u);
  const uint64_t stop = *fleet_->RequestStop(now_);
  EXPECT_LE(stop, 52u + 8);
  EXPECT_TRUE(tell(stop).stop.committed);
}

TEST_F(FleetTest, ARestartWithOtherOptionsIsRefusedWhileTheRunLasts) {
  Assemble(2);
  FleetOptions other = Options(2);
  other.schedule.graph = "complete";
  const auto refused = Fleet::Create(other, fleet_->record(), now_);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("--state"));
  for (int i = 1; i <= 2; ++i) {
    FleetHeartbeat h = Beat(i, 100 + i);
    h.finished = true;
    Hear(h);
  }
  EXPECT_TRUE(Fleet::Create(other, fleet_->record(), now_).ok());
}

TEST_F(FleetTest, RefusesAGapBelowTheFloor) {
  FleetOptions options = Options(16);
  options.min_gap = 0.2;
  const auto refused = Fleet::Create(options, std::nullopt, now_);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("0.0507"));
  options.schedule.graph = "permuted-ring";
  EXPECT_TRUE(Fleet::Create(options, std::nullopt, now_).ok());
  options.schedule.graph = "rign";
  EXPECT_FALSE(Fleet::Create(options, std::nullopt, now_).ok());
}

TEST_F(FleetTest, NoPeerHasFewerNeighborsThanItNeeds) {
  FleetOptions options = Options(9);
  options.schedule.graph = "torus";
  options.min_degree = 4;
  EXPECT_TRUE(Fleet::Create(options, std::nullopt, now_).ok());
  EXPECT_THAT(std::string(CheckFleetSize(options, 8).message()),
              HasSubstr("graph torus on 8 peers: some mix "
                        "with only 3 others"));
  options.schedule.graph = "ring";
  EXPECT_THAT(
      std::string(
          Fleet::Create(options, std::nullopt, now_).status().message()),
      HasSubstr("mixing.clip_radius needs 4"));
}

TEST_F(FleetTest, LeasesCountOnlyAfterTheServiceHasBeenUpForOne) {
  Assemble(2);
  Hear(Beat(1, 101));
  now_ += absl::Seconds(20);
  Hear(Beat(1, 101));
  EXPECT_TRUE(fleet_->Lost(now_).empty());
  now_ += absl::Seconds(11);
  EXPECT_THAT(fleet_->Lost(now_), ElementsAre(PeerId{2}));
  Begin(2, fleet_->record());
  now_ += absl::Seconds(29);
  EXPECT_TRUE(fleet_->Lost(now_).empty());
  now_ += absl::Seconds(2);
  EXPECT_EQ(fleet_->Lost(now_).size(), 2);
}

TEST_F(FleetTest, SnapshotShowsEachPeer) {
  Assemble(2);
  FleetHeartbeat h = Beat(2, 102, 77);
  h.report.score = 3.5;
  Hear(h);
  now_ += absl::Seconds(5);
  const FleetSnapshot snapshot = fleet_->Snapshot(now_);
  ASSERT_EQ(snapshot.peers.size(), 2);
  EXPECT_EQ(snapshot.peers[1].report.round, 77);
  EXPECT_EQ(snapshot.peers[1].report.score, 3.5);
  EXPECT_EQ(snapshot.peers[1].since_heartbeat, absl::Seconds(5));
  EXPECT_FALSE(snapshot.consensus);
}

TEST_F(FleetTest, ConsensusDistanceIsOfTheLatestRoundAllHaveSketched) {
  Assemble(3);
  std::vector<std::vector<double>> of_round_8;
  for (int i = 1; i <= 3; ++i) {
    for (uint64_t round : {4, 8, 12}) {
      if (i == 2 && round == 12) continue;
      std::vector<float> x(kSketchBuckets);
      RngKey(i).Fold(round).FillGaussian(x);
      FleetHeartbeat h = Beat(i, 100 + i, round);
      h.report.sketch.assign(x.begin(), x.end());
      h.report.sketch_round = round;
      if (round == 8) of_round_8.push_back(h.report.sketch);
      Hear(h);
    }
  }
  const FleetSnapshot snapshot = fleet_->Snapshot(now_);
  ASSERT_TRUE(snapshot.consensus);
  EXPECT_EQ(snapshot.consensus->round, 8);
  EXPECT_THAT(ConsensusDistances(of_round_8),
              ElementsAre(snapshot.consensus->distance));
  EXPECT_TRUE(snapshot.consensus->players.empty()) << "there is one player";
}

TEST_F(FleetTest, TheConsensusDistanceHasAPartOfEachPlayer) {
  Assemble(2);
  for (int i = 1; i <= 2; ++i) {
    FleetHeartbeat h = Beat(i, 100 + i, 4);
    h.report.losses = {{"student", 1}, {"critic", 2}};
    h.report.sketch.assign(2 * kSketchBuckets, 0);
    h.report.sketch[0] = i;
    h.report.sketch[kSketchBuckets] = 10 * i;
    h.report.sketch_round = 4;
    Hear(h);
  }
  const auto consensus = fleet_->Snapshot(now_).consensus;
  ASSERT_TRUE(consensus);
  EXPECT_EQ(consensus->distance, 0.25 + 25);
  EXPECT_EQ(ValueOf(consensus->players, "student"), 0.25);
  EXPECT_EQ(ValueOf(consensus->players, "critic"), 25);

  // Sketches of other lengths, of a peer that has another game in mind, do not
  // compare.
  FleetHeartbeat h = Beat(1, 101, 5);
  h.report.sketch.assign(kSketchBuckets, 0);
  h.report.sketch_round = 5;
  Hear(h);
  h = Beat(2, 102, 5);
  h.report.sketch.assign(2 * kSketchBuckets, 0);
  h.report.sketch_round = 5;
  Hear(h);
  EXPECT_FALSE(fleet_->Snapshot(now_).consensus);
}

// With overlap_steps auto the first view hides exchanges behind one step.  When
// all peers have measured in it, the next view has the overlap that hides their
// exchanges.
TEST_F(FleetTest, ChoosesTheOverlapFromWhatAllHaveMeasured) {
  FleetOptions options = Options(2);
  options.overlap_steps = kAutoOverlap;
  fleet_ = *Fleet::Create(options, std::nullopt, now_);
  for (int i : {1, 2}) {
    ASSERT_TRUE(fleet_->Register(Peer(i, 100 + i), now_).ok());
  }
  const auto beat = [&](int i, uint64_t round, double exchange) {
    FleetHeartbeat h = Beat(i, 100 + i, round);
    h.report.timing = {0.1, exchange, 32};
    h.report.rounds_per_second = 1 / std::max(0.1, exchange);
    Hear(h);
  };
  EXPECT_EQ(fleet_->record().view.overlap_steps, 1);
  beat(1, 40, 0.25);
  EXPECT_EQ(fleet_->record().view.epoch, 1);
  beat(2, 41, 0.25);
  ASSERT_EQ(fleet_->record().view.epoch, 2);
  EXPECT_EQ(fleet_->record().view.overlap_steps, 3);
  const uint64_t from = fleet_->record().view.from_round;
  EXPECT_GT(from, 41);
  // A larger one would bring nothing to rounds that do not wait.
  for (int i : {1, 2}) {
    FleetHeartbeat h = Beat(i, 100 + i, from + 40);
    h.report.timing = {0.1, 0.9, 32};
    h.report.rounds_per_second = 9.9;
    Hear(h);
  }
  EXPECT_EQ(fleet_->record().view.epoch, 2);
  // Measurements from before the view's adoption do not count.
  for (int i : {1, 2}) beat(i, from + 31, 0.9);
  EXPECT_EQ(fleet_->record().view.epoch, 2);
  for (int i : {1, 2}) beat(i, from + 50, 0.05);
  EXPECT_EQ(fleet_->record().view.epoch, 3);
  EXPECT_EQ(fleet_->record().view.overlap_steps, 1);
}

// Members send heartbeats eagerly in the first rounds of a run and of each
// overlap, so what is chosen then holds sooner.
TEST_F(FleetTest, OverlapsThatFollowOneAnotherHoldSooner) {
  FleetOptions options = Options(1);
  options.overlap_steps = kAutoOverlap;
  fleet_ = *Fleet::Create(options, std::nullopt, now_);
  ASSERT_TRUE(fleet_->Register(Peer(1, 101), now_).ok());
  // Returns how many rounds later the overlap holds that is chosen in this
  // round of the view.
  const auto later = [&](uint64_t round, double exchange) {
    const View& view = fleet_->record().view;
    FleetHeartbeat h = Beat(1, 101, view.from_round + round);
    h.report.timing = {0.1, exchange, std::min<uint64_t>(round, 32)};
    h.report.rounds_per_second = 8;
    const uint64_t epoch = view.epoch;
    Hear(h);
    EXPECT_EQ(fleet_->record().view.epoch, epoch + 1);
    return fleet_->record().view.from_round - h.report.round;
  };
  const uint64_t eager = later(5, 0.15);
  EXPECT_LE(eager, 10);
  EXPECT_EQ(later(10, 0.24), eager) << "an overlap that has just begun";
  EXPECT_GE(later(kEagerRounds, 0.295), 3 * 8) << "heartbeats are usual again";
}

// If exchanges take longer the more of them are under way, two overlaps would
// alternate for ever: therefore each return to the smaller one takes twice as
// long.
TEST_F(FleetTest, WaitsLongerForASmallerOverlapThatDidNotDo) {
  FleetOptions options = Options(1);
  options.overlap_steps = kAutoOverlap;
  fleet_ = *Fleet::Create(options, std::nullopt, now_);
  ASSERT_TRUE(fleet_->Register(Peer(1, 101), now_).ok());
  // Returns the h in use once peer 1 is `rounds` into the view.
  const auto overlap = [&](uint64_t rounds, double exchange) {
    FleetHeartbeat h = Beat(1, 101, fleet_->record().view.from_round + rounds);
    h.report.timing = {0.1, exchange, std::min<uint64_t>(rounds, 32)};
    h.report.rounds_per_second = 8;
    Hear(h);
    return fleet_->record().view.overlap_steps;
  };
  EXPECT_EQ(overlap(40, 0.15), 2);
  for (uint64_t hold : {32, 64, 128}) {
    EXPECT_EQ(overlap(hold - 1, 0.05), 2);
    EXPECT_EQ(overlap(hold, 0.05), 1);
    EXPECT_EQ(overlap(16, 0.15), 2);
  }
}

TEST_F(FleetTest, SketchesThatAreNotFiniteAreIgnored) {
  Assemble(1);
  FleetHeartbeat h = Beat(1, 101, 5);
  h.report.sketch.assign(kSketchBuckets, std::nan(""));
  h.report.sketch_round = 5;
  Hear(h);
  EXPECT_FALSE(fleet_->Snapshot(now_).consensus);
}

}  // namespace fleet_test
}  // namespace gossamer
