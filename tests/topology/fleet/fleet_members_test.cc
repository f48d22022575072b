// Members that join and return, and the answers that peers outside the view
// get.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/topology/fleet/beating_fleet.h"
#include "topology/graph.h"

namespace gossamer {
namespace fleet_members_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class FleetMembersTest : public BeatingFleet {
 protected:
  // Registers a peer that has its state and waits for a view.
  void RegisterReady(int id) {
    ASSERT_TRUE(Register(id, 100 + id).ok());
    beats_[id] = Beat(id, 100 + id);
    beats_[id].ready = true;
  }
  // Peer 7 joins, and hears whether the view is the first to name it.
  bool JoinsAsTheFirst() {
    RegisterReady(7);
    Run(3);
    EXPECT_TRUE(fleet_->record().view.RankOf({7}));
    return answers_[7].first_named;
  }
  // Registers an incarnation of peer 3 that is far behind the others, and dies
  // after two seconds.
  absl::Status ShortIncarnation(uint64_t incarnation) {
    beats_.erase(3);
    const absl::Status registered =
        Register(3, incarnation, false, {100}).status();
    if (!registered.ok()) return registered;
    beats_[3] = Beat(3, incarnation);
    Run(2);
    return absl::OkStatus();
  }
};

TEST_F(FleetMembersTest,
       AnEvictedPeerLearnsOfItAndReturnsAsAnotherIncarnation) {
  Assemble(4);
  Run(10);
  EvictThree();
  Run(1);
  EXPECT_TRUE(answers_[3].outside);
  EXPECT_FALSE(answers_[3].view);
  EXPECT_EQ(answers_[3].wait, absl::ZeroDuration());
  ASSERT_TRUE(Register(3, 203, /*has_parameters=*/true).ok());
  beats_[3] = Beat(3, 203);
  Run(3);
  EXPECT_THAT(Members(), ElementsAre(1, 2, 3, 4));
  ASSERT_TRUE(answers_[3].view);
  EXPECT_EQ(answers_[3].view->resume_round, 0);
  EXPECT_EQ(fleet_->record().counts.returns, 1);
}

TEST_F(FleetMembersTest, APeerThatIsEvictedRepeatedlyWaitsLongerEachTime) {
  Assemble(4);
  Run(10);
  std::vector<double> waits;
  for (uint64_t incarnation = 1; incarnation <= 10; ++incarnation) {
    EvictThree();
    auto answer = fleet_->Heartbeat(beats_[3], now_);
    ASSERT_TRUE(answer.ok() && answer->outside);
    waits.push_back(absl::ToDoubleSeconds(answer->wait));
    if (answer->wait > absl::ZeroDuration()) {
      EXPECT_EQ(Register(3, 1000 + incarnation, true).status().code(),
                absl::StatusCode::kUnavailable);
      now_ += answer->wait;
      Run(1);
    }
    ASSERT_TRUE(Register(3, 1000 + incarnation, true).ok());
    beats_[3] = Beat(3, 1000 + incarnation);
    Run(8);
    ASSERT_EQ(Members().size(), 4);
  }
  for (size_t i = 1; i < waits.size(); ++i) EXPECT_GE(waits[i], waits[i - 1]);
  EXPECT_EQ(waits[0], 0);
  EXPECT_GT(waits[9], 30);
  EXPECT_LE(waits[9], 64);
}

// A machine that is preempted now and then does not count as one that keeps
// failing.
TEST_F(FleetMembersTest, AnEvictionIsForgottenAfterTenGoodMinutes) {
  Assemble(4);
  Run(10);
  for (uint64_t incarnation = 1; incarnation <= 4; ++incarnation) {
    EvictThree();
    EXPECT_EQ(fleet_->record().members[2].removals, 1);
    ASSERT_TRUE(Register(3, 1000 + incarnation, true).ok());
    beats_[3] = Beat(3, 1000 + incarnation);
    beats_[3].report.round = beats_[1].report.round;
    Run(599);
    EXPECT_EQ(fleet_->record().members[2].removals, 1);
    Run(20);
    EXPECT_EQ(fleet_->record().members[2].removals, 0);
  }
  EXPECT_EQ(fleet_->record().counts.removals, 4);
  // Minutes in which the peer is away are no good minutes.
  EvictThree();
  beats_.erase(3);
  Run(700);
  EXPECT_EQ(fleet_->record().members[2].removals, 1);
}

// Each incarnation costs a view, and dies before it trains by it.
TEST_F(FleetMembersTest, APeerThatKeepsDyingDoesNotBlockJoinsAndDepartures) {
  Assemble(5);
  Run(10);
  for (uint64_t incarnation = 1; incarnation <= 3; ++incarnation) {
    ASSERT_TRUE(ShortIncarnation(200 + incarnation).ok());
    EXPECT_EQ(answers_[3].view->members.size(), 5) << "it is back";
  }
  beats_[2].leaving = true;
  RegisterReady(7);
  Run(5);
  EXPECT_THAT(Members(), ElementsAre(1, 2, 3, 4, 5));
  const absl::Status refused = ShortIncarnation(204);
  EXPECT_TRUE(absl::IsUnavailable(refused)) << refused;
  EXPECT_THAT(Members(), ElementsAre(1, 2, 4, 5));
  EXPECT_THAT(fleet_->WhyEvicted({3}), HasSubstr("3 incarnations in a row"));
  EXPECT_TRUE(absl::IsUnavailable(ShortIncarnation(205)));
  Run(20);
  EXPECT_THAT(Members(), ElementsAre(1, 4, 5, 7));
  beats_[7].report.round = beats_[1].report.round;
  // The peer returns as an evicted one does, dies once more, and waits for
  // longer.
  ASSERT_TRUE(Register(3, 206).ok());
  beats_[3] = Beat(3, 206);
  beats_[3].ready = true;
  Run(8);
  EXPECT_THAT(Members(), ElementsAre(1, 3, 4, 5, 7));
  beats_.erase(3);
  EXPECT_THAT(std::string(Register(3, 207).status().message()),
              HasSubstr("may return in 2s"));
  Run(3);
  ASSERT_TRUE(Register(3, 207).ok());
  beats_[3] = Beat(3, 207);
  beats_[3].ready = true;
  Run(8);
  beats_.erase(3);
  EXPECT_THAT(std::string(Register(3, 208).status().message()),
              HasSubstr("may return in 4s"));
}

// A restarted service does not know how long the incarnation that ended first
// had trained.
TEST_F(FleetMembersTest, ARestartedServiceCountsShortIncarnationsFromZero) {
  Assemble(5);
  Run(10);
  for (uint64_t incarnation = 1; incarnation <= 2; ++incarnation) {
    ASSERT_TRUE(ShortIncarnation(200 + incarnation).ok());
  }
  fleet_ = *Fleet::Create(options_, fleet_->record(), now_);
  for (auto& [id, beat] : beats_) beat.view_epoch = 1;
  Run(1);
  for (uint64_t incarnation = 3; incarnation <= 5; ++incarnation) {
    ASSERT_TRUE(ShortIncarnation(200 + incarnation).ok()) << incarnation;
  }
  EXPECT_TRUE(absl::IsUnavailable(ShortIncarnation(206)));
}

TEST_F(FleetMembersTest, AnIncarnationThatTrainsResetsTheCountOfShortOnes) {
  Assemble(5);
  Run(10);
  for (uint64_t incarnation = 1; incarnation <= 10; ++incarnation) {
    ASSERT_TRUE(ShortIncarnation(200 + incarnation).ok()) << incarnation;
    if (incarnation % 3 != 0) continue;
    beats_[3].report.round = fleet_->record().view.from_round;
    Run(1);
  }
  EXPECT_EQ(fleet_->record().counts.removals, 0);
}

TEST_F(FleetMembersTest, AMemberThatTheGraphNeedsReturnsHoweverOftenItDies) {
  Assemble(4, "hypercube");
  Run(10);
  for (uint64_t incarnation = 1; incarnation <= 6; ++incarnation) {
    ASSERT_TRUE(ShortIncarnation(200 + incarnation).ok()) << incarnation;
  }
  EXPECT_EQ(Members().size(), 4);
}

// Peers that all die together are not evicted either: they begin from what they
// share.
TEST_F(FleetMembersTest, AFleetThatDiesAgainAndAgainStaysTogether) {
  Assemble(4);
  for (int incarnation = 1; incarnation <= 6; ++incarnation) {
    for (int i = 1; i <= 4; ++i) {
      ASSERT_TRUE(Register(i, 1000 * incarnation + i, false, {100}).ok());
      beats_[i] = Beat(i, 1000 * incarnation + i);
      beats_[i].round_begun = beats_[i].report.round = 0;
    }
    now_ += absl::Seconds(1);
  }
  EXPECT_EQ(Members().size(), 4);
  EXPECT_EQ(fleet_->record().counts.removals, 0);
}

TEST_F(FleetMembersTest, PeersThatFailTogetherAreEvictedInOneView) {
  Assemble(8);
  Run(10);
  const uint64_t epoch = fleet_->record().view.epoch;
  beats_.erase(3);
  Run(1);
  beats_.erase(6);
  for (const int by : {2, 4}) Suspect(by, {{3}});
  for (const int by : {5, 7}) Suspect(by, {{6}});
  Run(6);
  EXPECT_THAT(Members(), ElementsAre(1, 2, 4, 5, 7, 8));
  EXPECT_EQ(fleet_->record().view.epoch, epoch + 1);
}

// A peer that its neighbours suspect and that the service hears will not fail.
TEST_F(FleetMembersTest, AnEvictionDoesNotWaitForASuspectedPeerThatIsHeard) {
  Assemble(8);
  Run(10);
  beats_.erase(3);
  for (const int by : {2, 4}) Suspect(by, {{3}});
  for (const int by : {5, 7}) Suspect(by, {{6}});
  Run(4);
  EXPECT_EQ(Members().size(), 8);
  Run(1);
  EXPECT_THAT(Members(), ElementsAre(1, 2, 4, 5, 6, 7, 8));
}

TEST_F(FleetMembersTest, PeersThatComeTogetherJoinInOneView) {
  Assemble(4);
  Run(10);
  const uint64_t epoch = fleet_->record().view.epoch;
  for (const int id : {7, 8}) {
    ASSERT_TRUE(Register(id, 100 + id).ok());
    beats_[id] = Beat(id, 100 + id);
  }
  beats_[7].ready = true;
  Run(1);
  EXPECT_EQ(Members().size(), 4);
  beats_[8].ready = true;
  Run(1);
  EXPECT_THAT(Members(), ElementsAre(1, 2, 3, 4, 7, 8));
  EXPECT_EQ(fleet_->record().view.epoch, epoch + 1);
}

TEST_F(FleetMembersTest,
       APeerThatIsSlowToGetParametersHoldsTheOthersUpBriefly) {
  Assemble(4);
  Run(10);
  for (const int id : {7, 8}) {
    ASSERT_TRUE(Register(id, 100 + id).ok());
    beats_[id] = Beat(id, 100 + id);
  }
  beats_[7].ready = true;
  Run(2);
  EXPECT_EQ(Members().size(), 4);
  Run(1);
  EXPECT_THAT(Members(), ElementsAre(1, 2, 3, 4, 7));
}

// Only then may a peer that begins say hello to its neighbours alone.
TEST_F(FleetMembersTest, APeerHearsThatAViewIsTheFirstToNameIt) {
  Assemble(5);
  Run(10);
  EXPECT_TRUE(JoinsAsTheFirst());
  // A peer dies, and there is another view, which the joiner may begin by: a
  // neighbour by the first one may wait for it.
  beats_.erase(3);
  for (const int by : {2, 4}) Suspect(by, {{3}});
  Run(6);
  ASSERT_EQ(Members().size(), 5);
  EXPECT_FALSE(answers_[7].first_named);
}

TEST_F(FleetMembersTest, AViewIsNotTheFirstToNameALaterIncarnation) {
  Assemble(4);
  Run(10);
  for (const uint64_t incarnation : {107, 108}) {
    ASSERT_TRUE(Register(7, incarnation).ok());
    beats_[7] = Beat(7, incarnation);
    beats_[7].ready = true;
    Run(3);
    ASSERT_EQ(Members().size(), 5);
    EXPECT_EQ(answers_[7].first_named, incarnation == 107);
  }
}

// A view that a joiner makes while an eviction waits for others would have the
// dead in it, among new neighbours.
TEST_F(FleetMembersTest, NobodyIsLetInWhileAnEvictionWaits) {
  Assemble(8);
  Run(10);
  const uint64_t epoch = fleet_->record().view.epoch;
  ASSERT_TRUE(Register(9, 109).ok());
  beats_[9] = Beat(9, 109);
  beats_.erase(3);
  Run(1);
  beats_.erase(6);
  for (const int by : {2, 4}) Suspect(by, {{3}});
  for (const int by : {5, 7}) Suspect(by, {{6}});
  Run(3);
  ASSERT_EQ(Members().size(), 8);
  beats_[9].ready = true;
  Run(2);
  EXPECT_THAT(Members(), ElementsAre(1, 2, 4, 5, 7, 8));
  EXPECT_EQ(fleet_->record().view.epoch, epoch + 1);
  Run(10);
  EXPECT_THAT(Members(), ElementsAre(1, 2, 4, 5, 7, 8, 9));
}

// A service that was started again has not seen who came before.
TEST_F(FleetMembersTest, ARestartedServiceCallsNoViewTheFirstToNameAPeer) {
  Assemble(4);
  Run(10);
  fleet_ = *Fleet::Create(options_, fleet_->record(), now_);
  Run(10);
  EXPECT_FALSE(JoinsAsTheFirst());
}

// A peer that brings a view which this service did not make shows that there
// were registrations which it has not seen.
TEST_F(FleetMembersTest, AServiceThatTookAViewBackCallsNoViewTheFirst) {
  Assemble(4);
  Run(10);
  const View view = fleet_->record().view;
  fleet_ = *Fleet::Create(options_, std::nullopt, now_);
  for (auto& [id, beat] : beats_) {
    Registration r;
    r.run_id = "run";
    r.peer_id = {static_cast<uint64_t>(id)};
    r.incarnation_id = 100 + id;
    r.address = "host:" + std::to_string(id);
    r.has_parameters = r.trains = true;
    r.view = view;
    ASSERT_TRUE(fleet_->Register(r, now_).ok());
    beat.view_generation = view.generation;
    beat.view_epoch = view.epoch;
  }
  Run(10);
  EXPECT_FALSE(JoinsAsTheFirst());
}

TEST_F(FleetMembersTest, APeerJoinsOnceItHasParametersOfThreeMembers) {
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

TEST_F(FleetMembersTest, APeerThatWaitsForAdmissionKeepsNoOtherFromParameters) {
  Assemble(4);
  Run(10);
  ASSERT_TRUE(fleet_->RequestStop(now_).ok());  // no peer is admitted any more
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

// The checkpoint may be of an incarnation that never trained, or of another
// fleet.
TEST_F(FleetMembersTest, TheCheckpointOfAPeerThatIsNoMemberDoesNotCount) {
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

TEST_F(FleetMembersTest, APeerThatDoesNotFitTheGraphWaitsForOthers) {
  Assemble(4, "hypercube");
  Run(10);
  for (int id = 5; id <= 8; ++id) {
    RegisterReady(id);
    EXPECT_EQ(Members().size(), 4);
    Run(2);
  }
  EXPECT_EQ(Members().size(), 8);
}

// Parameters that the peer got now would be old by then.
TEST_F(FleetMembersTest,
       APeerThatWaitsForOthersGetsParametersOnceTheyHaveCome) {
  Assemble(4, "hypercube");
  Run(10);
  const auto come = [this](int id) {
    ASSERT_TRUE(Register(id, 100 + id).ok());
    beats_[id] = Beat(id, 100 + id);
    Run(2);
  };
  const auto asked = [this] {
    size_t asked = 0;
    for (int i = 1; i <= 4; ++i) asked += answers_[i].joiners.size();
    return asked;
  };
  fleet_->TakeNotes();
  for (int id = 5; id <= 7; ++id) {
    come(id);
    EXPECT_THAT(answers_[5].donors, IsEmpty()) << id;
    EXPECT_EQ(asked(), 0) << id;
  }
  // One line for each size that no fleet can have.
  EXPECT_THAT(fleet_->TakeNotes(),
              ElementsAre(HasSubstr("waits to join with others: a fleet of 5"),
                          HasSubstr("a fleet of 6"), HasSubstr("of 7")));
  come(8);
  come(9);
  for (int id = 5; id <= 8; ++id) EXPECT_EQ(answers_[id].donors.size(), 3);
  EXPECT_THAT(answers_[9].donors, IsEmpty()) << "a fleet of 9 cannot be";
  EXPECT_EQ(asked(), 12);
  // One peer of the group is gone.
  beats_.erase(8);
  beats_.erase(9);
  Run(6);
  EXPECT_THAT(answers_[5].donors, IsEmpty());
}

TEST_F(FleetMembersTest, AsManyWaitingPeersJoinAsFitTheGraph) {
  Assemble(4, "hypercube");
  Run(10);
  for (int id = 5; id <= 9; ++id) RegisterReady(id);
  Run(2);
  EXPECT_EQ(Members().size(), 8);
  Run(3);
  EXPECT_EQ(Members().size(), 8);
}

TEST_F(FleetMembersTest, PeersThatComeTogetherDoNotExceedMaxPeers) {
  options_.max_peers = 6;
  Assemble(4);
  Run(10);
  for (int id = 5; id <= 8; ++id) RegisterReady(id);
  Run(20);
  EXPECT_EQ(Members().size(), 6);
}

// A restarted service has heard no round yet.
TEST_F(FleetMembersTest, ACheckpointIsJudgedOnlyOnceTheOthersAreHeard) {
  Assemble(4);
  Run(10);
  fleet_ = *Fleet::Create(options_, fleet_->record(), now_);
  ASSERT_TRUE(Register(3, 203, false, {100, 190}).ok());
  beats_[3] = Beat(3, 203);
  Run(2);
  ASSERT_TRUE(answers_[3].view);
  EXPECT_EQ(answers_[3].view->resume_round, 190);
}

// The first peer that is heard may be far behind the others.
TEST_F(FleetMembersTest, ACheckpointBeyondAStragglerIsNotGivenUp) {
  Assemble(4);
  Run(10);
  beats_[4].round_begun = beats_[4].report.round = 20;
  fleet_ = *Fleet::Create(options_, fleet_->record(), now_);
  ASSERT_TRUE(Register(3, 203, false, {100, 190}).ok());
  now_ += absl::Milliseconds(1);
  ASSERT_TRUE(fleet_->Heartbeat(beats_[4], now_).ok());
  beats_[3] = Beat(3, 203);
  Run(2);
  ASSERT_TRUE(answers_[3].view);
  EXPECT_EQ(answers_[3].view->resume_round, 190);
}

// Peers wait for parameters of a member that is far behind, and that dies too.
TEST_F(FleetMembersTest, ACheckpointBeyondTheOthersCountsIfAllBeginTogether) {
  Assemble(3);
  Run(10);
  const FleetHeartbeat straggler = beats_[1];
  ASSERT_TRUE(Register(2, 202, false, {100'000}).ok());
  ASSERT_TRUE(Register(3, 203, false, {100'000}).ok());
  beats_ = {{1, straggler}, {2, Beat(2, 202)}, {3, Beat(3, 203)}};
  Run(2);
  EXPECT_FALSE(answers_[2].view);
  EXPECT_FALSE(answers_[2].donors.empty());
  ASSERT_TRUE(Register(1, 201, false, {100}).ok());
  beats_[1] = Beat(1, 201);
  Run(1);
  ASSERT_TRUE(answers_[2].view);
  EXPECT_EQ(answers_[2].view->resume_round, 100'000);
}

// The fleet went back behind a checkpoint that this peer could not remove.
TEST_F(FleetMembersTest, ACheckpointBeyondAllOtherPeersIsNotUsed) {
  Assemble(4);
  Run(10);
  for (const uint64_t saved : {uint64_t{150}, uint64_t{100'000}}) {
    ASSERT_TRUE(Register(3, 200 + saved, false, {100, saved}).ok());
    beats_[3] = Beat(3, 200 + saved);
    Run(2);
    ASSERT_TRUE(answers_[3].view);
    EXPECT_EQ(answers_[3].view->resume_round, saved == 150 ? 150 : 100);
  }
  ASSERT_TRUE(Register(3, 400, false, {100'000}).ok());
  beats_[3] = Beat(3, 400);
  Run(2);
  EXPECT_FALSE(answers_[3].view);
  EXPECT_EQ(answers_[3].donors.size(), 3);
}

TEST_F(FleetMembersTest, AFullFleetAndOneThatCannotGrowRefuseAnotherPeer) {
  options_.max_peers = 4;
  Assemble(4);
  Run(10);
  const auto full = Register(7, 107);
  EXPECT_THAT(std::string(full.status().message()), HasSubstr("--max-peers"));
  options_.max_peers = 0;
  fleet_.reset();
  beats_.clear();
  options_.schedule.edges = "0-1 1-2 2-3 3-0";
  Assemble(4, "edge-list");
  Run(10);
  EXPECT_EQ(Register(7, 107).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

// Records of former members say which of them may not return yet.  They are
// kept as far as there is room.
TEST_F(FleetMembersTest, ARefusedPeerReplacesNoRecordOfAFormerMember) {
  constexpr size_t kMax = 2 * kMaxPeers;
  options_.max_peers = 4;
  Assemble(4);
  Run(10);
  FleetRecord full = fleet_->record();
  for (uint64_t id = 5; full.members.size() < kMax; ++id) {
    MemberRecord gone;
    gone.id = {id};
    gone.incarnation_id = 100 + id;
    gone.address = "a:1";
    gone.standing = Standing::kEvicted;
    full.members.push_back(gone);
  }
  fleet_ = *Fleet::Create(options_, full, now_);
  Run(1);
  const auto kept = [this](uint64_t id) {
    return std::ranges::any_of(
        fleet_->record().members,
        [id](const MemberRecord& m) { return m.id.value == id; });
  };
  EXPECT_EQ(Register(50'000, 1).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(fleet_->record().members.size(), kMax);
  EXPECT_TRUE(kept(5));
  options_.max_peers = 5;
  fleet_ = *Fleet::Create(options_, full, now_);
  Run(1);
  ASSERT_TRUE(Register(50'000, 1).ok());
  EXPECT_EQ(fleet_->record().members.size(), kMax);
  EXPECT_TRUE(kept(50'000));
  EXPECT_FALSE(kept(5));
  EXPECT_TRUE(kept(6));
}

// All machines go and one stays away.  Two minutes after the last of the others
// is back, they begin from what they share.
TEST_F(FleetMembersTest, AMemberThatStaysAwayDoesNotKeepAFleetFromBeginning) {
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

// A peer that came back and died again counts as little as one that stays away:
// with it the fleet would have three peers, which no hypercube has.
TEST_F(FleetMembersTest, AMemberThatReturnedAndDiedAgainIsNotWaitedFor) {
  Assemble(4, "hypercube");
  Run(10);
  beats_.clear();
  Run(300);
  for (const int id : {1, 2, 3}) {
    ASSERT_TRUE(Register(id, 200 + id, false, {180}).ok());
    beats_[id] = Beat(id, 200 + id);
    beats_[id].round_begun = beats_[id].report.round = 0;
  }
  Run(130);
  EXPECT_FALSE(answers_[1].view);  // a hypercube has no three peers
  beats_.erase(3);
  Run(30);
  EXPECT_THAT(Members(), ElementsAre(1, 2));
  EXPECT_TRUE(fleet_->record().view.MakeSchedule().ok());
  for (const int id : {1, 2}) {
    ASSERT_TRUE(answers_[id].view) << id;
    EXPECT_EQ(answers_[id].view->resume_round, 180) << id;
  }
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
  // The view begins at the others' coming round, not where view 1 began.
  EXPECT_EQ(answers_[2].view->epoch, 2);
  EXPECT_GT(answers_[2].view->from_round, 200);
}

TEST_F(FleetMembersTest, AnotherIncarnationOfAMemberMakesAnotherView) {
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

TEST_F(FleetMembersTest,
       APeerThatWaitsForAdmissionHearsThatTheOthersHaveEnded) {
  Assemble(4);
  Run(10);
  ASSERT_TRUE(Register(2, 202).ok());
  beats_[2] = Beat(2, 202);
  beats_[2].round_begun = beats_[2].report.round = 0;
  Run(1);
  for (const int id : {1, 3}) beats_[id].finished = true;
  Run(1);
  EXPECT_FALSE(answers_[2].stop.committed) << "peer 4 trains";
  beats_[4].finished = true;
  Run(2);
  EXPECT_TRUE(answers_[2].stop.committed);
  EXPECT_FALSE(fleet_->Finished());
  beats_[2].finished = true;
  Run(1);
  EXPECT_TRUE(fleet_->Finished());
}

// Others may be on their way to continue the run, but the wait is bounded.
TEST_F(FleetMembersTest, APeerThatReturnsAfterTheEndWaitsTwoMinutesForOthers) {
  Assemble(4);
  Run(10);
  beats_.erase(2);
  Run(1);
  for (auto& [id, beat] : beats_) beat.finished = true;
  Run(1);
  beats_.clear();
  ASSERT_TRUE(Register(2, 202, false, {100}).ok());
  beats_[2] = Beat(2, 202);
  beats_[2].round_begun = beats_[2].report.round = 0;
  Run(115);
  EXPECT_FALSE(answers_[2].stop.committed);
  Run(10);
  EXPECT_TRUE(answers_[2].stop.committed);
  EXPECT_FALSE(answers_[2].view);
}

}  // namespace fleet_members_test
}  // namespace gossamer
