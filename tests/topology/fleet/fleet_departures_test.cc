// Members that are evicted or leave.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/topology/fleet/beating_fleet.h"

namespace gossamer {
namespace fleet_departures_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class FleetDeparturesTest : public BeatingFleet {};

TEST_F(FleetDeparturesTest,
       ASilentMemberThatTwoSuspectIsEvictedWithinFiveSeconds) {
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

// A member may report suspicions of any peer with every heartbeat.
TEST_F(FleetDeparturesTest, RepeatedSuspicionsTakeAFewLinesOfTheLog) {
  Assemble(5);
  Run(10);
  fleet_->TakeNotes();
  Suspect(2, std::vector<PeerId>(64, PeerId{3}));
  ASSERT_TRUE(fleet_->Heartbeat(beats_[2], now_).ok());
  EXPECT_THAT(fleet_->TakeNotes(),
              ElementsAre("peer 3 does not answer peer 2"));
  EXPECT_EQ(fleet_->record().counts.suspicions, 1);
  for (int i = 0; i < 1000; ++i) {
    now_ += absl::Milliseconds(5);
    Suspect(2,
            i % 2 == 0 ? std::vector<PeerId>() : std::vector<PeerId>{{1}, {3}});
    ASSERT_TRUE(fleet_->Heartbeat(beats_[2], now_).ok());
  }
  EXPECT_THAT(fleet_->TakeNotes(), IsEmpty());
  // The suspicion of another peer is still logged.
  Suspect(2, {});
  Suspect(4, {{5}});
  Run(1);
  EXPECT_THAT(fleet_->TakeNotes(),
              ElementsAre("peer 5 does not answer peer 4"));
  Run(10);
  Suspect(2, {{1}, {3}});
  Run(1);
  EXPECT_THAT(
      fleet_->TakeNotes(),
      ElementsAre("peers 1, 3 do not answer peer 2 (502 times so far)"));
}

TEST_F(FleetDeparturesTest, SilenceOrSuspicionAloneEvictsNoMember) {
  Assemble(5);
  Run(10);
  // A slow peer: all neighbours suspect it, but its heartbeats come.
  for (int i : {1, 2, 4, 5}) Suspect(i, {{3}});
  Run(20);
  EXPECT_EQ(Members().size(), 5);
  // The service does not hear the peer, but its neighbours do.
  for (int i : {1, 2, 4, 5}) Suspect(i, {});
  beats_.erase(3);
  Run(20);
  EXPECT_EQ(Members().size(), 5);
  // One neighbour alone suspects it.
  Suspect(2, {{3}});
  Run(20);
  EXPECT_EQ(Members().size(), 5);
  Suspect(4, {{3}});
  Run(1);
  EXPECT_EQ(Members().size(), 4);
}

// Its answer counts only what came after the suspicion: a heartbeat from before
// says nothing about a peer that has died since.
TEST_F(FleetDeparturesTest, TheServiceAnswersForASuspectedMemberThatItHears) {
  Assemble(5);
  Run(10);
  Suspect(2, {{3}, {77}});
  const auto heard = [this] {
    return fleet_->Heartbeat(beats_[2], now_)->heard;
  };
  EXPECT_THAT(heard(), IsEmpty()) << "it is heard of before the suspicion";
  const FleetHeartbeat beat = beats_[3];
  beats_.erase(3);
  Run(2);
  EXPECT_THAT(heard(), IsEmpty());
  beats_[3] = beat;
  Run(1);
  EXPECT_THAT(heard(), ElementsAre(PeerId{3}));
  beats_.erase(3);
  Suspect(2, {});
  Run(1);
  EXPECT_THAT(heard(), IsEmpty());
  Suspect(2, {{3}});
  EXPECT_THAT(heard(), IsEmpty()) << "another suspicion";
}

TEST_F(FleetDeparturesTest, AnExpelledMemberIsEvictedThoughItIsAlive) {
  Assemble(4);
  Run(10);
  fleet_->Evict({3}, "of this", now_);
  Run(1);
  EXPECT_THAT(Members(), ElementsAre(1, 2, 4));
  EXPECT_EQ(fleet_->WhyEvicted({3}), "of this");
  EXPECT_TRUE(answers_[3].outside);
  const uint64_t version = fleet_->version();
  fleet_->Evict({3}, "of this", now_);
  fleet_->Evict({9}, "of this", now_);
  EXPECT_EQ(fleet_->version(), version);
  // A peer that is leaving and one that waits to join can be evicted too.
  beats_.erase(3);
  Run(10);
  beats_[2].leaving = true;
  Run(3);
  ASSERT_TRUE(fleet_->record().view.DepartureOf({2}));
  fleet_->Evict({2}, "of this", now_);
  EXPECT_THAT(fleet_->record().view.departures, IsEmpty());
  ASSERT_TRUE(Register(7, 107).ok());
  fleet_->Evict({7}, "of this", now_);
  beats_[7] = Beat(7, 107);
  beats_[7].ready = true;
  Run(20);
  EXPECT_THAT(Members(), ElementsAre(1, 4));
  fleet_->TakeNotes();
  for (int times = 0; times < 3; ++times) fleet_->Evict({4}, "of this", now_);
  EXPECT_THAT(Members(), ElementsAre(1, 4));
  EXPECT_THAT(fleet_->TakeNotes(),
              ElementsAre(HasSubstr("peer 4 stays in the view, though of")));
}

TEST_F(FleetDeparturesTest, AnExpelledPeerDoesNotCountForTheFirstView) {
  Assemble(3, "ring", 4);
  fleet_->Evict({3}, "of this", now_);
  EXPECT_EQ(fleet_->registered(), 2);
  beats_.erase(3);
  for (const int id : {3, 4}) ASSERT_TRUE(Register(id, 200 + id).ok());
  EXPECT_THAT(Members(), ElementsAre(1, 2, 3, 4));
}

// Peers without an edge to a peer cannot know whether it is silent.
TEST_F(FleetDeparturesTest, SuspicionsFromNonNeighboursEvictNoMember) {
  Assemble(6);
  Run(10);
  beats_.erase(3);
  for (const int i : {1, 5, 6}) Suspect(i, {{3}});
  Run(20);
  EXPECT_EQ(Members().size(), 6);
  Suspect(2, {{3}});
  Run(20);
  EXPECT_EQ(Members().size(), 6) << "of two live neighbours one is not enough";
  Suspect(4, {{3}});
  Run(1);
  EXPECT_THAT(Members(), ElementsAre(1, 2, 4, 5, 6));
}

TEST_F(FleetDeparturesTest, EveryMemberIsANeighbourWhenRowsChangeWithTheRound) {
  Assemble(6, "random-matching");
  Run(10);
  beats_.erase(3);
  Suspect(1, {{3}});
  Run(20);
  EXPECT_EQ(Members().size(), 6);
  Suspect(5, {{3}});
  Run(1);
  EXPECT_THAT(Members(), ElementsAre(1, 2, 4, 5, 6));
}

TEST_F(FleetDeparturesTest, NeighboursThatDieTogetherAreEvictedTogether) {
  Assemble(6);
  Run(10);
  beats_.erase(3);
  beats_.erase(4);
  Suspect(2, {{3}});
  Suspect(5, {{4}});
  Run(6);
  EXPECT_THAT(Members(), ElementsAre(1, 2, 5, 6));
}

TEST_F(FleetDeparturesTest, LeasesCountOnlyOnceTheServiceHasBeenUpForOne) {
  Assemble(4);
  Run(10);
  beats_.erase(3);
  Suspect(2, {{3}});
  Suspect(4, {{3}});
  fleet_ = *Fleet::Create(options_, fleet_->record(), now_);
  Run(4);
  EXPECT_EQ(Members().size(), 4);
  Run(1);
  EXPECT_EQ(Members().size(), 3);
}

TEST_F(FleetDeparturesTest, AMemberThatTheGraphNeedsStaysAndIsLoggedOnce) {
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

TEST_F(FleetDeparturesTest, AMemberLeavesInGoodOrder) {
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

// The peer is gone before others have reported the round of its departure.
// They get a view for the same round, and the view after it does not wait for
// all.
TEST_F(FleetDeparturesTest, AMemberThatLeavesAheadOfTheOthersDelaysNoView) {
  Assemble(4);
  Run(10);
  beats_[2].leaving = true;
  Run(3);
  const View before = fleet_->record().view;
  ASSERT_LT(beats_[1].round_begun, before.from_round);
  beats_[2].finished = true;
  Run(1);
  const View& after = fleet_->record().view;
  EXPECT_EQ(after.epoch, before.epoch + 1);
  EXPECT_EQ(after.from_round, before.from_round);
  EXPECT_THAT(after.departures, IsEmpty());
  EXPECT_EQ(after.members, before.members);
}

// The process of a peer that has left may go on and send anything.
TEST_F(FleetDeparturesTest, APeerThatHasLeftCannotStopTheFleet) {
  Assemble(4);
  Run(10);
  beats_[2].leaving = true;
  Run(3);
  beats_[2].finished = true;
  Run(1);
  ASSERT_EQ(fleet_->record().counts.leaves, 1);
  beats_[2].view_epoch = fleet_->record().view.epoch;
  beats_[2].acknowledged_stop = 10'000;
  beats_[2].request_stop = true;
  Run(2);
  EXPECT_EQ(fleet_->record().stop.round, 0u);
  beats_[1].request_stop = true;
  Run(1);
  EXPECT_NE(fleet_->record().stop.round, 0u);
}

// The stream: another peer is ready to join as soon as a view is adopted.
TEST_F(FleetDeparturesTest, AStreamOfJoinersDoesNotKeepAMemberFromLeaving) {
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

// Reading gigabytes takes longer than a leaving peer has.
TEST_F(FleetDeparturesTest, APeerThatReadsItsCheckpointDelaysNoDeparture) {
  Assemble(5);
  Run(10);
  ASSERT_TRUE(Register(3, 203, false, {90}).ok());
  FleetHeartbeat reads = Beat(3, 203);
  reads.round_begun = reads.report.round = 0;
  beats_.erase(3);
  const auto run = [&](int seconds) {
    for (int s = 0; s < seconds; ++s) {
      Run(1);
      answers_[3] = *fleet_->Heartbeat(reads, now_);
    }
  };
  run(3);
  ASSERT_TRUE(answers_[3].view);
  beats_[2].leaving = true;
  run(3);
  EXPECT_TRUE(fleet_->record().view.DepartureOf({2}));
}

TEST_F(FleetDeparturesTest, IfAllWantToLeaveTheFleetStops) {
  Assemble(4);
  Run(10);
  for (auto& [id, beat] : beats_) beat.leaving = true;
  Run(1);
  EXPECT_EQ(Members().size(), 4);
  EXPECT_NE(fleet_->record().stop.round, 0);
}

TEST_F(FleetDeparturesTest, AFleetStopsIfItCannotSpareAMemberThatLeaves) {
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

// The leaving peer may wait for answers of peers that stand at that stop.
TEST_F(FleetDeparturesTest, AStopAfterADepartureDoesNotWaitForTheLeavingPeer) {
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

TEST_F(FleetDeparturesTest, ALeavingPeerThatFallsSilentIsEvicted) {
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

// Its last heartbeat is lost.  No peer suspects it, since none waits for it.
TEST_F(FleetDeparturesTest, ASilentLeavingPeerHasLeftOnceNoMemberWaitsForIt) {
  Assemble(5);
  Run(10);
  beats_[2].leaving = true;
  Run(3);
  const uint64_t departs = *fleet_->record().view.DepartureOf({2});
  beats_.erase(2);
  const FleetHeartbeat slow = beats_[5];
  Run(1);
  beats_[5] = slow;
  // One peer has not reached the round of the departure, and may wait for the
  // leaving one.
  for (int i = 0; i < 10; ++i) {
    Run(1);
    beats_[5] = slow;
  }
  EXPECT_EQ(fleet_->record().counts.leaves, 0);
  beats_[5].round_begun = beats_[5].report.round = departs;
  Run(1);
  EXPECT_EQ(fleet_->record().counts.leaves, 1);
  EXPECT_EQ(fleet_->record().counts.removals, 0);
  for (auto& [id, beat] : beats_) beat.finished = true;
  Run(1);
  EXPECT_TRUE(fleet_->Finished());
}

// The silent peer trains by the view that it has.  Without deadlines the others
// would wait for payloads that it does not send in a newer view.
TEST_F(FleetDeparturesTest, NobodyLeavesOrJoinsWhileAMemberIsSilent) {
  Assemble(5);
  Run(10);
  beats_.erase(3);
  Run(6);
  beats_[2].leaving = true;
  ASSERT_TRUE(Register(7, 107).ok());
  beats_[7] = Beat(7, 107);
  beats_[7].ready = true;
  Run(20);
  EXPECT_THAT(Members(), ElementsAre(1, 2, 3, 4, 5));
  beats_[3] = beats_[4];
  beats_[3].peer_id = {3};
  beats_[3].incarnation_id = 103;
  Run(20);
  EXPECT_THAT(Members(), ElementsAre(1, 3, 4, 5, 7));
}

}  // namespace fleet_departures_test
}  // namespace gossamer
