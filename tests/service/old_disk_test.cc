// A service that comes back, with its newest record or with one of earlier.

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "topology/service/fleet.h"

namespace gossamer {
namespace {

Registration Peer(uint64_t id, uint64_t boot, const std::string& address) {
  Registration r;
  r.run_id = "run";
  r.peer_id = {id};
  r.boot_id = boot;
  r.address = address;
  return r;
}

FleetHeartbeat Beat(uint64_t id, uint64_t boot, uint64_t round) {
  FleetHeartbeat h;
  h.run_id = "run";
  h.peer_id = {id};
  h.boot_id = boot;
  h.report.round = h.round_begun = round;
  return h;
}

// One of a peer that trains by the view `epoch`.
FleetHeartbeat Training(uint64_t id, uint64_t boot, uint64_t round,
                        uint64_t epoch) {
  FleetHeartbeat h = Beat(id, boot, round);
  h.view_epoch = epoch;
  return h;
}

// Peers 1 .. n are in the first view with boot ids 101 .. 100 + n.
class OldDiskTest : public testing::Test {
 protected:
  void Begin(int n, std::optional<FleetRecord> stored = std::nullopt) {
    FleetOptions options;
    options.run_id = "run";
    options.expected = n;
    options.lease = absl::Seconds(30);
    auto fleet = Fleet::Create(options, std::move(stored), now_);
    ASSERT_TRUE(fleet.ok()) << fleet.status();
    fleet_.emplace(*std::move(fleet));
  }
  void Assemble(int n) {
    Begin(n);
    for (int i = 1; i <= n; ++i) Register(i, 100 + i);
  }
  void Register(uint64_t id, uint64_t boot, bool trains = false,
                std::vector<uint64_t> checkpoints = {}) {
    Registration r = Peer(id, boot, "host:" + std::to_string(id));
    r.has_parameters = r.trains = trains;
    r.checkpoint_rounds = std::move(checkpoints);
    const auto registered = fleet_->Register(r, now_);
    ASSERT_TRUE(registered.ok()) << registered.status();
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
  std::optional<Fleet> fleet_;
};

// Both would call their next view the same, and peers would keep apart.
TEST_F(OldDiskTest, TwoLivesFromOneOldDiskAreDifferentGenerations) {
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
  // A view made now is newer than any of the service's earlier life.
  Registration r = Peer(2, 202, "elsewhere:1");
  r.checkpoint_rounds = {5};
  ASSERT_TRUE(fleet_->Register(r, now_).ok());
  const FleetAnswer answer = Hear(h);
  ASSERT_TRUE(answer.view);
  EXPECT_EQ(answer.view->generation, generation);
  EXPECT_EQ(answer.view->epoch, 2);
}

// Else those that have not ended yet would go on without the others.
TEST_F(OldDiskTest, AStopThatAnOldDiskForgotIsProposedAnew) {
  Assemble(3);
  for (int i = 1; i <= 3; ++i) Hear(Beat(i, 100 + i, 50));
  const FleetRecord backup = fleet_->record();
  const auto stop = fleet_->RequestStop(now_);
  ASSERT_TRUE(stop.ok());
  Begin(3, backup);
  EXPECT_EQ(Hear(Beat(1, 101, 51)).stop.round, 0u);
  FleetHeartbeat h = Beat(2, 102, 52);
  h.acknowledged_stop = *stop;
  const StopState again = Hear(h).stop;
  EXPECT_GT(again.round, 52u);
  EXPECT_FALSE(again.committed);
  EXPECT_EQ(Hear(Beat(1, 101, 53)).stop.round, again.round);
}

// The record is of before it was let in; what it says of itself is newer.
TEST_F(OldDiskTest, WhoTrainsIsNotTakenForOneWithoutParameters) {
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

// Were they taken for a fleet that begins, it would begin at round 1 again.
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

// Who had it would train by it for good, and the others by the one before.
TEST_F(OldDiskTest, AForgottenViewGivesWayToANewOne) {
  Assemble(3);
  for (int i = 1; i <= 3; ++i) Hear(Training(i, 100 + i, 50, 1));
  const FleetRecord backup = fleet_->record();
  Begin(3, backup);
  FleetHeartbeat h = Training(2, 102, 60, 2);
  h.view_generation = backup.generation;
  const FleetAnswer answer = Hear(h);
  ASSERT_TRUE(answer.view);
  EXPECT_EQ(answer.view->generation, fleet_->record().generation);
  EXPECT_GT(answer.view->from_round, 60u);
  // Once: who claims to know of views that this life never made is not heard.
  h.view_generation = answer.view->generation;
  h.view_epoch = 1000;
  EXPECT_FALSE(Hear(h).view);
  h.view_generation = backup.generation;
  EXPECT_TRUE(Hear(h).view);
  EXPECT_EQ(fleet_->record().view.epoch, answer.view->epoch);
}

// Two of them are saved as lives that no view has; they may be training.
TEST_F(OldDiskTest, AFleetBeginsAnewOnlyWhenAllOfItHasBeenHeard) {
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

}  // namespace
}  // namespace gossamer
