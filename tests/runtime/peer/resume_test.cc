// Checkpoints of a whole fleet: a stopped or killed fleet resumes with the bits
// of one that was not interrupted.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "algorithms/method/registry.h"
#include "gtest/gtest.h"
#include "tests/runtime/peer/quadratic_fleet.h"
#include "tests/simulation/memory_disk.h"
#include "tests/testing/forwarding_membership.h"
#include "tests/testing/sim_fleet.h"

namespace gossamer {
namespace resume_test {

class ResumeTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("gossamer_resume_" + std::to_string(getpid()));
    std::filesystem::remove_all(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  // Returns the hash of all parameters at the end of an uninterrupted run.
  static uint64_t HashOfWhole(const SimFleetOptions& o) {
    SimFleet fleet(o);
    EXPECT_TRUE(fleet.Run()) << fleet.StatusOf(0);
    return fleet.Hash();
  }
  // Stops a fleet after 200 ms and returns its round.
  static uint64_t StopEarly(const SimFleetOptions& o) {
    SimFleet fleet(o);
    fleet.Start();
    fleet.loop().RunFor(absl::Milliseconds(200));
    fleet.fleet().RequestStop();
    EXPECT_TRUE(fleet.Run()) << fleet.StatusOf(0);
    for (int rank = 0; rank < fleet.size(); ++rank) {
      EXPECT_TRUE(fleet.peer(rank).stopped());
      EXPECT_EQ(fleet.peer(rank).round(), fleet.peer(0).round());
    }
    return fleet.peer(0).round();
  }
  std::filesystem::path folder_;
};

// run 2N equals run N, stop, resume N, bit for bit.
TEST_F(ResumeTest, StoppedAndResumedFleetIsBitExact) {
  for (const char* codec : {"dense-f32", "innov-int4"}) {
    for (int overlap : {0, 1, 2, 5}) {
      for (const char* schedule : {"ring", "permuted-ring"}) {
        SimFleetOptions o = QuadraticFleet(4, 50);
        o.codec = codec;
        o.schedule.graph = schedule;
        o.peer.overlap_steps = overlap;
        o.peer.ema = 0.9;
        const uint64_t whole = HashOfWhole(o);

        std::filesystem::remove_all(folder_);
        o.checkpoints = folder_;
        o.resume_round = StopEarly(o);
        ASSERT_LT(o.resume_round, 50u);
        o.incarnation = 2;
        SimFleet second(o);
        ASSERT_TRUE(second.Run()) << second.StatusOf(0);
        EXPECT_EQ(second.Hash(), whole)
            << codec << " h=" << overlap << " " << schedule;
      }
    }
  }
}

// The round at which a fleet stops may have begun its checkpoint already.
TEST_F(ResumeTest, AFleetThatStopsAtACheckpointRoundIsBitExact) {
  for (const int h : {0, 1, 3}) {
    SimFleetOptions o = QuadraticFleet(4, 40);
    o.codec = "innov-int4";
    o.peer.overlap_steps = h;
    const uint64_t whole = HashOfWhole(o);
    std::filesystem::remove_all(folder_);
    o.checkpoints = folder_;
    o.peer.checkpoint_every = 1;
    o.resume_round = StopEarly(o);
    ASSERT_LT(o.resume_round, 40u);
    o.incarnation = 2;
    SimFleet second(o);
    ASSERT_TRUE(second.Run()) << second.StatusOf(0);
    EXPECT_EQ(second.Hash(), whole) << h;
  }
}

// A disk that takes a hundred rounds for a checkpoint delays checkpoints, and
// no round; the one of the end is still written.
TEST_F(ResumeTest, NoRoundWaitsForADisk) {
  SimFleetOptions o = QuadraticFleet(4, 300);
  o.step_jitter = 0;
  const uint64_t whole = HashOfWhole(o);
  o.checkpoints = folder_;
  o.peer.checkpoint_every = 10;
  o.disk_time = [t = o.step_time](int) { return 100 * t; };
  SimFleet fleet(o);
  ASSERT_TRUE(fleet.Run()) << fleet.StatusOf(0);
  EXPECT_EQ(fleet.Hash(), whole);
  for (int rank = 0; rank < 4; ++rank) {
    const EventRecorder& seen = fleet.recorder(rank);
    for (size_t i = 1; i < seen.rounds.size(); ++i) {
      ASSERT_LT(seen.rounds[i].finished - seen.rounds[i - 1].finished,
                1.2 * o.step_time)
          << "round " << i;
    }
    EXPECT_GE(seen.Count("checkpoint"), 3);
    EXPECT_GE(seen.Count("checkpoint_skipped"), 1);
    EXPECT_EQ(CheckpointStore(absl::StrCat(folder_.string(), "/peer-", rank), 2)
                  .Rounds()
                  .back(),
              301u);
  }
}

// The places of the vectors that checkpoints are written from, by name.
using Places = std::map<std::string, std::set<const float*>>;

class PlacesSession final : public simulation::DiskSession {
 public:
  PlacesSession(simulation::MemoryDisk* disk, Places* places)
      : DiskSession(disk, &none_, &errors_, RngKey(1)), places_(places) {}
  absl::Status WriteTensors(const std::string& path,
                            const SafetensorsView& tensors,
                            std::string* sha256) override {
    for (const auto& t : tensors.floats) {
      (*places_)[t.name].insert(t.values.data());
    }
    return DiskSession::WriteTensors(path, tensors, sha256);
  }

