// The round that a fleet is taken to be in, whatever one of its members
// reports.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tests/topology/fleet/beating_fleet.h"
#include "topology/fleet/protocol.h"

namespace gossamer {
namespace fleet_rounds_test {

// A bound on the rounds that one peer's word may reach.
constexpr uint64_t kTooFar = 2'000'000;
constexpr uint64_t kLong = 5'000'000;  // rounds since the first view

class FleetRoundsTest : public BeatingFleet {
 protected:
  void Restart() { fleet_ = *Fleet::Create(options_, fleet_->record(), now_); }
  // All peers have trained on by one view.
  void SetRounds(uint64_t round) {
    for (auto& [id, beat] : beats_) {
      beat.round_begun = beat.report.round = round;
    }
  }
  FleetAnswer Hear(const FleetHeartbeat& h) {
    now_ += absl::Milliseconds(1);
    auto answer = fleet_->Heartbeat(h, now_);
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.ok() ? *std::move(answer) : FleetAnswer{};
  }
  // Returns a heartbeat of peer 3, which claims a round far beyond all others.
  FleetHeartbeat Lie(uint64_t round) const {
    FleetHeartbeat h = beats_.at(3);
    h.round_begun = h.report.round = round;
    return h;
  }
  uint64_t ViewBegins() const { return fleet_->record().view.from_round; }
};

TEST_F(FleetRoundsTest, APeerThatClaimsAFarRoundPutsNoStopOutOfReach) {
  for (const bool restarted : {false, true}) {
    Assemble(3);
    if (restarted) Restart();
    FleetHeartbeat h = Lie(kMaxRound);
    h.request_stop = true;
    EXPECT_LE(Hear(h).fleet_round, kTooFar);
    ASSERT_NE(fleet_->record().stop.round, 0u);
    EXPECT_LT(fleet_->record().stop.round, kTooFar) << restarted;
    EXPECT_FALSE(fleet_->record().stop.committed);
  }
}

// All later views would have to begin after such a view.
TEST_F(FleetRoundsTest, APeerThatClaimsAFarRoundPutsNoViewOutOfReach) {
  for (const uint64_t far : {kMaxRound, kMaxRound - 9}) {
    Assemble(3);
    const View known = fleet_->record().view;
    Restart();
    FleetHeartbeat h = Lie(far);
    h.view_generation = known.generation;
    h.view_epoch = known.epoch + 1;
    Hear(h);
    EXPECT_LT(ViewBegins(), kTooFar);
    Hear(beats_[1]);
    Hear(beats_[2]);
    Hear(h);
    EXPECT_EQ(fleet_->record().view.epoch, known.epoch + 1);
    EXPECT_LT(ViewBegins(), kTooFar);
  }
}

TEST_F(FleetRoundsTest, ALonePeersStopIsNotBeyondTheLargestRound) {
  Assemble(1);
  beats_[1].round_begun = beats_[1].report.round = kMaxRound;
  Hear(beats_[1]);
  ASSERT_TRUE(fleet_->RequestStop(now_).ok());
  EXPECT_LE(fleet_->record().stop.round, kMaxRound);
}

// The service's disk knows only where the view began, long ago.
TEST_F(FleetRoundsTest, AFarRoundCountsOnceTwoPeersReportIt) {
  Assemble(3);
  const View known = fleet_->record().view;
  SetRounds(kLong);
  Restart();
  // The peer has a view that the disk has forgotten.
  FleetHeartbeat h = beats_[1];
  h.view_generation = known.generation;
  h.view_epoch = known.epoch + 1;
  EXPECT_FALSE(Hear(h).view);
  Hear(beats_[2]);
  EXPECT_EQ(fleet_->record().view.epoch, known.epoch);
  EXPECT_EQ(Hear(beats_[3]).fleet_round, kLong);
  EXPECT_TRUE(Hear(h).view);
  EXPECT_GT(ViewBegins(), kLong);
  EXPECT_GT(*fleet_->RequestStop(now_), kLong);
}

// The stop of the others does not leave out the peer that is far ahead.
TEST_F(FleetRoundsTest, AStopIsNotCommittedUntilAFarRoundIsConfirmed) {
  Assemble(3);
  SetRounds(kLong);
  // Peers 2 and 3 are leaving.
  FleetRecord record = fleet_->record();
  for (const int i : {1, 2}) record.members[i].standing = Standing::kLeaving;
  record.view.members.resize(1);
  record.view.departures = {{.id = {2}, .round = 2, .address = "host:2"},
                            {.id = {3}, .round = 2, .address = "host:3"}};
  fleet_ = *Fleet::Create(options_, record, now_);
  beats_[1].request_stop = true;
  EXPECT_FALSE(Hear(beats_[1]).stop.committed);
}

TEST_F(FleetRoundsTest, TheRoundOfTheOnlyLivePeerCountsAfterALease) {
  for (const int members : {2, 3}) {
    Assemble(members);
    SetRounds(kLong);
    Restart();
    const FleetHeartbeat left = beats_[1];
    Hear(left);
    now_ += options_.lease + absl::Seconds(1);
    Hear(left);
    EXPECT_GT(*fleet_->RequestStop(now_), kLong) << members;
  }
}

// Otherwise the returning peer would train alone up to the other's round.
TEST_F(FleetRoundsTest, AReturningPeerBeginsAtTheFarRoundOfTheOther) {
  Assemble(2);
  SetRounds(kLong);
  Restart();
  ASSERT_TRUE(Register(2, 202, false, {kLong - 10}).ok());
  beats_[2] = Beat(2, 202);
  SetRounds(0);
  beats_[1].round_begun = beats_[1].report.round = kLong;
  Run(1);
  Run(1);
  ASSERT_TRUE(answers_[2].view);
  EXPECT_GT(ViewBegins(), kLong);
  EXPECT_EQ(answers_[2].view->resume_round, kLong - 10);
  // The returning peer has not begun yet, and the other one is where it was.
  beats_[2].round_begun = beats_[2].report.round = 0;
  Hear(beats_[2]);
  EXPECT_GE(Hear(beats_[1]).fleet_round, kLong);
}

TEST_F(FleetRoundsTest, OnePeersClaimDoesNotRaiseTheFleetRound) {
  Assemble(4);
  Run(2);
  const uint64_t honest = beats_[1].round_begun;
  const FleetAnswer answer = Hear(Lie(honest + 900'000));
  EXPECT_EQ(answer.fleet_round, honest);
  EXPECT_EQ(answer.second_round, honest);
  // Views and stops come after the round of a peer that may really be there.
  EXPECT_GT(*fleet_->RequestStop(now_), honest + 900'000);
}

// No peer continues from the rounds of dead peers.
TEST_F(FleetRoundsTest, OnlyPeersThatAreHeardCountForTheFleetRound) {
  Assemble(4);
  Run(2);
  for (const int ahead : {3, 4}) {
    beats_[ahead].round_begun = beats_[ahead].report.round = 1000;
  }
  Run(1);
  EXPECT_EQ(answers_[4].fleet_round, 1010u);
  beats_.erase(3);
  beats_.erase(4);
  Run(6);
  EXPECT_EQ(answers_[2].fleet_round, beats_[1].round_begun);
}

// Of two peers the service cannot say which one is right.
TEST_F(FleetRoundsTest, TheFurtherOfTwoPeersSetsTheFleetRound) {
  Assemble(2);
  beats_[2].round_begun = beats_[2].report.round = 1000;
  Run(1);
  EXPECT_EQ(Hear(beats_[1]).fleet_round, 1010u);
}

}  // namespace fleet_rounds_test
}  // namespace gossamer
