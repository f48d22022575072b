// Bad input and faults leave one event each, and a fleet that goes on.

#include <cmath>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/game/wrapped_game.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/neighborhood/neighborhood.h"
#include "tests/runtime/peer/quadratic_fleet.h"
#include "tests/simulation/memory_disk.h"
#include "tests/testing/sim_fleet.h"
#include "tests/testing/temporary_folder.h"

namespace gossamer {
namespace events_test {

using ::testing::AllOf;
using ::testing::HasSubstr;

Frame Garbage() {
  return {SharedBytes::FromVector(std::vector<std::byte>(64, std::byte{0x5a})),
          SharedBytes()};
}

std::string DetailOf(const EventRecorder& recorder, EventKind kind) {
  for (const Event& e : recorder.events) {
    if (e.kind == kind) return e.detail;
  }
  return "";
}

void ExpectFinite(SimFleet& fleet) {
  for (int rank = 0; rank < fleet.size(); ++rank) {
    for (const float v : fleet.game(rank).parameters()) {
      ASSERT_TRUE(std::isfinite(v)) << rank;
    }
  }
}

// Runs until a peer has reported `kind` so often.
bool RunUntilReported(SimFleet& fleet, int rank, EventKind kind,
                      int times = 1) {
  return fleet.loop().RunUntil(
      [&] { return fleet.recorder(rank).Count(kind) >= times; },
      absl::Minutes(1));
}

TEST(EventsTest, ALostConnectionIsReportedAtBothEndsAndCostsNothing) {
  SimFleet whole(QuadraticFleet());
  ASSERT_TRUE(whole.Run());
  SimFleet fleet(QuadraticFleet());
  fleet.Start();
  fleet.loop().RunFor(absl::Milliseconds(200));
  fleet.network().Break(SimFleet::IdOf(0), SimFleet::IdOf(1));
  ASSERT_TRUE(fleet.Run()) << fleet.StatusOf(0);
  for (const auto& [rank, other] :
       {std::pair(0, "peer 2: "), {1, "peer 1: "}}) {
    EXPECT_EQ(fleet.recorder(rank).Count("edge_down"), 1);
    EXPECT_THAT(DetailOf(fleet.recorder(rank), "edge_down"), HasSubstr(other));
  }
  EXPECT_EQ(fleet.Hash(), whole.Hash());
}

// Its bytes change nothing; after the fifth time its frames are dropped.
TEST(EventsTest, AnEdgeIsClosedAfterFiveRefusedMessages) {
  SimFleetOptions o = QuadraticFleet(4, 400);
  o.peer.deadline.kind = DeadlinePolicy::Kind::kAdaptive;
  SimFleet fleet(o);
  fleet.Start();
  Transport& rogue = fleet.peer(0).neighborhood().transport();
  for (int times = 1; times <= 5; ++times) {
    fleet.loop().RunFor(absl::Milliseconds(200));
    ASSERT_TRUE(rogue.Send(SimFleet::IdOf(1), Channel::kEdge, Garbage()));
    ASSERT_TRUE(RunUntilReported(fleet, 1, "edge_refused", times));
  }
  EXPECT_EQ(fleet.recorder(1).Count("edge_closed"), 1);
  EXPECT_THAT(DetailOf(fleet.recorder(1), "edge_refused"),
              HasSubstr("peer 1: "));
  fleet.loop().RunFor(absl::Seconds(1));
  EXPECT_FALSE(rogue.Send(SimFleet::IdOf(1), Channel::kEdge, Garbage()));
  // The sender learns it at the first refusal, since it may not know of its own
  // fault.
  ASSERT_EQ(fleet.recorder(0).Count("payloads_refused"), 1);
  const std::string refused = DetailOf(fleet.recorder(1), "edge_refused");
  EXPECT_THAT(DetailOf(fleet.recorder(0), "payloads_refused"),
              AllOf(HasSubstr("peer 2 has refused"), HasSubstr("1 times"),
                    HasSubstr(refused.substr(std::string("peer 1: ").size()))));
  ASSERT_TRUE(fleet.Run()) << fleet.StatusOf(1);
  EXPECT_EQ(fleet.peer(1).round(), 401u);
  EXPECT_EQ(fleet.recorder(1).Count("edge_refused"), 5);
  ExpectFinite(fleet);
}

// A peer that was restarted meanwhile mixes again after a minute.  An unchanged
// peer is closed again at once, for two minutes.
TEST(EventsTest, AClosedEdgeIsHeardAgainAfterAMinute) {
  SimFleetOptions o = QuadraticFleet(4, 30000);
  o.peer.deadline.kind = DeadlinePolicy::Kind::kAdaptive;
  SimFleet fleet(o);
  fleet.Start();
  Transport& rogue = fleet.peer(0).neighborhood().transport();
  const auto offend = [&](int until) {
    fleet.loop().RunUntil(
        [&] {
          rogue.Send(SimFleet::IdOf(1), Channel::kEdge, Garbage());
          return fleet.recorder(1).Count("edge_closed") == until;
        },
        absl::Minutes(5));
  };
  const auto mixed = [&] {
    return fleet.peer(1).neighborhood().edge(SimFleet::IdOf(0))->corrections();
  };
  offend(1);
  fleet.loop().RunFor(absl::Seconds(50));
  const uint64_t before = mixed();
  fleet.loop().RunFor(absl::Seconds(5));
  EXPECT_EQ(mixed(), before);
  fleet.loop().RunFor(absl::Seconds(20));
  EXPECT_GT(mixed(), before + 100);

  offend(2);
  const absl::Time closed = fleet.loop().Now();
  offend(3);
  EXPECT_GE(fleet.loop().Now() - closed, absl::Minutes(2));
  EXPECT_EQ(fleet.recorder(1).Count("edge_refused"), 7);
  ExpectFinite(fleet);
}

TEST(EventsTest, AnInvalidAllReduceMessageIsRefused) {
  SimFleetOptions o = QuadraticFleet();
  o.peer.averaging = Averaging::kGradients;
  o.peer.all_reduce = "ring";
  o.peer.overlap_steps = 0;
  o.schedule.graph = "complete";
  SimFleet whole(o);
  ASSERT_TRUE(whole.Run()) << whole.StatusOf(0);
  SimFleet fleet(o);
  fleet.Start();
  fleet.loop().RunFor(absl::Milliseconds(200));
  ASSERT_TRUE(fleet.peer(0).neighborhood().transport().Send(
      SimFleet::IdOf(1), Channel::kCollective, Garbage()));
  ASSERT_TRUE(fleet.Run()) << fleet.StatusOf(1);
  EXPECT_EQ(fleet.recorder(1).Count("collective_refused"), 1);
  EXPECT_EQ(fleet.Hash(), whole.Hash());
}

// A peer of no all-reduce may not fill a log either.
TEST(EventsTest, UnexpectedAllReduceMessagesAreReportedOnceInAWhile) {
  SimFleetOptions o = QuadraticFleet(4, 4000);
  SimFleet fleet(o);
  fleet.Start();
  fleet.loop().RunFor(absl::Milliseconds(200));
  constexpr int kTimes = 1000;
  for (int i = 0; i < kTimes; ++i) {
    ASSERT_TRUE(fleet.peer(0).neighborhood().transport().Send(
        SimFleet::IdOf(1), Channel::kCollective, Garbage()));
    fleet.loop().RunFor(absl::Milliseconds(15));
  }
  fleet.loop().RunFor(absl::Seconds(10));
  ASSERT_TRUE(fleet.peer(0).neighborhood().transport().Send(
      SimFleet::IdOf(1), Channel::kCollective, Garbage()));
  ASSERT_TRUE(fleet.Run()) << fleet.StatusOf(1);
  uint64_t told = 0;
  for (const Event& e : fleet.recorder(1).events) {
    if (e.kind == EventKind("collective_refused")) told += e.times;
  }
  EXPECT_EQ(told, kTimes + 1u);
  EXPECT_LE(fleet.recorder(1).Count("collective_refused"), 3);
}

TEST(EventsTest, AConnectionThatFlapsIsReportedOnceInAWhile) {
  SimFleet fleet(QuadraticFleet(4, 4000));
  fleet.Start();
  for (int i = 0; i < 150; ++i) {
    fleet.loop().RunFor(absl::Milliseconds(100));
    fleet.network().Break(SimFleet::IdOf(0), SimFleet::IdOf(1));
  }
  ASSERT_TRUE(fleet.Run()) << fleet.StatusOf(0);
  EXPECT_GE(fleet.recorder(0).Count("edge_down"), 1);
  EXPECT_LE(fleet.recorder(0).Count("edge_down"), 2);
}

// Two ends without a round loop.
class EdgeEventsTest : public testing::Test {
 protected:
  struct End {
    VirtualPeerLoop loop;
    std::unique_ptr<Transport> transport;
    std::vector<float> x;
    std::unique_ptr<Neighborhood> neighborhood;
    EventRecorder recorder;
    explicit End(VirtualLoop* shared) : loop(shared) {}
    ~End() {
      transport.reset();
      neighborhood.reset();
    }
  };

