// A service that comes back with its newest record, with an old one, or with
// none.

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "topology/fleet/fleet.h"
#include "topology/fleet/views.h"

namespace gossamer {
namespace old_disk_test {

Registration Peer(uint64_t id, uint64_t incarnation,
                  const std::string& address) {
  Registration r;
  r.run_id = "run";
  r.peer_id = {id};
  r.incarnation_id = incarnation;
  r.address = address;
  return r;
}

FleetHeartbeat Beat(uint64_t id, uint64_t incarnation, uint64_t round) {
  FleetHeartbeat h;
  h.run_id = "run";
  h.peer_id = {id};
  h.incarnation_id = incarnation;
  h.report.round = h.round_begun = round;
  return h;
}

// Returns the heartbeat of a peer that trains by the view `epoch`.
FleetHeartbeat Training(uint64_t id, uint64_t incarnation, uint64_t round,
                        uint64_t epoch) {
  FleetHeartbeat h = Beat(id, incarnation, round);
  h.view_epoch = epoch;
  return h;
}

// Returns the heartbeat of peer `id` that stops at `stop` if all do.
FleetHeartbeat Agreeing(uint64_t id, uint64_t round, uint64_t stop) {
  FleetHeartbeat h = Beat(id, 100 + id, round);
  h.acknowledged_stop = stop;
  return h;
}

// Peers 1 .. n are in the first view with incarnation ids 101 .. 100 + n.
class OldDiskTest : public testing::Test {
 protected:
  void Begin(int n, std::optional<FleetRecord> stored = std::nullopt,
             bool elastic = true) {
    FleetOptions options;
    options.elastic = elastic;
    options.run_id = "run";
    options.expected = n;
    options.lease = absl::Seconds(30);
    auto fleet = Fleet::Create(options, std::move(stored), now_);
    ASSERT_TRUE(fleet.ok()) << fleet.status();
    fleet_ = *std::move(fleet);
  }
  void Assemble(int n) {
    Begin(n);
    for (int i = 1; i <= n; ++i) Register(i, 100 + i);
  }
  void Register(uint64_t id, uint64_t incarnation, bool trains = false,
                std::vector<uint64_t> checkpoints = {}) {
    Registration r = Peer(id, incarnation, "host:" + std::to_string(id));
    r.has_parameters = r.trains = trains;
    r.checkpoint_rounds = std::move(checkpoints);
    const auto registered = fleet_->Register(r, now_);
    ASSERT_TRUE(registered.ok()) << registered.status();
  }
  // Registers a peer that trains by `view` and returns it.
  absl::StatusOr<PeerId> ReturnView(uint64_t id, uint64_t incarnation,
                                    const View& view) {
    Registration r = Peer(id, incarnation, "host:" + std::to_string(id));
    r.has_parameters = r.trains = true;
    r.view = view;
    return fleet_->Register(r, now_);
  }
  // Lets peers 1 .. n, which train by `view`, register with a service that does
  // not know it.
  void TakeBack(int n, const View& view) {
    for (int i = 1; i <= n; ++i) {
      FleetHeartbeat h = Training(i, 100 + i, 500, view.epoch);
      h.view_generation = view.generation;
      EXPECT_EQ(fleet_->Heartbeat(h, now_).status().code(),
                absl::StatusCode::kNotFound);
      const auto again = ReturnView(i, 100 + i, view);
      ASSERT_TRUE(again.ok()) << again.status();
      EXPECT_EQ(again->value, i);
      EXPECT_FALSE(Hear(h).view) << "it has the newest";
      EXPECT_EQ(fleet_->record().view.members, view.members);
      EXPECT_TRUE(Record(i).in_view);
    }
  }
  FleetAnswer Hear(const FleetHeartbeat& h) {
    now_ += absl::Milliseconds(1);
    auto answer = fleet_->Heartbeat(h, now_);
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.ok() ? *std::move(answer) : FleetAnswer{};
  }
  const MemberRecord& Record(size_t id) const {
    return fleet_->record().members[id - 1];
  }

