// Members that are removed, return and leave.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "topology/service/fleet.h"

namespace gossamer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A fleet on a ring whose peers send heartbeats of their own accord unless they
// are silent; boot ids are 100 + id.
class FleetMembersTest : public testing::Test {
 protected:
  void Assemble(int n, const std::string& graph = "ring", int expected = 0) {
    options_.run_id = "run";
    options_.expected = expected == 0 ? n : expected;
    options_.schedule.graph = graph;
    fleet_.emplace(*Fleet::Create(options_, std::nullopt, now_));
    for (int i = 1; i <= n; ++i) {
      ASSERT_TRUE(Register(i, 100 + i).ok());
      beats_[i] = Beat(i, 100 + i);
    }
  }
  absl::StatusOr<PeerId> Register(uint64_t id, uint64_t boot,
                                  bool has_parameters = false,
                                  std::vector<uint64_t> checkpoints = {}) {
    Registration r;
    r.run_id = "run";
    r.peer_id = {id};
    r.boot_id = boot;
    r.address = "host:" + std::to_string(id);
    r.has_parameters = has_parameters;
    r.checkpoint_rounds = std::move(checkpoints);
    return fleet_->Register(r, now_);
  }
  static FleetHeartbeat Beat(uint64_t id, uint64_t boot) {
    FleetHeartbeat h;
    h.run_id = "run";
    h.peer_id = {id};
    h.boot_id = boot;
    h.report.round = h.round_begun = 100;
    h.report.rounds_per_second = 10;
    return h;
  }
  // All that are in beats_ send one a second.
  void Run(int seconds) {
    for (int s = 0; s < seconds; ++s) {
      now_ += absl::Seconds(1);
      for (auto& [id, beat] : beats_) {
        beat.round_begun = beat.report.round = beat.report.round + 10;
        const auto answer = fleet_->Heartbeat(beat, now_);
        ASSERT_TRUE(answer.ok()) << answer.status();
        answers_[id] = *answer;
      }
      fleet_->Tick(now_);
    }
  }
  std::vector<uint64_t> Members() const {
    std::vector<uint64_t> ids;
    for (const Member& m : fleet_->record().view.members) {
      ids.push_back(m.id.value);
    }
    return ids;
  }
  void Suspect(int by, std::vector<PeerId> whom) {
    beats_[by].suspected = std::move(whom);
  }
  // Peer 3 of a ring of four freezes until it is out, and is to go on.
  void RemoveThree() {
    const FleetHeartbeat frozen = beats_[3];
    beats_.erase(3);
    Suspect(2, {{3}});
    Suspect(4, {{3}});
    Run(6);
    ASSERT_EQ(Members().size(), 3);
    Suspect(2, {});
    Suspect(4, {});
    beats_[3] = frozen;
  }

  absl::Time now_ = absl::FromUnixSeconds(1'000'000);
  FleetOptions options_;
  std::optional<Fleet> fleet_;
  std::map<int, FleetHeartbeat> beats_;
  std::map<int, FleetAnswer> answers_;
};

TEST_F(FleetMembersTest,
       WhoIsSilentAndSuspectedByTwoIsRemovedWithinFiveSeconds) {
  Assemble(5);
  Run(10);
  beats_.erase(3);
  Suspect(2, {{3}});
  Suspect(4, {{3}});
  Run(5);
  EXPECT_THAT(Members(), ElementsAre(1, 2, 4, 5));
  const View& view = fleet_->record().view;
  EXPECT_GE(view.from_round, 200 + 30);
  EXPECT_THAT(view.departures, IsEmpty());
  EXPECT_EQ(fleet_->record().counts.removals, 1);
  EXPECT_EQ(answers_[1].view->epoch, view.epoch);
}

TEST_F(FleetMembersTest, NeitherSilenceNorSuspicionsNorOneOfThemIsEnough) {
  Assemble(5);
  Run(10);
  // A slow peer: all suspect it, but its heartbeats come.
  for (int i : {1, 2, 4, 5}) Suspect(i, {{3}});
  Run(20);
  EXPECT_EQ(Members().size(), 5);
  // The service does not hear of it, its neighbours do.
  for (int i : {1, 2, 4, 5}) Suspect(i, {});
  beats_.erase(3);
  Run(20);
  EXPECT_EQ(Members().size(), 5);
  // One says that it is silent.
  Suspect(2, {{3}});
  Run(20);
  EXPECT_EQ(Members().size(), 5);
  Suspect(4, {{3}});
  Run(1);
  EXPECT_EQ(Members().size(), 4);
}