  void Make(std::optional<End>& end, uint64_t self, uint64_t incarnation,
            uint64_t layout) {
    end.emplace(&loop_);
    End* const e = &*end;
    e->x.assign(layout_->size(), static_cast<float>(self));
    e->transport = network_.CreateEndpoint({self}, &e->loop);
    e->neighborhood = std::make_unique<Neighborhood>(
        NeighborhoodOptions{
            .self = {self},
            .run_id = "run",
            .epoch = MakeEpoch(1'000'000'000 + incarnation, incarnation),
            .layout = layout,
            .deadline = {}},
        &e->loop, e->transport.get(), e->x);
    e->neighborhood->SetOnEvent(
        [e](EventKind kind, const std::string& detail, uint64_t times) {
          e->recorder.OnEvent({e->loop.Now(), 0, kind, detail, times});
        });
  }
  void AddEdge(End& end, uint64_t self) {
    ASSERT_TRUE(end.neighborhood
                    ->Add({.peer = {3 - self},
                           .address = "",
                           .codec = *Codec::Create("dense-f32", *layout_)})
                    .ok());
  }
  void Begin(std::optional<End>& end, uint64_t self, uint64_t incarnation,
             uint64_t layout = 1) {
    Make(end, self, incarnation, layout);
    AddEdge(*end, self);
  }
  static void Emit(End& end, uint64_t other, ExchangeId id) {
    end.neighborhood->Emit(std::vector<RowEntry>{{{other}, 0.25f}}, id, true);
  }

  const std::unique_ptr<Game> game_ = Quadratic(0, 2, 0.1, 0.5);
  const ParameterLayout* const layout_ = &game_->layout();
  VirtualLoop loop_;
  SimNetwork network_{&loop_, {}};
  std::optional<End> one_, two_;
};

// Notices of refusals become a few lines, whatever they say and however often
// they come.
TEST_F(EdgeEventsTest, NoticesOfRefusalsMakeFewLinesAndChangeNothing) {
  Begin(one_, 1, 1);
  Begin(two_, 2, 2);
  loop_.RunFor(absl::Seconds(1));
  for (int times = 0; times < 25; ++times) {
    ASSERT_TRUE(one_->transport->Send(
        {2}, Channel::kNotice,
        {EncodeNotice("a\nline\x1b" + std::string(5000, 'x')),
         Garbage().head}));
    loop_.RunFor(absl::Milliseconds(10));
  }
  EXPECT_EQ(two_->recorder.Count("payloads_refused"), 2);
  const std::string detail = DetailOf(two_->recorder, "payloads_refused");
  EXPECT_THAT(detail, HasSubstr("a\\x0aline\\x1b"));
  EXPECT_LT(detail.size(), 400u);
  EXPECT_EQ(two_->recorder.Count("edge_refused"), 0);
  EXPECT_TRUE(two_->neighborhood->Connected({1}));
}

// Another model stays another model, so one refusal is enough.
TEST_F(EdgeEventsTest, AnEdgeToAnotherModelIsClosedAtOnce) {
  Begin(one_, 1, 1, /*layout=*/1);
  Begin(two_, 2, 2, /*layout=*/2);
  loop_.RunFor(absl::Minutes(1));
  EXPECT_EQ(one_->recorder.Count("edge_refused"), 1);
  EXPECT_EQ(one_->recorder.Count("edge_closed"), 1);
  EXPECT_THAT(DetailOf(one_->recorder, "edge_closed"),
              HasSubstr("does not fit this run"));
}

// The connection was opened for another purpose, and its hello was kept.
TEST_F(EdgeEventsTest, AKeptHelloOfAnotherModelClosesTheEdgeAtOnce) {
  Make(one_, 1, 1, /*layout=*/1);
  one_->transport->Connect({2}, "");
  Begin(two_, 2, 2, /*layout=*/2);
  loop_.RunFor(absl::Seconds(1));
  ASSERT_TRUE(one_->neighborhood->Connected({2}));
  EXPECT_EQ(one_->recorder.Count("edge_refused"), 0);
  AddEdge(*one_, 1);
  loop_.RunFor(absl::Seconds(50));
  EXPECT_EQ(one_->recorder.Count("edge_refused"), 1);
  EXPECT_EQ(one_->recorder.Count("edge_closed"), 1);
  EXPECT_FALSE(one_->neighborhood->Connected({2}));
}

// The sum that the edge had added to duals has been given back, so neither a
// record nor a later view goes on with it.
TEST_F(EdgeEventsTest, AnEndedEdgeIsNotContinued) {
  Begin(one_, 1, 1);
  Begin(two_, 2, 2);
  loop_.RunFor(absl::Seconds(1));
  Neighborhood& n = *one_->neighborhood;
  const uint64_t epoch = n.edge({2})->state().epoch;
  n.BeginRecord(MakeExchangeId(1));
  two_->neighborhood->BeginRecord(MakeExchangeId(1));
  loop_.RunFor(absl::Seconds(1));
  EXPECT_THAT(n.TakeRecords(MakeExchangeId(1)), testing::SizeIs(1));
  n.Deactivate({2}, MakeExchangeId(1), /*gone=*/true);
  n.Emit({}, MakeExchangeId(1), true);
  ASSERT_TRUE(n.edge({2})->ended());
  n.BeginRecord(MakeExchangeId(1));
  EXPECT_THAT(n.TakeRecords(MakeExchangeId(1)), testing::IsEmpty());
  AddEdge(*one_, 1);
  EXPECT_FALSE(n.edge({2})->ended());
  EXPECT_GT(n.edge({2})->state().epoch, epoch);
  loop_.RunFor(absl::Seconds(1));
  Emit(*one_, 2, MakeExchangeId(2));
  Emit(*two_, 1, MakeExchangeId(2));
  loop_.RunFor(absl::Seconds(1));
  n.Complete(MakeExchangeId(3));
  EXPECT_EQ(n.edge({2})->corrections(), 1u);
}

TEST_F(EdgeEventsTest, CorrectionsLostWithARestartedPeerAreReported) {
  Begin(one_, 1, 1);
  Begin(two_, 2, 2);
  loop_.RunFor(absl::Seconds(1));
  Emit(*one_, 2, MakeExchangeId(1));
  Emit(*two_, 1, MakeExchangeId(1));
  loop_.RunFor(absl::Seconds(1));
  // The correction is applied there, and the other end does not know it.
  two_->neighborhood->Complete(MakeExchangeId(2));
  two_.reset();
  loop_.RunFor(absl::Seconds(1));
  Begin(two_, 2, 3);
  loop_.RunFor(absl::Seconds(1));
  EXPECT_EQ(one_->recorder.Count("edge_lost"), 1);
  EXPECT_THAT(DetailOf(one_->recorder, "edge_lost"),
              AllOf(HasSubstr("peer 2 began anew"), HasSubstr("round 1 ")));
}

TEST(EventsTest, CheckpointsAreReportedAndResumedFrom) {
  const TemporaryFolder folder;
  SimFleetOptions o = QuadraticFleet(4, 40);
  o.checkpoints = folder.path();
  o.peer.checkpoint_every = 20;
  SimFleet first(o);
  ASSERT_TRUE(first.Run()) << first.StatusOf(0);
  EXPECT_EQ(first.recorder(0).Count("checkpoint"), 2);
  EXPECT_EQ(first.recorder(0).Count("checkpoint_failed"), 0);
  o.resume_round = 21;
  o.incarnation = 2;
  SimFleet second(o);
  ASSERT_TRUE(second.Run()) << second.StatusOf(0);
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(second.recorder(rank).Count("resumed"), 1);
  }
  EXPECT_EQ(second.Hash(), first.Hash());
}

TEST(EventsTest, ACheckpointThatNobodySharesIsSetAside) {
  const TemporaryFolder folder;
  SimFleetOptions o = QuadraticFleet(4, 40);
  o.checkpoints = folder.path();
  o.peer.checkpoint_every = 20;
  ASSERT_TRUE(SimFleet(o).Run());
  o.incarnation = 2;  // the run begins anew
  SimFleet second(o);
  ASSERT_TRUE(second.Run()) << second.StatusOf(0);
  EXPECT_EQ(second.recorder(0).Count("checkpoint_aside"), 1);
  EXPECT_TRUE(
      std::filesystem::exists(folder.path() + "/peer-0/set-aside-round-41"));
}

TEST(EventsTest, ADamagedCheckpointIsReported) {
  const TemporaryFolder folder;
  SimFleetOptions o = QuadraticFleet(4, 40);
  o.checkpoints = folder.path();
  o.peer.checkpoint_every = 20;
  ASSERT_TRUE(SimFleet(o).Run());
  const std::string state =
      folder.path() + "/peer-0/round-41/state.safetensors";
  std::fstream file(state, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-1, std::ios::end);
  file.put('x');
  file.close();
  ASSERT_TRUE(file) << state;
  o.resume_round = 21;
  o.incarnation = 2;
  SimFleet second(o);
  ASSERT_TRUE(second.Run()) << second.StatusOf(0);
  ASSERT_EQ(second.recorder(0).Count("checkpoint_damaged"), 1);
  EXPECT_THAT(DetailOf(second.recorder(0), "checkpoint_damaged"),
              HasSubstr("kept as damaged-round-41"));
  // Later saves leave it alone.
  EXPECT_TRUE(
      std::filesystem::exists(folder.path() + "/peer-0/damaged-round-41"));
  EXPECT_EQ(second.recorder(1).Count("checkpoint_damaged"), 0);
}

TEST(EventsTest, EveryRoundCanHaveItsCheckpoint) {
  for (const int h : {0, 1, 3}) {
    const TemporaryFolder folder;
    SimFleetOptions o = QuadraticFleet(3, 16);
    o.checkpoints = folder.path();
    o.peer.checkpoint_every = 1;
    o.peer.overlap_steps = h;
    SimFleet fleet(o);
    ASSERT_TRUE(fleet.Run()) << fleet.StatusOf(0);
    EXPECT_EQ(fleet.recorder(0).Count("checkpoint"), 16) << h;
    EXPECT_EQ(fleet.recorder(0).Count("checkpoint_skipped"), 0) << h;
  }
}

TEST(EventsTest, ARoundThatHasNoCheckpointIsReported) {
  const TemporaryFolder folder;
  SimFleetOptions o = QuadraticFleet(4, 40);
  o.checkpoints = folder.path();
  o.peer.checkpoint_every = 1;
  o.disk_time = [t = o.step_time](int) { return 5 * t; };
  SimFleet slow(o);
  ASSERT_TRUE(slow.Run()) << slow.StatusOf(0);
  EXPECT_GT(slow.recorder(0).Count("checkpoint_skipped"), 0);
  EXPECT_THAT(DetailOf(slow.recorder(0), "checkpoint_skipped"),
              AllOf(HasSubstr(" has no checkpoint: that of round "),
                    HasSubstr("waits for the disk"),
                    HasSubstr("checkpoint.every 1 saves fewer rounds")));
  // A disk that keeps up skips nothing.
  o.peer.checkpoint_every = 20;
  o.checkpoints = folder.path() + "/seldom";
  SimFleet seldom(o);
  ASSERT_TRUE(seldom.Run()) << seldom.StatusOf(0);
  EXPECT_EQ(seldom.recorder(0).Count("checkpoint_skipped"), 0);
}

// A disk in memory for each peer; those of the first one have these errors.
class MemoryDisks {
 public:
  explicit MemoryDisks(const simulation::DiskSession::Errors& of_first)
      : of_first_(of_first) {}

