// All peers stop at one round, whatever the order in which heartbeats arrive,
// peers train, and the service restarts.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "algorithms/base/rng.h"
#include "topology/fleet/fleet.h"

namespace gossamer {
namespace stop_agreement_test {

const absl::Time kStart = absl::FromUnixSeconds(1'000'000);

// A peer as membership.h asks of it: it answers a proposal for a round that it
// has not begun, does not begin a round that it has answered, and stops there
// once the round is committed.
struct Trainer {
  uint64_t id = 0;
  uint64_t incarnation = 0;
  uint64_t begun = 0;  // and has ended, unless `inside`
  bool inside = false;
  uint64_t acknowledged = 0;
  StopState stop;
  bool stopped = false;

  // The round that it reports.
  uint64_t next() const { return begun + !inside; }
  // Trains `rounds` rounds.  A round ends once all have begun it; `slowest` is
  // the last round that all have begun.
  void Train(uint64_t rounds, uint64_t slowest) {
    for (; rounds > 0 && !stopped; --rounds) {
      if (inside && begun > slowest) return;
      inside = false;
      Stop();
      if (stopped || (acknowledged != 0 && begun + 1 >= acknowledged)) return;
      ++begun;
      inside = true;
    }
  }
  void Learn(StopState heard) {
    stop = heard;
    if (stop.round > begun) acknowledged = stop.round;
    Stop();
  }
  void Stop() {
    stopped = stop.committed && !inside && begun + 1 == stop.round;
  }
};

FleetHeartbeat BeatOf(const Trainer& t) {
  FleetHeartbeat h;
  h.run_id = "run";
  h.peer_id = {t.id};
  h.incarnation_id = t.incarnation;
  h.report.round = t.next();
  h.round_begun = t.begun;
  h.report.rounds_per_second = 5;
  h.acknowledged_stop = t.acknowledged;
  h.finished = t.stopped;
  return h;
}

// A fleet of trainers and the service's state machine, driven by draws.
struct World {
  World(int peers, RngKey key) : key(key) {
    options.expected = peers;
    options.lease = absl::Seconds(30);
    fleet = *Fleet::Create(options, std::nullopt, now);
    for (int i = 1; i <= peers; ++i) {
      const uint64_t id = static_cast<uint64_t>(i);
      trainers.push_back({.id = id, .incarnation = 100 + id, .stop = {}});
      Registration r;
      r.run_id = "run";
      r.peer_id = {id};
      r.incarnation_id = 100 + id;
      r.address = "a:1";
      EXPECT_TRUE(fleet->Register(r, now).ok());
    }
  }

  // With deadlines no peer waits for the others.
  uint64_t Slowest(bool deadlines) const {
    uint64_t slowest = std::numeric_limits<uint64_t>::max();
    for (const Trainer& t : trainers) slowest = std::min(slowest, t.begun);
    return deadlines ? std::numeric_limits<uint64_t>::max() : slowest;
  }

  uint64_t Draw(uint64_t n) { return key.Below(n, draws++); }

  // An answer may be lost on its way, so that the peer learns nothing.
  void Beat(Trainer& t, bool request_stop, bool lose_answer) {
    now += absl::Milliseconds(10);
    FleetHeartbeat h = BeatOf(t);
    h.request_stop = request_stop;
    const auto answer = fleet->Heartbeat(h, now);
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_FALSE(committed.has_value() && answer->stop.round != *committed);
    if (answer->stop.committed) committed = answer->stop.round;
    if (!lose_answer) t.Learn(answer->stop);
  }

  void Restart() {
    const FleetRecord kept = fleet->record();
    fleet = *Fleet::Create(options, kept, now);
  }