 private:
  simulation::CrashPoint none_;
  const Errors errors_;
  Places* const places_;
};

// The records of edges, too, are in memory that was there before.
TEST_F(ResumeTest, CheckpointsAreCopiedIntoTheSameMemory) {
  SimFleetOptions o = QuadraticFleet(3, 80);
  o.codec = "innov-int4";
  o.checkpoints = folder_;
  o.peer.checkpoint_every = 8;
  std::vector<simulation::MemoryDisk> disks(3);
  std::vector<Places> places(3);
  std::vector<std::unique_ptr<PlacesSession>> sessions;
  o.files = [&](int rank) {
    sessions.push_back(
        std::make_unique<PlacesSession>(&disks[rank], &places[rank]));
    return sessions.back().get();
  };
  SimFleet fleet(o);
  ASSERT_TRUE(fleet.Run()) << fleet.StatusOf(0);
  EXPECT_EQ(fleet.recorder(0).Count("checkpoint"), 10);
  for (const std::string name :
       {"parameters", "edge.2.replica", "edge.2.difference", "edge.3.replica",
        "edge.3.difference"}) {
    EXPECT_EQ(places[0][name].size(), 1u) << name;
  }
}

// The fleet is killed, and resumes from checkpoints that were taken while it
// ran.
TEST_F(ResumeTest, KilledFleetResumesFromARunningCheckpoint) {
  // The vectors of one change by steps, those of the other by corrections, too.
  for (const std::string rule : {"oadam", "cold"}) {
    // Of a slow disk the next step copies the vectors.
    for (const absl::Duration disk :
         {absl::ZeroDuration(), absl::Milliseconds(25)}) {
      SimFleetOptions o = QuadraticFleet(4, 60);
      o.codec = "innov-int4";
      if (rule == "cold") {
        o.peer.overlap_steps = 0;
        o.peer.step_then_mix = true;
        o.step.generator.make = FindMethod(rule)->rule;
      }
      o.step.generator.name = rule;
      o.step.discriminator = o.step.generator;
      const uint64_t whole = HashOfWhole(o);
      std::filesystem::remove_all(folder_);
      o.checkpoints = folder_;
      o.peer.checkpoint_every = 10;
      o.disk_time = [disk](int) { return disk; };
      {
        SimFleet killed(o);
        killed.Start();
        killed.loop().RunFor(absl::Milliseconds(450));
        EXPECT_GT(killed.peer(0).round(), 25u);
        EXPECT_LT(killed.peer(0).round(), 60u);
      }
      CheckpointStore store(folder_ / "peer-0", 2);
      ASSERT_FALSE(store.Rounds().empty());
      o.resume_round = store.Rounds().front();
      o.incarnation = 2;
      SimFleet second(o);
      ASSERT_TRUE(second.Run()) << second.StatusOf(0);
      EXPECT_EQ(second.Hash(), whole) << rule << ", " << disk;
    }
  }
}

// Two of four peers resume from the round at which the whole fleet stopped.
// Exchanges with the absent ones that were under way are in the records, and
// their corrections are applied.
TEST_F(ResumeTest, ExchangesUnderWayWithAbsentMembersComplete) {
  SimFleetOptions o = QuadraticFleet(4, 50);
  o.schedule.graph = "complete";
  o.peer.overlap_steps = 3;
  o.checkpoints = folder_;
  const auto sum_of_two = [](SimFleet& fleet) {
    std::vector<double> sum(fleet.game(0).layout().size());
    for (const int rank : {0, 1}) {
      for (size_t k = 0; k < sum.size(); ++k) {
        sum[k] += fleet.game(rank).parameters()[k];
      }
    }
    return sum;
  };
  std::vector<double> before;
  {
    SimFleet first(o);
    first.Start();
    first.loop().RunFor(absl::Milliseconds(200));
    first.fleet().RequestStop();
    ASSERT_TRUE(first.Run()) << first.StatusOf(0);
    before = sum_of_two(first);
    o.resume_round = first.peer(0).round();
  }
  o.peers = 2;
  o.incarnation = 2;
  o.step.generator.learning_rate = o.step.discriminator.learning_rate = 1e-12;
  const std::vector<double> saved = [&] {
    SimFleetOptions none = o;
    none.peer.rounds = o.resume_round;
    SimFleet still(none);
    still.Start();
    // The peers have read the checkpoints and step.
    still.loop().RunFor(0.2 * o.step_time);
    return sum_of_two(still);
  }();
  SimFleet second(o);
  ASSERT_TRUE(second.Run()) << second.StatusOf(0);
  const std::vector<double> after = sum_of_two(second);
  double owed = 0;
  for (size_t k = 0; k < before.size(); ++k) {
    EXPECT_NEAR(after[k], before[k], 1e-5);
    owed = std::max(owed, std::abs(saved[k] - before[k]));
  }
  EXPECT_GT(owed, 1e-3);  // otherwise the test would show nothing
}

// A peer may just have been unable to read its checkpoint for a moment.  Later
// checkpoints of the others are kept for people, and are in nobody's way.
TEST_F(ResumeTest, ACheckpointLaterThanTheCommonRoundIsSetAside) {
  SimFleetOptions o = QuadraticFleet(4, 60);
  o.codec = "innov-int4";
  const uint64_t whole = HashOfWhole(o);
  o.checkpoints = folder_;
  o.peer.checkpoint_every = 20;
  const auto store_of = [this](int rank) {
    return CheckpointStore(folder_ / ("peer-" + std::to_string(rank)), 2);
  };
  {
    SimFleet killed(o);
    killed.Start();
    for (int rank = 0; rank < 4; ++rank) {
      while (store_of(rank).Rounds().size() < 2) {
        killed.loop().RunFor(absl::Milliseconds(10));
      }
    }
  }
  o.resume_round = 21;
  o.incarnation = 2;
  SimFleet second(o);
  ASSERT_TRUE(second.Run()) << second.StatusOf(0);
  EXPECT_EQ(second.Hash(), whole);
  for (int rank = 0; rank < 4; ++rank) {
    SCOPED_TRACE(rank);
    EXPECT_EQ(second.recorder(rank).Count("resumed"), 1);
    EXPECT_EQ(second.recorder(rank).Count("checkpoint_aside"), 1);
    // The same round has been saved again beside the old one.
    const auto path = folder_ / ("peer-" + std::to_string(rank));
    const CheckpointStore store = store_of(rank);
    EXPECT_EQ(store.Rounds(), (std::vector<uint64_t>{41, 61}));
    std::filesystem::remove_all(path / "round-41");
    std::filesystem::rename(path / "set-aside-round-41", path / "round-41");
    EXPECT_TRUE(store.Load(41).ok()) << store.Load(41).status();
  }
}

// The checkpoint takes longer to read than a lease, as one of gigabytes does.
// The loop goes on meanwhile.
TEST_F(ResumeTest, ReadingACheckpointHoldsNothingUp) {
  SimFleetOptions o = QuadraticFleet(4, 60);
  o.codec = "innov-int4";
  const uint64_t whole = HashOfWhole(o);
  o.checkpoints = folder_;
  o.resume_round = StopEarly(o);
  o.incarnation = 2;
  o.disk_time = [](int rank) { return absl::Seconds(rank == 1 ? 4 : 0); };
  SimFleet second(o);
  second.Start();
  second.loop().RunFor(absl::Seconds(3));
  EXPECT_EQ(second.recorder(0).Count("resumed"), 1);
  EXPECT_EQ(second.recorder(1).Count("resumed"), 0);
  ASSERT_TRUE(second.Run()) << second.StatusOf(1);
  EXPECT_EQ(second.recorder(1).Count("resumed"), 1);
  EXPECT_EQ(second.Hash(), whole);
}

// The peer is still reading when its time is over.
TEST_F(ResumeTest, APeerCanLeaveWhileItReadsItsCheckpoint) {
  SimFleetOptions o = QuadraticFleet(4, 60);
  o.checkpoints = folder_;
  o.resume_round = StopEarly(o);
  o.incarnation = 2;
  o.first_step[1] = absl::Seconds(4);
  SimFleet second(o);
  second.Start();
  second.peer(1).Leave(second.loop().Now() + absl::Seconds(1));
  second.loop().RunFor(absl::Seconds(5));
  EXPECT_TRUE(second.peer(1).left());
  EXPECT_TRUE(second.StatusOf(1).ok()) << second.StatusOf(1);
  EXPECT_EQ(second.recorder(1).Count("checkpoint_failed"), 0);
  // The checkpoint keeps all its edges.
  const auto kept = CheckpointStore(folder_ / "peer-1", 2).Load(o.resume_round);
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_TRUE(kept->bytes.contains("edge.1"));
  EXPECT_TRUE(kept->bytes.contains("edge.3"));
}

// A fleet with a committed stop, which this member may or may not hear of.
class StoppedFleet final : public ForwardingMembership {
 public:
  StoppedFleet(std::unique_ptr<Membership> fleet, uint64_t round, bool hears)
      : ForwardingMembership(std::move(fleet)), round_(round), hears_(hears) {}
  StopState stop() const override {
    return hears_ ? StopState{.round = round_, .committed = true} : StopState();
  }