  FileOps* Of(int rank) {
    disks_.push_back(std::make_unique<simulation::MemoryDisk>());
    sessions_.push_back(std::make_unique<simulation::DiskSession>(
        disks_.back().get(), &none_, rank == 0 ? &of_first_ : &of_others_,
        RngKey(1)));
    return sessions_.back().get();
  }

 private:
  const simulation::DiskSession::Errors of_first_, of_others_;
  simulation::CrashPoint none_;
  std::vector<std::unique_ptr<simulation::MemoryDisk>> disks_;
  std::vector<std::unique_ptr<simulation::DiskSession>> sessions_;
};

TEST(EventsTest, CheckpointsRemovedForRoomAreReported) {
  MemoryDisks disks({.write = 0.1});  // one write in ten finds no room
  SimFleetOptions o = QuadraticFleet(4, 40);
  o.peer.checkpoint_every = 2;
  o.checkpoints = "/checkpoints";
  o.files = [&](int rank) { return disks.Of(rank); };
  SimFleet fleet(o);
  ASSERT_TRUE(fleet.Run()) << fleet.StatusOf(0);
  EXPECT_GT(fleet.recorder(0).Count("checkpoint_room"), 0);
  EXPECT_THAT(DetailOf(fleet.recorder(0), "checkpoint_room"),
              HasSubstr("older checkpoints went for room"));
}

// Of the state alone that is told before the first round, else with the first
// checkpoint, whose records of edges need room, too.
TEST(EventsTest, ATooSmallDiskIsReportedOnce) {
  const auto told_at = [](uint64_t free) {
    MemoryDisks disks({.free = free});
    SimFleetOptions o = QuadraticFleet(4, 10);
    o.codec = "innov-int4";  // an edge's record is larger than the state
    o.peer.checkpoint_every = 4;
    o.checkpoints = "/checkpoints";
    o.files = [&](int rank) { return disks.Of(rank); };
    SimFleet fleet(o);
    EXPECT_TRUE(fleet.Run()) << fleet.StatusOf(0);
    EXPECT_EQ(fleet.recorder(1).Count("checkpoint_room"), 0);
    EXPECT_LE(fleet.recorder(0).Count("checkpoint_room"), 1);
    uint64_t round = 0;
    for (const Event& e : fleet.recorder(0).events) {
      if (e.kind == "checkpoint_room") round = e.round;
    }
    return std::pair(round, DetailOf(fleet.recorder(0), "checkpoint_room"));
  };
  const auto at_once = told_at(100);  // less than one has
  EXPECT_EQ(at_once.first, 1u);
  EXPECT_THAT(at_once.second,
              HasSubstr("beside the 0 that are there, and checkpoint.keep"));
  // The least on which it is not.
  uint64_t little = 100, enough = 1 << 20;
  while (enough > little + 1) {
    const uint64_t middle = (little + enough) / 2;
    (told_at(middle).first == 1 ? little : enough) = middle;
  }
  const auto later = told_at(enough);
  EXPECT_GT(later.first, 1u);
  EXPECT_THAT(later.second, HasSubstr("beside the 1 that are there"));
  EXPECT_EQ(told_at(1 << 20).second, "");
}

TEST(EventsTest, ACheckpointThatCannotBeSavedStopsNobody) {
  const TemporaryFolder folder;
  SimFleetOptions o = QuadraticFleet(4, 40);
  o.step_jitter = 0;
  SimFleet without(o);
  ASSERT_TRUE(without.Run());
  // A file is in the place of the folders.
  o.checkpoints = folder.path() + "/file";
  std::ofstream(o.checkpoints) << "not a folder";
  o.peer.checkpoint_every = 20;
  SimFleet fleet(o);
  ASSERT_TRUE(fleet.Run()) << fleet.StatusOf(0);
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(fleet.recorder(rank).Count("checkpoint_failed"), 2);
    EXPECT_EQ(fleet.recorder(rank).Count("checkpoint"), 0);
  }
  EXPECT_EQ(fleet.Hash(), without.Hash());
  const auto& rounds = fleet.recorder(0).rounds;
  for (size_t i = 1; i < rounds.size(); ++i) {
    ASSERT_LT(rounds[i].finished - rounds[i - 1].finished, 1.2 * o.step_time)
        << "round " << i;
  }
}

// A score that takes a hundred rounds is that of its round all the same.
TEST(EventsTest, NoRoundWaitsForAScore) {
  SimFleetOptions o = QuadraticFleet(4, 300);
  o.step_jitter = 0;
  o.peer.evaluates = true;
  o.peer.evaluate_every = 50;
  SimFleet waits(o);
  ASSERT_TRUE(waits.Run()) << waits.StatusOf(0);
  o.score_time = 100 * o.step_time;
  SimFleet fleet(o);
  ASSERT_TRUE(fleet.Run()) << fleet.StatusOf(0);
  EXPECT_EQ(fleet.Hash(), waits.Hash());
  const auto scores_of = [](SimFleet& f) {
    std::vector<RoundScore> all;
    for (const RoundMetrics& m : f.recorder(0).rounds) {
      all.insert(all.end(), m.scores.begin(), m.scores.end());
    }
    return all;
  };
  EXPECT_EQ(scores_of(fleet), scores_of(waits));
  EXPECT_EQ(scores_of(fleet).size(), 6u);
  const auto& rounds = fleet.recorder(0).rounds;
  for (size_t i = 1; i < rounds.size(); ++i) {
    ASSERT_LT(rounds[i].finished - rounds[i - 1].finished, 1.2 * o.step_time)
        << "round " << i;
  }

  // A run that is stopped has the scores of its rounds, too.
  SimFleet stopped(o);
  stopped.Start();
  stopped.loop().RunFor(110 * o.step_time);
  stopped.fleet().RequestStop();
  ASSERT_TRUE(stopped.Run()) << stopped.StatusOf(0);
  const auto until = scores_of(stopped);
  ASSERT_GE(until.size(), 2u);
  const auto all = scores_of(waits);
  EXPECT_TRUE(std::equal(until.begin(), until.end(), all.begin()));

  // A machine that is too slow for the scores asked for leaves some out.
  o.peer.evaluate_every = 2;
  SimFleet slow(o);
  ASSERT_TRUE(slow.Run()) << slow.StatusOf(0);
  EXPECT_EQ(slow.Hash(), waits.Hash());
  EXPECT_GE(slow.recorder(0).Count("score_skipped"), 1);
  EXPECT_THAT(DetailOf(slow.recorder(0), "score_skipped"),
              HasSubstr("raise evaluation.every"));
  EXPECT_EQ(scores_of(slow).back().round, 300u);
}

// A game whose evaluator fails.
class Unscored final : public WrappedGame, private Evaluator {
 public:
  explicit Unscored(std::unique_ptr<Game> game)
      : WrappedGame(std::move(game)) {}
  Evaluator* evaluator() override { return this; }