TEST_F(FleetMembersTest, NeighborsThatDieTogetherAreRemovedTogether) {
  Assemble(6);
  Run(10);
  beats_.erase(3);
  beats_.erase(4);
  Suspect(2, {{3}});
  Suspect(5, {{4}});
  Run(6);
  EXPECT_THAT(Members(), ElementsAre(1, 2, 5, 6));
}

TEST_F(FleetMembersTest, LeasesCountOnlyOnceTheServiceHasBeenUpForOne) {
  Assemble(4);
  Run(10);
  beats_.erase(3);
  Suspect(2, {{3}});
  Suspect(4, {{3}});
  fleet_.emplace(*Fleet::Create(options_, fleet_->record(), now_));
  Run(4);
  EXPECT_EQ(Members().size(), 4);
  Run(1);
  EXPECT_EQ(Members().size(), 3);
}

TEST_F(FleetMembersTest, WhoCannotBeSparedStaysAndTheLogSaysSoOnce) {
  options_.schedule.graph = "hypercube";
  Assemble(4, "hypercube");
  Run(10);
  fleet_->TakeNotes();
  beats_.erase(4);
  Suspect(2, {{4}});
  Suspect(3, {{4}});
  Run(20);
  EXPECT_EQ(Members().size(), 4);
  const std::vector<std::string> notes = fleet_->TakeNotes();
  EXPECT_EQ(std::ranges::count_if(notes,
                                  [](const std::string& n) {
                                    return n.find("peer 4 stays in the view") !=
                                           n.npos;
                                  }),
            1);
}