  FleetOptions options;
  RngKey key;
  uint64_t draws = 0;
  absl::Time now = kStart;
  std::unique_ptr<Fleet> fleet;
  std::vector<Trainer> trainers;
  std::optional<uint64_t> committed;
};

TEST(StopAgreementTest, AllStopAtTheSameRoundInAnyOrder) {
  int raised = 0;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    World world(2 + static_cast<int>(seed % 5), RngKey(seed));
    const bool deadlines = seed % 3 == 0;
    auto& trainers = world.trainers;
    bool requested = false;
    uint64_t proposed = 0;
    int left = static_cast<int>(trainers.size());
    for (int step = 0; step < 20000 && left > 0; ++step) {
      Trainer& t = trainers[world.Draw(trainers.size())];
      switch (world.Draw(8)) {
        case 0:
        case 1:
        case 2:  // at times far faster than heartbeats said
          t.Train(1 + world.Draw(world.Draw(4) == 0 ? 40 : 3),
                  world.Slowest(deadlines));
          break;
        case 3:
          if (world.Draw(50) == 0) world.Restart();
          break;
        default:
          // The first peer is rarely heard: it has begun the agreed round
          // before it hears of the agreement.
          if (t.id == 1 && seed % 2 == 1 && world.Draw(40) != 0) break;
          requested |= step > 50;
          world.Beat(t, requested, world.Draw(5) == 0);
      }
      const uint64_t now_proposed = world.fleet->record().stop.round;
      raised += proposed != 0 && now_proposed != proposed;
      proposed = now_proposed;
      left = 0;
      for (const Trainer& each : trainers) left += !each.stopped;
    }
    ASSERT_EQ(left, 0) << "seed " << seed << ": no agreement";
    for (const Trainer& each : trainers) {
      ASSERT_EQ(each.next(), *world.committed) << "seed " << seed;
    }
  }
  // The races have happened.
  EXPECT_GT(raised, 100);
}

TEST(StopAgreementTest, StopIsNotCommittedBeforeAllHaveAnswered) {
  World world(3, RngKey(1));
  world.Beat(world.trainers[0], true, false);
  world.Beat(world.trainers[0], true, false);
  world.Beat(world.trainers[1], false, false);
  world.Beat(world.trainers[1], false, false);
  EXPECT_FALSE(world.committed);
  world.Beat(world.trainers[2], false, false);
  EXPECT_FALSE(world.committed);
  world.Beat(world.trainers[2], false, false);
  EXPECT_TRUE(world.committed);
}

TEST(StopAgreementTest, ALostPeerDoesNotKeepTheOthersFromStopping) {
  World world(2, RngKey(1));
  world.Beat(world.trainers[1], false, false);
  world.now += absl::Seconds(29);
  world.Beat(world.trainers[0], true, false);
  world.Beat(world.trainers[0], true, false);
  EXPECT_FALSE(world.committed);
  world.now += absl::Seconds(29);
  world.fleet->Tick(world.now);
  world.Beat(world.trainers[0], true, false);
  EXPECT_TRUE(world.committed);
}

// No peer has heard of the stop, and the service hears no peer.  The peers are
// well; the service's uplink is not, or it was frozen.
TEST(StopAgreementTest, AStopThatNobodyHasHeardOfIsNotCommitted) {
  for (const bool frozen : {false, true}) {
    World world(3, RngKey(1));
    for (Trainer& t : world.trainers) world.Beat(t, false, false);
    ASSERT_TRUE(world.fleet->RequestStop(world.now).ok());
    for (int i = 0; i < 600; ++i) {
      world.now += absl::Milliseconds(frozen ? 0 : 100);
      world.fleet->Tick(world.now);
    }
    world.now += absl::Seconds(frozen ? 60 : 0);
    world.fleet->Tick(world.now);
    EXPECT_FALSE(world.fleet->record().stop.committed);
    // The first peer that is heard does not speak for the others.
    world.Beat(world.trainers[0], false, false);
    world.Beat(world.trainers[0], false, false);
    EXPECT_EQ(world.fleet->record().stop.committed, !frozen);
  }
}

// The service forgets the peers in two more ways: one peer had heard of the
// stop and agreed, or a frozen service hears one peer before it looks at its
// clock.
TEST(StopAgreementTest, APeerThatAgreedLongAgoDoesNotSpeakForTheOthers) {
  World world(3, RngKey(1));
  const auto run = [&](int ticks) {
    for (int i = 0; i < ticks; ++i) {
      world.now += absl::Milliseconds(100);
      world.fleet->Tick(world.now);
    }
  };
  run(10);
  for (Trainer& t : world.trainers) world.Beat(t, false, false);
  ASSERT_TRUE(world.fleet->RequestStop(world.now).ok());
  world.Beat(world.trainers[0], false, false);
  world.Beat(world.trainers[0], false, false);
  run(600);
  EXPECT_FALSE(world.fleet->record().stop.committed);
}

TEST(StopAgreementTest, AServiceThatWasFrozenTakesSilentPeersForAlive) {
  World world(3, RngKey(1));
  for (int i = 0; i < 10; ++i) {
    world.now += absl::Seconds(1);
    for (Trainer& t : world.trainers) world.Beat(t, false, false);
    world.fleet->Tick(world.now);
  }
  ASSERT_TRUE(world.fleet->RequestStop(world.now).ok());
  world.now += absl::Minutes(1);
  world.Beat(world.trainers[0], false, false);
  world.Beat(world.trainers[0], false, false);
  EXPECT_FALSE(world.committed);
  for (int again = 0; again < 2; ++again) {
    for (Trainer& t : world.trainers) world.Beat(t, false, false);
  }
  EXPECT_TRUE(world.committed);
}

TEST(StopAgreementTest, AStopBeforeTheFirstViewIsRefused) {
  auto fleet = Fleet::Create({}, std::nullopt, kStart);
  ASSERT_TRUE(fleet.ok());
  EXPECT_EQ((*fleet)->RequestStop(kStart).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(StopAgreementTest, AStopThatIsRequestedAgainKeepsItsRound) {
  World world(2, RngKey(1));
  const auto one = world.fleet->RequestStop(world.now);
  const auto two = world.fleet->RequestStop(world.now);
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_EQ(*one, *two);
  EXPECT_GE(*one, 1);
}

}  // namespace stop_agreement_test
}  // namespace gossamer