 private:
  const uint64_t round_;
  const bool hears_;
};

// The peer has begun the round at which the others have stopped.  It waits for
// their gradients, and they for its FIN; their FINs end its wait.
TEST_F(ResumeTest, APeerThatMissesACentralizedStopEndsWithTheFleet) {
  constexpr uint64_t kStop = 20;
  for (const std::string method : {"dense-f32", "qsgd", "top-k:rate=10"}) {
    SCOPED_TRACE(method);
    std::filesystem::remove_all(folder_);
    SimFleetOptions o = FarCentralizedFleet();
    o.gradient_codec = method;
    o.peer.all_reduce = "all-gather";
    o.peer.ema = 0.9;
    SimFleet whole(o);
    ASSERT_TRUE(whole.Run()) << whole.StatusOf(0);

    o.checkpoints = folder_;
    o.peer.checkpoint_every = 15;
    int members = 0;
    o.membership = [&](std::unique_ptr<Membership> fleet) {
      return std::make_unique<StoppedFleet>(std::move(fleet), kStop,
                                            ++members != 3);
    };
    {
      SimFleet first(o);
      ASSERT_TRUE(first.Run(absl::Minutes(1))) << first.StatusOf(2);
      EXPECT_EQ(first.peer(2).round(), kStop);
      EXPECT_TRUE(first.peer(2).stopped());
    }
    // A compressor with a memory has an earlier newest common round.
    const bool remembers = method == "top-k:rate=10";
    o.membership = {};
    o.resume_round = remembers ? 16 : kStop;
    o.incarnation = 2;
    EXPECT_EQ(CheckpointStore(folder_ / "peer-2", 2).Rounds().back(),
              o.resume_round);
    SimFleet second(o);
    ASSERT_TRUE(second.Run()) << second.StatusOf(0);
    EXPECT_EQ(second.Hash(), whole.Hash());
    for (int rank = 0; rank < 4; ++rank) {
      EXPECT_TRUE(std::ranges::equal(second.peer(rank).generator(),
                                     whole.peer(rank).generator()));
    }
  }
}

}  // namespace resume_test
}  // namespace gossamer