 private:
  std::string_view score_name() const override { return "none"; }
  absl::StatusOr<double> Score(std::span<const float>, RngKey) override {
    return absl::DataLossError("a feature is not finite");
  }
  absl::Status WriteSamples(std::span<const float>, RngKey,
                            const std::string& path) override {
    return absl::UnavailableError(path + ": no space left");
  }
};

TEST(EventsTest, AScoreOrAPictureThatFailsStopsNobody) {
  SimFleetOptions o = QuadraticFleet(4, 40);
  SimFleet without(o);
  ASSERT_TRUE(without.Run());
  o.peer.evaluates = true;
  o.peer.evaluate_every = 20;
  o.peer.samples_folder = "samples";
  o.game = [game = o.game](int rank) {
    return std::make_unique<Unscored>(game(rank));
  };
  SimFleet fleet(o);
  ASSERT_TRUE(fleet.Run()) << fleet.StatusOf(0);
  EXPECT_EQ(fleet.recorder(0).Count("score_failed"), 2);
  EXPECT_EQ(fleet.recorder(0).Count("samples_failed"), 2);
  EXPECT_THAT(DetailOf(fleet.recorder(0), "samples_failed"),
              HasSubstr("samples/round-20.png: no space left"));
  EXPECT_EQ(fleet.Hash(), without.Hash());
}

}  // namespace events_test
}  // namespace gossamer