  absl::Time now_ = absl::FromUnixSeconds(1'000'000);
  std::unique_ptr<Fleet> fleet_;
};

// Both processes would give their next view the same number, and peers would
// stay apart.
TEST_F(OldDiskTest, TwoStartsFromOneOldDiskHaveDifferentGenerations) {
  Assemble(2);
  const FleetRecord backup = fleet_->record();
  Begin(2, backup);
  const uint64_t first = fleet_->record().generation;
  now_ += absl::Seconds(1);
  Begin(2, backup);
  EXPECT_GT(fleet_->record().generation, first);
  now_ -= absl::Hours(1);  // a clock that is put back
  Begin(2, backup);
  EXPECT_GT(fleet_->record().generation, backup.generation);
}

// Peers would take none of the service's views, so no peer could join or be
// evicted.
TEST_F(OldDiskTest, AServiceWhoseClockIsBehindOvertakesItsPeersViews) {
  for (const bool alike : {false, true}) {
    Assemble(3);
    const FleetRecord backup = fleet_->record();
    now_ += alike ? -absl::Hours(24) : absl::Seconds(1);
    Begin(3, backup);
    for (int i = 1; i <= 3; ++i) Hear(Training(i, 100 + i, 50, 1));
    Register(2, 202, /*trains=*/false, {40});
    Hear(Training(1, 101, 51, 1));
    const View later = fleet_->record().view;
    ASSERT_EQ(later.epoch, 2u);
    const uint64_t registered = fleet_->record().generation;
    if (!alike) now_ -= absl::Hours(24);
    Begin(3, backup);
    ASSERT_EQ(fleet_->record().generation == later.generation, alike);
    ASSERT_LE(fleet_->record().generation, later.generation);
    const auto has_later = [&](uint64_t id, uint64_t incarnation) {
      FleetHeartbeat h = Training(id, incarnation, 60, 2);
      h.view_generation = later.generation;
      h.registered_generation = registered;
      return h;
    };
    // The service knows nothing of this incarnation, which is the next one
    // after that of its record.
    EXPECT_EQ(fleet_->Heartbeat(has_later(2, 202), now_).status().code(),
              absl::StatusCode::kNotFound);
    EXPECT_EQ(fleet_->Heartbeat(has_later(1, 101), now_).status().code(),
              absl::StatusCode::kNotFound);
    const uint64_t version = fleet_->version();
    ASSERT_TRUE(ReturnView(1, 101, later).ok());
    EXPECT_GT(fleet_->version(), version) << "it is saved before it is used";
    EXPECT_GT(fleet_->record().generation, later.generation);
    ASSERT_TRUE(ReturnView(2, 202, later).ok());
    for (const auto& [id, incarnation] :
         {std::pair(1, 101), {2, 202}, {3, 103}}) {
      EXPECT_FALSE(Hear(has_later(id, incarnation)).view) << id;
    }
    // Peer 3 dies.
    now_ += absl::Minutes(1);
    for (int turn = 0; turn < 2; ++turn) {
      for (const auto& [id, incarnation] : {std::pair(1, 101), {2, 202}}) {
        FleetHeartbeat h = has_later(id, incarnation);
        h.suspected = {{3}};
        Hear(h);
      }
    }
    const FleetAnswer answer = Hear(has_later(1, 101));
    ASSERT_TRUE(answer.view);
    EXPECT_TRUE(answer.view->NewerThan(later));
    EXPECT_EQ(answer.view->members.size(), 2u);
  }
}

// The view cannot be returned, or was invented.
TEST_F(OldDiskTest, APeerThatCannotHandItsViewBackTrainsOn) {
  Assemble(3);
  Begin(3, fleet_->record());
  FleetHeartbeat h = Training(1, 101, 50, 9);
  h.view_generation = fleet_->record().generation + 1'000'000;
  EXPECT_EQ(fleet_->Heartbeat(h, now_).status().code(),
            absl::StatusCode::kNotFound);
  const uint64_t generation = fleet_->record().generation;
  Register(1, 101, /*trains=*/true);
  EXPECT_FALSE(Hear(h).view);
  EXPECT_EQ(fleet_->record().generation, generation);
}

TEST_F(OldDiskTest, ARestartedServiceGoesOnUnnoticed) {
  Assemble(3);
  for (int i = 1; i <= 3; ++i) Hear(Beat(i, 100 + i, 50));
  const FleetRecord kept = fleet_->record();
  Begin(3, kept);
  const uint64_t generation = fleet_->record().generation;
  EXPECT_GT(generation, kept.generation);
  FleetHeartbeat h = Beat(1, 101, 60);
  h.view_generation = kept.generation;
  h.view_epoch = 1;
  EXPECT_FALSE(Hear(h).view);
  // A view made now is newer than any view of the service's earlier process.
  Registration r = Peer(2, 202, "elsewhere:1");
  r.checkpoint_rounds = {5};
  ASSERT_TRUE(fleet_->Register(r, now_).ok());
  EXPECT_FALSE(Hear(h).view) << "peer 3 may be further";
  Hear(Beat(3, 103, 60));
  const FleetAnswer answer = Hear(h);
  ASSERT_TRUE(answer.view);
  EXPECT_EQ(answer.view->generation, generation);
  EXPECT_EQ(answer.view->epoch, 2);
}

// Some peers may have heard that all agreed on the stop, and end there; without
// it the others would train on without them.
TEST_F(OldDiskTest, AStopThatAnOldDiskForgotStaysAtItsRound) {
  Assemble(3);
  for (int i = 1; i <= 3; ++i) Hear(Beat(i, 100 + i, 50));
  const FleetRecord backup = fleet_->record();
  const auto stop = fleet_->RequestStop(now_);
  ASSERT_TRUE(stop.ok());
  Begin(3, backup);
  EXPECT_EQ(Hear(Beat(1, 101, 51)).stop.round, 0u);
  StopState again = Hear(Agreeing(2, 52, *stop)).stop;
  EXPECT_EQ(again.round, *stop);
  EXPECT_FALSE(again.committed);
  for (const int i : {1, 3}) again = Hear(Agreeing(i, 53, *stop)).stop;
  EXPECT_EQ(again.round, *stop);
  EXPECT_TRUE(again.committed);
}

// The disk knows an earlier incarnation of the peer; another peer may have
// ended at the stop.
TEST_F(OldDiskTest, AForgottenStopIsKnownFromAPeerThatRegistersAgain) {
  for (const bool another_waits : {false, true}) {
    Assemble(3);
    Begin(3, fleet_->record());
    Register(2, 202, /*trains=*/true);
    FleetHeartbeat h = Training(2, 202, 52, 1);
    h.acknowledged_stop = 60;
    now_ += absl::Milliseconds(1);
    if (another_waits) Register(3, 203, /*trains=*/false, {5});
    const auto answer = fleet_->Heartbeat(h, now_);
    ASSERT_TRUE(answer.ok());
    EXPECT_EQ(Record(2).in_view, !another_waits);
    EXPECT_EQ(answer->stop.round, 60u);
    EXPECT_FALSE(answer->stop.committed);
  }
}

// The stop of a peer that is no member any more belongs to the past.
TEST_F(OldDiskTest, AnEvictedPeerProposesNoStop) {
  Assemble(3);
  FleetRecord record = fleet_->record();
  record.members[2].standing = Standing::kEvicted;
  record.members[2].in_view = false;
  record.view.members.pop_back();
  Begin(3, record);
  FleetHeartbeat h = Training(3, 103, 52, 1);
  h.acknowledged_stop = 60;
  EXPECT_TRUE(Hear(h).outside);
  EXPECT_EQ(fleet_->record().stop.round, 0u);
}

TEST_F(OldDiskTest, AForgottenStopThatSomebodyIsPastMovesOn) {
  Assemble(3);
  Begin(3, fleet_->record());
  EXPECT_EQ(Hear(Agreeing(2, 52, 60)).stop.round, 60u);
  EXPECT_GT(Hear(Beat(1, 101, 61)).stop.round, 61u);
}

TEST_F(OldDiskTest, TheLaterOfTwoForgottenStopsCounts) {
  Assemble(3);
  Begin(3, fleet_->record());
  // Peer 2 has not heard of the next stop.
  EXPECT_EQ(Hear(Agreeing(2, 40, 49)).stop.round, 49u);
  EXPECT_EQ(Hear(Agreeing(1, 48, 73)).stop.round, 73u);
}

// The record is from before the peer's admission; its own heartbeat is newer.
TEST_F(OldDiskTest, ATrainingPeerIsNotTakenForOneWithoutParameters) {
  Assemble(3);
  for (int i = 1; i <= 3; ++i) Hear(Training(i, 100 + i, 50, 1));
  Register(3, 203);
  const FleetRecord backup = fleet_->record();
  ASSERT_TRUE(backup.members[2].needs_parameters);
  FleetHeartbeat ready = Beat(3, 203, 0);
  ready.ready = true;
  Hear(Training(1, 101, 60, 1));
  Hear(ready);
  const uint64_t epoch = fleet_->record().view.epoch;
  ASSERT_TRUE(Record(3).in_view);
  Begin(3, backup);
  EXPECT_TRUE(Hear(Training(3, 203, 70, epoch)).donors.empty());
  Hear(Training(1, 101, 70, epoch));
  EXPECT_TRUE(Record(3).in_view);
  EXPECT_FALSE(Record(3).needs_parameters);
}

// Taken for a beginning fleet, it would begin again at round 1.
TEST_F(OldDiskTest, AFleetThatRegistersAgainWhileItTrainsGoesOn) {
  Assemble(3);
  const FleetRecord backup = fleet_->record();
  const uint64_t from_round = backup.view.from_round;
  Begin(3, backup);
  for (int i = 1; i <= 3; ++i) Register(i, 200 + i, /*trains=*/true);
  EXPECT_EQ(fleet_->record().view.epoch, backup.view.epoch);
  for (int turn = 0; turn < 2; ++turn) {
    for (int i = 1; i <= 3; ++i) Hear(Training(i, 200 + i, 500, 7));
  }
  for (int i = 1; i <= 3; ++i) {
    EXPECT_TRUE(Record(i).in_view);
    EXPECT_EQ(Record(i).resume_round, 0);
  }
  EXPECT_EQ(fleet_->record().view.from_round, from_round);
}

// Otherwise the peer with the forgotten view would train by it for good, and
// the others by the one before.
TEST_F(OldDiskTest, AForgottenViewGivesWayToANewOne) {
  Assemble(3);
  for (int i = 1; i <= 3; ++i) Hear(Training(i, 100 + i, 50, 1));
  const FleetRecord backup = fleet_->record();
  Begin(3, backup);
  FleetHeartbeat h = Training(2, 102, 60, 2);
  h.view_generation = backup.generation;
  EXPECT_FALSE(Hear(h).view) << "the others may be further";
  for (const int i : {1, 3}) Hear(Training(i, 100 + i, 60, 1));
  const FleetAnswer answer = Hear(h);
  ASSERT_TRUE(answer.view);
  EXPECT_EQ(answer.view->generation, fleet_->record().generation);
  EXPECT_GT(answer.view->from_round, 60u);
  // This happens once: a claim to views that this process never made is not
  // believed.
  h.view_generation = answer.view->generation;
  h.view_epoch = 1000;
  EXPECT_EQ(fleet_->Heartbeat(h, now_).status().code(),
            absl::StatusCode::kNotFound);
  Register(2, 102, /*trains=*/true);
  EXPECT_FALSE(Hear(h).view);
  h.view_generation = backup.generation;
  EXPECT_TRUE(Hear(h).view);
  EXPECT_EQ(fleet_->record().view.epoch, answer.view->epoch);
}

// The service is off the data path, even if nothing is left of its state.
TEST_F(OldDiskTest, ATrainingPeerHandsALostViewBack) {
  for (const bool elastic : {true, false}) {
    for (const bool some : {true, false}) {
      for (const absl::Duration clock : {-absl::Hours(1), absl::Hours(1)}) {
        Begin(4, std::nullopt, elastic);
        Register(1, 101);
        Register(2, 102);
        const FleetRecord early = fleet_->record();
        Register(3, 103);
        Register(4, 104);
        const View view = fleet_->record().view;
        ASSERT_EQ(view.epoch, 1u);
        now_ += clock;
        Begin(4, some ? std::optional(early) : std::nullopt, elastic);
        TakeBack(4, view);
        EXPECT_EQ(fleet_->record().view.epoch, 1u);
        EXPECT_EQ(fleet_->record().stop.round, 0u);
        EXPECT_EQ(fleet_->TakeNotes().size(), 1u);
        if (!elastic) continue;
        // Views made from now on are newer than those that peers have.
        Register(2, 202, /*trains=*/false, {400});
        FleetHeartbeat h = Training(1, 101, 501, 1);
        h.view_generation = view.generation;
        const FleetAnswer answer = Hear(h);
        ASSERT_TRUE(answer.view);
        EXPECT_TRUE(answer.view->NewerThan(view));
        EXPECT_EQ(answer.view->epoch, 2u);
        EXPECT_EQ(answer.view->members.size(), 4u);
      }
    }
  }
}

// Members that are slow to register again stay members.
TEST_F(OldDiskTest, NoMemberIsEvictedWhileMembersRegisterAgain) {
  Assemble(4);
  const View view = fleet_->record().view;
  now_ += absl::Hours(1);
  Begin(4);
  now_ += absl::Minutes(10);
  ASSERT_TRUE(ReturnView(1, 101, view).ok());
  FleetHeartbeat h = Training(1, 101, 500, 1);
  h.view_generation = view.generation;
  h.suspected = {{2}, {3}, {4}};
  Hear(h);
  now_ += absl::Seconds(29);
  Hear(h);
  EXPECT_EQ(fleet_->record().view.members, view.members);
  EXPECT_EQ(fleet_->registered(), 4);
}

TEST_F(OldDiskTest, AStopThatALostDiskForgotIsProposedAtTheFirstHeartbeat) {
  Assemble(3);
  const View view = fleet_->record().view;
  Begin(3);
  ASSERT_TRUE(ReturnView(2, 102, view).ok());
  FleetHeartbeat h = Training(2, 102, 52, 1);
  h.view_generation = view.generation;
  h.acknowledged_stop = 60;
  EXPECT_EQ(Hear(h).stop.round, 60u);
}

// The peer came first, so it was taken for one of a beginning fleet.
TEST_F(OldDiskTest, APeerThatRegisteredFirstStillJoinsAFleetUnderWay) {
  Assemble(3);
  const View view = fleet_->record().view;
  Begin(3);
  Register(2, 202);
  const uint64_t registered = fleet_->record().generation;
  ASSERT_TRUE(ReturnView(1, 101, view).ok());
  FleetHeartbeat h = Beat(2, 202, 0);
  h.registered_generation = registered;
  EXPECT_EQ(fleet_->Heartbeat(h, now_).status().code(),
            absl::StatusCode::kNotFound);
  Register(2, 202);
  EXPECT_TRUE(Record(2).needs_parameters);
  FleetHeartbeat first = Training(1, 101, 500, 1);
  first.view_generation = view.generation;
  Hear(first);
  ASSERT_TRUE(ReturnView(3, 103, view).ok());
  h.ready = true;
  Hear(h);
  EXPECT_TRUE(Record(2).in_view);
  EXPECT_EQ(fleet_->record().view.epoch, 2u);
}

// The incarnation that leaves by the newest view has ended; the next one has
// come to an older view that was returned before.
TEST_F(OldDiskTest, ANewIncarnationIsNotTakenForTheOneThatLeft) {
  Assemble(3);
  const View view = fleet_->record().view;
  View newest = view;
  newest.epoch = 2;
  newest.from_round = 10;
  newest.members.pop_back();
  newest.departures = {{.id = {3}, .round = 10, .address = "host:3"}};
  Begin(3);
  ASSERT_TRUE(ReturnView(1, 101, view).ok());
  Register(3, 203, /*trains=*/false, {5});
  ASSERT_TRUE(ReturnView(2, 102, newest).ok());
  EXPECT_EQ(fleet_->record().view.members.size(), 2u);
  EXPECT_TRUE(fleet_->record().view.departures.empty());
  EXPECT_TRUE(Hear(Beat(3, 203, 0)).outside);
  Register(3, 303);
  FleetHeartbeat h = Beat(3, 303, 0);
  h.ready = true;
  for (int times = 0; times < 3; ++times) {
    for (int i = 1; i <= 2; ++i) {
      FleetHeartbeat training = Training(i, 100 + i, 500, 9);
      training.view_generation = fleet_->record().generation;
      Hear(training);
    }
    Hear(h);
  }
  EXPECT_EQ(fleet_->record().view.members.size(), 3u);
}

// A service with an older disk hears of both processes of a peer anew, the one
// that has just begun and the one that trains.
TEST_F(OldDiskTest, TheOlderOfTwoProcessesDoesNotComeBack) {
  Assemble(3);
  const View view = fleet_->record().view;
  Begin(3, fleet_->record());
  Register(2, 202);
  EXPECT_EQ(ReturnView(2, 102, view).status().code(),
            absl::StatusCode::kAborted);
  EXPECT_EQ(Record(2).incarnation_id, 202u);
  // Of two that train it does not know.
  ASSERT_TRUE(ReturnView(3, 303, view).ok());
  EXPECT_TRUE(ReturnView(3, 103, view).ok());
}

TEST_F(OldDiskTest, APeerThatGoesOnIsRefusedAfterTheRunHasEnded) {
  Assemble(3);
  FleetRecord record = fleet_->record();
  record.members.pop_back();
  record.view.members.pop_back();
  for (MemberRecord& m : record.members) m.finished = true;
  Begin(3, record);
  Registration r = Peer(3, 203, "host:3");
  r.has_parameters = true;
  EXPECT_TRUE(absl::IsFailedPrecondition(fleet_->Register(r, now_).status()));
}

// A peer with the memory of another disk has a view of the same epoch.
TEST_F(OldDiskTest, TwoViewsOfOneEpochHaveTheirOwnGraphs) {
  Assemble(3);
  const View small = fleet_->record().view;
  View large = small;
  ++large.generation;
  large.members.push_back({.id = {4}, .address = "host:4"});
  large.members.push_back({.id = {5}, .address = "host:5"});
  Begin(3);
  const auto suspect = [&](uint64_t by, const View& view, PeerId suspected) {
    FleetHeartbeat h = Training(by, 100 + by, 500, view.epoch);
    h.view_generation = view.generation;
    h.suspected = {suspected};
    Hear(h);
    now_ += absl::Minutes(1);
    Hear(h);
  };
  ASSERT_TRUE(ReturnView(1, 101, small).ok());
  suspect(1, small, {2});
  ASSERT_TRUE(ReturnView(5, 105, large).ok());
  suspect(5, large, {4});
  EXPECT_LT(fleet_->record().view.members.size(), 5u);
}

// Peers 1 and 2 have not yet heard of the view without 1 and with 4.
TEST_F(OldDiskTest, TheNewestReturnedViewCounts) {
  Assemble(3);
  const View view = fleet_->record().view;
  View newest = view;
  newest.epoch = 2;
  newest.members = {
      view.members[1], view.members[2], {.id = {4}, .address = "host:4"}};
  Begin(3);
  ASSERT_TRUE(ReturnView(1, 101, view).ok());
  ASSERT_TRUE(ReturnView(2, 102, view).ok());
  ASSERT_TRUE(ReturnView(4, 104, newest).ok());
  EXPECT_EQ(fleet_->record().view.members, newest.members);
  FleetHeartbeat h = Training(2, 102, 500, 1);
  h.view_generation = view.generation;
  const FleetAnswer answer = Hear(h);
  ASSERT_TRUE(answer.view);
  EXPECT_EQ(answer.view->epoch, 2u);
  h.peer_id = {1};
  h.incarnation_id = 101;
  EXPECT_TRUE(Hear(h).outside);
  // An evicted peer cannot return by handing back an older view either.
  Begin(3);
  ASSERT_TRUE(ReturnView(4, 104, newest).ok());
  ASSERT_TRUE(ReturnView(1, 101, view).ok());
  EXPECT_EQ(fleet_->record().view.members, newest.members);
  EXPECT_TRUE(Hear(h).outside);
}

TEST_F(OldDiskTest, OnlyAValidViewIsTakenBack) {
  Assemble(3);
  const View view = fleet_->record().view;
  Begin(3);
  const auto code = [&](uint64_t id, const View& v) {
    return ReturnView(id, 100 + id, v).status().code();
  };
  EXPECT_EQ(code(4, view), absl::StatusCode::kInvalidArgument);
  View wrong = view;
  wrong.configuration_hash = 7;
  EXPECT_EQ(code(1, wrong), absl::StatusCode::kInvalidArgument);
  // The peer is not at fault, and trains on.
  wrong = view;
  wrong.schedule.graph = "complete";
  EXPECT_EQ(code(1, wrong), absl::StatusCode::kUnavailable);
  Registration without = Peer(1, 101, "host:1");
  without.has_parameters = without.trains = true;
  EXPECT_EQ(fleet_->Register(without, now_).status().code(),
            absl::StatusCode::kUnavailable);
  EXPECT_FALSE(fleet_->record().assembled);
  EXPECT_TRUE(fleet_->record().members.empty());
  EXPECT_EQ(code(1, view), absl::StatusCode::kOk);
}

TEST_F(OldDiskTest, AViewWhoseEpochLeavesNoRoomIsNotTakenBack) {
  Assemble(3);
  const View view = fleet_->record().view;
  Begin(3);
  View ahead = view;
  for (const uint64_t epoch : {kMaxEpoch + 1, UINT64_MAX}) {
    ahead.epoch = epoch;
    EXPECT_EQ(ReturnView(1, 101, ahead).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
  EXPECT_TRUE(fleet_->record().members.empty());
  EXPECT_TRUE(ReturnView(1, 101, view).ok());
}

// Without certificates a member may make up any view, of which a service that
// has lost its disk goes on: views that follow can be handed back all the same.
TEST_F(OldDiskTest, NoViewThatAMemberMakesUpUsesUpTheGenerations) {
  Assemble(5);
  const View first = fleet_->record().view;
  constexpr uint64_t kHalf = uint64_t{1} << 63;
  for (const uint64_t generation :
       {first.generation + 1, uint64_t{1} << 48, kHalf - 1, kHalf, kHalf + 1,
        first.generation + kHalf - 1, first.generation + kHalf,
        first.generation + kHalf + 1, UINT64_MAX - 1, UINT64_MAX}) {
    for (const uint64_t epoch : {first.epoch, kMaxEpoch / 2, kMaxEpoch}) {
      SCOPED_TRACE(testing::Message() << generation << " " << epoch);
      View known = first;
      known.generation = generation;
      known.epoch = epoch;
      // The disk is lost again and again, and a member goes each time.
      for (int members = 5; members > 3; --members) {
        Begin(members);
        TakeBack(members, known);
        fleet_->Evict({static_cast<uint64_t>(members)}, "of this", now_);
        const View next = fleet_->record().view;
        ASSERT_EQ(next.members.size(), members - 1);
        ASSERT_TRUE(next.NewerThan(known));
        EXPECT_FALSE(known.NewerThan(next));
        known = next;
      }
    }
  }
}

// An evicted peer that returns has parameters but no view to return; the
// others may still train.
TEST_F(OldDiskTest, APeerWithParametersDoesNotBeginWithOthersAtOnce) {
  Begin(2);
  Registration r = Peer(1, 101, "host:1");
  r.has_parameters = true;
  ASSERT_TRUE(fleet_->Register(r, now_).ok());
  Register(2, 202);
  EXPECT_FALSE(fleet_->record().assembled);
  now_ += absl::Minutes(3);
  fleet_->Tick(now_);
  EXPECT_TRUE(fleet_->record().assembled);
}

TEST_F(OldDiskTest, ATrainingPeerOfAnEndedRunIsRefused) {
  Assemble(2);
  const View view = fleet_->record().view;
  for (int i = 1; i <= 2; ++i) {
    FleetHeartbeat h = Training(i, 100 + i, 500, 1);
    h.finished = true;
    Hear(h);
  }
  Register(1, 201);
  ASSERT_FALSE(fleet_->record().assembled);
  EXPECT_EQ(ReturnView(2, 102, view).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

// Two members are saved as incarnations that no view has, but they may be
// training.
TEST_F(OldDiskTest, AFleetBeginsAgainOnlyOnceAllMembersAreHeard) {
  Assemble(3);
  FleetRecord stored = fleet_->record();
  for (MemberRecord& m : stored.members) m.in_view = false;
  Begin(3, stored);
  fleet_->Tick(now_);
  Hear(Beat(1, 101, 0));
  Hear(Beat(2, 102, 0));
  EXPECT_EQ(fleet_->record().view.epoch, stored.view.epoch);
  Hear(Beat(3, 103, 0));
  EXPECT_EQ(fleet_->record().view.epoch, stored.view.epoch + 1);
}

}  // namespace old_disk_test
}  // namespace gossamer