TEST_F(FleetMembersTest, ARemovedPeerIsToldAndReturnsAsAnotherLife) {
  Assemble(4);
  Run(10);
  RemoveThree();
  Run(1);
  EXPECT_TRUE(answers_[3].outside);
  EXPECT_FALSE(answers_[3].view);
  EXPECT_EQ(answers_[3].wait, absl::ZeroDuration());
  ASSERT_TRUE(Register(3, 203, /*has_parameters=*/true).ok());
  beats_[3] = Beat(3, 203);
  Run(2);
  EXPECT_THAT(Members(), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(answers_[3].view->resume_round, 0);
  EXPECT_EQ(fleet_->record().counts.returns, 1);
}

TEST_F(FleetMembersTest, WhoIsRemovedAgainAndAgainWaitsLongerEachTime) {
  Assemble(4);
  Run(10);
  std::vector<double> waits;
  for (uint64_t life = 1; life <= 10; ++life) {
    RemoveThree();
    auto answer = fleet_->Heartbeat(beats_[3], now_);
    ASSERT_TRUE(answer.ok() && answer->outside);
    waits.push_back(absl::ToDoubleSeconds(answer->wait));
    if (answer->wait > absl::ZeroDuration()) {
      EXPECT_EQ(Register(3, 1000 + life, true).status().code(),
                absl::StatusCode::kUnavailable);
      now_ += answer->wait;
      Run(1);
    }
    ASSERT_TRUE(Register(3, 1000 + life, true).ok());
    beats_[3] = Beat(3, 1000 + life);
    Run(8);
    ASSERT_EQ(Members().size(), 4);
  }
  for (size_t i = 1; i < waits.size(); ++i) EXPECT_GE(waits[i], waits[i - 1]);
  EXPECT_EQ(waits[0], 0);
  EXPECT_GT(waits[9], 30);
  EXPECT_LE(waits[9], 64);
}

TEST_F(FleetMembersTest, OneLeavesInGoodOrder) {
  Assemble(4);
  Run(10);
  beats_[2].leaving = true;
  Run(3);
  EXPECT_THAT(Members(), ElementsAre(1, 3, 4));
  const View& view = fleet_->record().view;
  EXPECT_THAT(view.departures,
              ElementsAre(Departure{{2}, view.from_round, "host:2"}));
  ASSERT_TRUE(answers_[2].view);
  EXPECT_EQ(answers_[2].view->DepartureOf({2}), view.from_round);
  beats_[2].finished = true;
  Run(1);
  EXPECT_EQ(fleet_->record().counts.leaves, 1);
  EXPECT_FALSE(fleet_->Finished());
  beats_.erase(2);
  for (auto& [id, beat] : beats_) beat.finished = true;
  Run(1);
  EXPECT_TRUE(fleet_->Finished());
}

// There is always another that is ready to join as soon as a view is adopted.
TEST_F(FleetMembersTest, AStreamOfJoinersDoesNotKeepOneFromLeaving) {
  Assemble(4);
  int next = 5;
  const auto add = [&] {
    ASSERT_TRUE(Register(next, 100 + next).ok());
    beats_[next] = Beat(next, 100 + next);
    beats_[next].ready = true;
    beats_[next].report.round = beats_[1].report.round;
    ++next;
  };
  for (int i = 0; i < 4; ++i) add();
  Run(1);
  beats_[2].leaving = true;
  for (int i = 0; i < 30 && fleet_->record().view.RankOf({2}); ++i) {
    add();
    Run(1);
  }
  EXPECT_FALSE(fleet_->record().view.RankOf({2}));
  EXPECT_LT(next, 25);
  Run(10);
  EXPECT_GT(Members().size(), 7u);
}

TEST_F(FleetMembersTest, IfAllWantToLeaveTheFleetStops) {
  Assemble(4);
  Run(10);
  for (auto& [id, beat] : beats_) beat.leaving = true;
  Run(1);
  EXPECT_EQ(Members().size(), 4);
  EXPECT_NE(fleet_->record().stop.round, 0);
}

TEST_F(FleetMembersTest, IfTheFleetCannotBeWithoutOneItStops) {
  Assemble(2);
  Run(10);
  fleet_->TakeNotes();
  beats_[1].leaving = true;
  Run(3);
  EXPECT_EQ(Members().size(), 2);
  EXPECT_NE(fleet_->record().stop.round, 0);
  EXPECT_THAT(fleet_->TakeNotes(),
              testing::Contains(HasSubstr("peer 1 cannot leave, all stop")));
}

// It may be waiting for answers of peers that stand at that stop.
TEST_F(FleetMembersTest, AStopAfterADepartureDoesNotWaitForWhoLeaves) {
  Assemble(5);
  Run(10);
  beats_[2].leaving = true;
  Run(3);
  ASSERT_EQ(Members().size(), 4);
  const uint64_t departs = *fleet_->record().view.DepartureOf({2});
  Run(30);
  const auto stop = fleet_->RequestStop(now_);
  ASSERT_TRUE(stop.ok());
  ASSERT_GT(*stop, departs);
  for (const int i : {1, 3, 4}) beats_[i].acknowledged_stop = *stop;
  fleet_->Tick(now_);
  Run(1);
  EXPECT_FALSE(fleet_->record().stop.committed) << "peer 5 has a part in it";
  beats_[5].acknowledged_stop = *stop;
  Run(1);
  EXPECT_TRUE(fleet_->record().stop.committed);
}

TEST_F(FleetMembersTest, WhoVanishesWhileItLeavesIsRemoved) {
  Assemble(5);
  Run(10);
  beats_[2].leaving = true;
  Run(3);
  ASSERT_EQ(Members().size(), 4);
  beats_.erase(2);
  Suspect(1, {{2}});
  Run(6);
  EXPECT_THAT(fleet_->record().view.departures, IsEmpty());
  EXPECT_EQ(fleet_->record().counts.removals, 1);
}

TEST_F(FleetMembersTest, OneMoreJoinsOnceItHasParametersOfThreeMembers) {
  Assemble(4);
  Run(10);
  ASSERT_TRUE(Register(7, 107).ok());
  beats_[7] = Beat(7, 107);
  Run(3);
  EXPECT_EQ(Members().size(), 4);
  EXPECT_FALSE(answers_[7].view);
  ASSERT_EQ(answers_[7].donors.size(), 3);
  int asked = 0;
  for (int i = 1; i <= 4; ++i) asked += answers_[i].joiners.size();
  EXPECT_EQ(asked, 3);
  beats_[7].ready = true;
  Run(2);
  EXPECT_THAT(Members(), ElementsAre(1, 2, 3, 4, 7));
  EXPECT_EQ(answers_[7].view->resume_round, 0);
  EXPECT_EQ(fleet_->record().counts.joins, 1);
  EXPECT_THAT(answers_[1].joiners, IsEmpty());
}

TEST_F(FleetMembersTest, WhoWaitsToBeLetInKeepsNobodyFromParameters) {
  Assemble(4);
  Run(10);
  ASSERT_TRUE(fleet_->RequestStop(now_).ok());  // nobody is let in any more
  for (int id = 7; id <= 11; ++id) {
    ASSERT_TRUE(Register(id, 100 + id).ok());
    beats_[id] = Beat(id, 100 + id);
    beats_[id].ready = id < 11;
  }
  Run(2);
  EXPECT_EQ(Members().size(), 4);
  int asked = 0;
  for (int i = 1; i <= 4; ++i) {
    for (const Member& joiner : answers_[i].joiners) {
      EXPECT_EQ(joiner.id, PeerId{11});
      ++asked;
    }
  }
  EXPECT_EQ(asked, 3);
}

// It may be of a life that never trained, or of another fleet.
TEST_F(FleetMembersTest, TheCheckpointOfOneThatIsNoMemberDoesNotCount) {
  Assemble(4);
  Run(10);
  ASSERT_TRUE(Register(7, 107, false, {1, 90}).ok());
  beats_[7] = Beat(7, 107);
  Run(3);
  EXPECT_EQ(Members().size(), 4);
  EXPECT_EQ(answers_[7].donors.size(), 3);
  beats_[7].ready = true;
  Run(2);
  EXPECT_EQ(Members().size(), 5);
  EXPECT_EQ(answers_[7].view->resume_round, 0);
}

TEST_F(FleetMembersTest, AFullFleetAndOneThatCannotGrowRefuse) {
  options_.max_peers = 4;
  Assemble(4);
  Run(10);
  const auto full = Register(7, 107);
  EXPECT_THAT(std::string(full.status().message()), HasSubstr("--max-peers"));
  options_.max_peers = 0;
  fleet_.reset();
  beats_.clear();
  Assemble(4, "hypercube");
  Run(10);
  EXPECT_EQ(Register(7, 107).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

// All machines go, and one stays away: two minutes after the last of the others
// has come back they begin from what they share.
TEST_F(FleetMembersTest, WhoStaysAwayDoesNotKeepAFleetFromBeginning) {
  Assemble(4);
  Run(10);
  beats_.clear();
  Run(300);
  const auto back = [&](int id, std::vector<uint64_t> checkpoints) {
    ASSERT_TRUE(Register(id, 200 + id, false, std::move(checkpoints)).ok());
    beats_[id] = Beat(id, 200 + id);
    beats_[id].round_begun = beats_[id].report.round = 0;
  };
  // It has been silent for long, but the others may be on their way.
  back(1, {180, 190});
  Run(100);
  EXPECT_FALSE(answers_[1].view);
  back(2, {190});
  back(3, {180, 190});
  Run(100);
  EXPECT_FALSE(answers_[1].view);
  Run(30);
  EXPECT_THAT(Members(), ElementsAre(1, 2, 3));
  for (const int id : {1, 2, 3}) {
    ASSERT_TRUE(answers_[id].view) << id;
    EXPECT_EQ(answers_[id].view->resume_round, 190) << id;
  }
  back(4, {190});
  beats_[4].ready = true;
  Run(5);
  EXPECT_THAT(Members(), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(answers_[4].view->resume_round, 0);
}

TEST_F(FleetMembersTest, AMemberWhoseDiskIsGoneGetsParametersOfTheOthers) {
  Assemble(4);
  Run(10);
  ASSERT_TRUE(Register(2, 202).ok());
  beats_[2] = Beat(2, 202);
  Run(3);
  EXPECT_FALSE(answers_[2].view);
  EXPECT_EQ(answers_[2].donors.size(), 3);
  beats_[2].ready = true;
  Run(1);
  ASSERT_TRUE(answers_[2].view);
  EXPECT_EQ(answers_[2].view->resume_round, 0);
  // It begins where the others will be, not where view 1 began.
  EXPECT_EQ(answers_[2].view->epoch, 2);
  EXPECT_GT(answers_[2].view->from_round, 200);
}

TEST_F(FleetMembersTest, AnotherLifeOfAMemberIsAnotherView) {
  Assemble(4);
  Run(10);
  ASSERT_TRUE(Register(2, 202, false, {90}).ok());
  beats_[2] = Beat(2, 202);
  Run(1);
  ASSERT_TRUE(answers_[2].view);
  EXPECT_EQ(answers_[2].view->epoch, 2);
  EXPECT_GT(answers_[2].view->from_round, 200);
  EXPECT_EQ(answers_[2].view->resume_round, 90);
}

}  // namespace
}  // namespace gossamer
