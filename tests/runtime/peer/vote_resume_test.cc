// A student and its teachers that stop, die and come back: what they learn is
// what they would have learnt, and nothing is released that was not paid for.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/checkpoint/checkpoint_store.h"
#include "runtime/checkpoint/privacy_ledger.h"
#include "runtime/sim/crash_point.h"
#include "tests/runtime/peer/vote_fleet.h"
#include "tests/simulation/memory_disk.h"
#include "tests/testing/temporary_folder.h"

namespace gossamer {
namespace vote_resume_test {

using ::testing::HasSubstr;

constexpr uint64_t kEvery = 4;
constexpr char kLedger[] = "spent";
const uint64_t kBatch = static_cast<uint64_t>(VoteSettings().batch);

std::string Message(const absl::Status& status) {
  return std::string(status.message());
}

CheckpointId LedgerId() { return {.run_id = "sim", .peer_id = 1}; }

// The disks of the peers by rank, which outlive processes.
class Disks {
 public:
  std::unique_ptr<FileOps> Session(int rank, simulation::CrashPoint* crash) {
    return std::make_unique<simulation::DiskSession>(
        &disks_[rank], crash, &kNoErrors, RngKey(++sessions_));
  }
  simulation::MemoryDisk& of(int rank) { return disks_[rank]; }

 private:
  static constexpr simulation::DiskSession::Errors kNoErrors = {};
  std::map<int, simulation::MemoryDisk> disks_;
  uint64_t sessions_ = 0;
};

// One incarnation of the whole fleet, on disks.
class Incarnation {
 public:
  struct Options {
    Disks* disks = nullptr;
    int groups = 2;
    uint64_t every = kEvery;
    uint64_t noise = 9;
    bool noise_repeats = true;
    uint64_t effects = 0;  // after which the student dies; 0: it lives
    int fails_at = 0;      // what it learns is not finite; 0: never
  };

  // Begins at the newest round of which all have a checkpoint.
  explicit Incarnation(const Options& options) : options_(options) {
    SimFleetOptions o = VoteFleet(options_.groups);
    static uint64_t incarnations = 0;
    o.incarnation = ++incarnations;
    o.peer.checkpoint_every = options_.every;
    for (int rank = 0; rank < o.peers; ++rank) {
      crashes_.push_back(std::make_unique<simulation::CrashPoint>());
      disks_.push_back(options_.disks->Session(rank, crashes_.back().get()));
    }
    if (options_.effects > 0) crashes_[0]->Arm(options_.effects);
    ledger_ = PrivacyLedger::Open(kLedger, LedgerId(), *disks_[0]);
    if (!ledger_.ok()) return;
    o.checkpoints = "kept";
    o.resume_round = CommonRound();
    o.files = [this](int rank) {
      return disks_[static_cast<size_t>(rank)].get();
    };
    o.transport = [this](int rank, EventLoop*,
                         std::unique_ptr<Transport> transport) {
      return std::make_unique<simulation::MortalTransport>(
          std::move(transport), crashes_[static_cast<size_t>(rank)].get());
    };
    o.voting = [this](int rank) {
      return VotingParts{.noise = RngKey(options_.noise),
                         .noise_repeats = options_.noise_repeats,
                         .ledger = rank == 0 ? ledger_->get() : nullptr};
    };
    fleet_ = std::make_unique<SimFleet>(o);
    student().fails_at = options_.fails_at;
  }

  const absl::Status& opened() const { return ledger_.status(); }
  SimFleet& fleet() { return *fleet_; }
  TableStudent& student() { return GameOf(*fleet_, 0).student; }
  uint64_t spent() const { return (*ledger_)->spent(); }
  bool dead() const { return crashes_[0]->dead(); }
  // Until the student has learnt so often, or has died.
  void RunToStep(int learnt) {
    fleet_->Start();
    fleet_->loop().RunUntil(
        [&] { return student().learnt >= learnt || dead(); }, absl::Minutes(1));
  }

 private:
  uint64_t CommonRound() {
    std::map<uint64_t, int> count;
    for (size_t rank = 0; rank < disks_.size(); ++rank) {
      const CheckpointStore store(absl::StrCat("kept/peer-", rank), 2,
                                  *disks_[rank]);
      for (const uint64_t round : store.Rounds()) ++count[round];
    }
    uint64_t newest = 0;
    for (const auto& [round, n] : count) {
      if (n == static_cast<int>(disks_.size())) newest = round;
    }
    return newest;
  }

  const Options options_;
  std::vector<std::unique_ptr<simulation::CrashPoint>> crashes_;
  std::vector<std::unique_ptr<FileOps>> disks_;
  absl::StatusOr<std::unique_ptr<PrivacyLedger>> ledger_;
  std::unique_ptr<SimFleet> fleet_;
};

struct Result {
  std::vector<float> table;
  uint64_t steps = 0, spent = 0;
  int learnt = 0;
};

// Runs to the end of the budget.
Result RunToTheEnd(const Incarnation::Options& options) {
  Incarnation last(options);
  EXPECT_TRUE(last.opened().ok()) << last.opened();
  EXPECT_TRUE(last.fleet().Run()) << last.fleet().StatusOf(0);
  EXPECT_EQ(last.fleet().recorder(0).Count("budget_spent"), 1);
  return {last.student().table, last.fleet().peer(0).steps(), last.spent(),
          last.student().learnt};
}

Result Whole() {
  Disks disks;
  return RunToTheEnd({.disks = &disks});
}

TEST(VoteResumeTest, StoppedAndResumedIsWholeBitForBit) {
  const Result whole = Whole();
  ASSERT_EQ(whole.steps, AllowedSteps(VoteSettings()));
  for (const int groups : {1, 3}) {
    for (const int after : {1, 3}) {
      SCOPED_TRACE(absl::StrCat(after, " of ", groups));
      Disks disks;
      const Incarnation::Options o = {.disks = &disks, .groups = groups};
      int learnt = 0;
      {
        Incarnation first(o);
        first.RunToStep(after);
        first.fleet().fleet().RequestStop();
        ASSERT_TRUE(first.fleet().Run()) << first.fleet().StatusOf(0);
        EXPECT_TRUE(first.fleet().peer(0).stopped());
        learnt = first.student().learnt;
        ASSERT_LT(learnt, static_cast<int>(whole.steps));
      }
      const Result second = RunToTheEnd(o);
      EXPECT_EQ(second.table, whole.table);
      EXPECT_EQ(second.spent, whole.spent);
      EXPECT_EQ(second.learnt + learnt, whole.learnt);
    }
  }
}

// Also where teachers have kept a round that the student has not.
TEST(VoteResumeTest, DeathsChangeNoBitWhereTheNoiseIsKept) {
  const Result whole = Whole();
  for (const uint64_t every : {1, 4}) {
    for (int dies = 1; dies <= 9; ++dies) {
      SCOPED_TRACE(absl::StrCat(dies, " of ", every));
      Disks disks;
      const Incarnation::Options o = {.disks = &disks, .every = every};
      for (int death = 0; death < 2; ++death) {
        Incarnation dead(o);
        dead.RunToStep(dies);
        // Into the next step, a little farther in every case.
        dead.fleet().loop().RunFor(absl::Milliseconds(3) * dies);
      }
      const Result last = RunToTheEnd(o);
      EXPECT_EQ(last.table, whole.table);
      EXPECT_EQ(last.spent, whole.spent);
    }
  }
}

TEST(VoteResumeTest, ASpentBudgetStaysSpentAndAsksNobody) {
  Disks disks;
  const Incarnation::Options o = {.disks = &disks, .noise_repeats = false};
  const Result first = RunToTheEnd(o);
  const Result again = RunToTheEnd(o);
  EXPECT_EQ(again.learnt, 0);
  EXPECT_EQ(again.table, first.table);
  EXPECT_EQ(again.spent, first.spent);
}

// With fresh noise a step that is taken again is another release.
TEST(VoteResumeTest, StepsTakenAgainArePaidForAgain) {
  Disks disks;
  Incarnation::Options o = {.disks = &disks, .noise_repeats = false};
  uint64_t before = 0;
  {
    Incarnation first(o);
    first.RunToStep(7);  // the state is that after step 4
    before = first.spent();
    EXPECT_EQ(before, 7 * kBatch);
  }
  o.noise = 10;
  const Result last = RunToTheEnd(o);
  EXPECT_EQ(last.steps, AllowedSteps(VoteSettings()) - 3);
  EXPECT_EQ(last.spent, AllowedSteps(VoteSettings()) * kBatch);
}

// The promise of the ledger.  The student loses its power between any two of
// its effects on disk and network, wherever in a step that is; then a fleet
// with fresh noise goes on until the budget is spent.  Over all incarnations
// there are never more releases than the budget allows, and none that had not
// been counted.
TEST(VoteResumeTest, NothingIsReleasedThatIsNotPaidFor) {
  bool died = true;
  int between = 0, points = 0;
  for (uint64_t n = 1; died; ++n) {
    SCOPED_TRACE(absl::StrCat("effect ", n));
    Disks disks;
    Incarnation::Options o = {
        .disks = &disks, .groups = 1, .noise_repeats = false, .effects = n};
    uint64_t releases = 0;
    {
      Incarnation first(o);
      if (first.opened().ok()) {
        first.RunToStep(6);
        died = first.dead();
        releases = static_cast<uint64_t>(first.student().learnt);
      }
    }
    disks.of(0).CutPower(RngKey(n));
    points += died;
    o.effects = 0;
    o.noise = 10;
    Incarnation last(o);
    ASSERT_TRUE(last.opened().ok()) << last.opened();
    const uint64_t counted = last.spent();
    EXPECT_GE(counted, releases * kBatch);
    EXPECT_LE(counted, (releases + 1) * kBatch) << "only the step under way";
    between += counted > releases * kBatch;
    ASSERT_TRUE(last.fleet().Run()) << last.fleet().StatusOf(0);
    EXPECT_EQ(last.fleet().recorder(0).Count("budget_spent"), 1);
    releases += static_cast<uint64_t>(last.student().learnt);
    EXPECT_LE(releases, AllowedSteps(VoteSettings()));
    EXPECT_GE(releases + 1, AllowedSteps(VoteSettings()));
    EXPECT_LE(last.spent(), AllowedSteps(VoteSettings()) * kBatch);
  }
  RecordProperty("power_cuts", points);
  EXPECT_GT(points, 60);
  EXPECT_GT(between, 5) << "deaths between the price and what it buys";
}

TEST(VoteResumeTest, AStepThatFailsIsPaidForAndNothingOfItIsKept) {
  Disks disks;
  Incarnation::Options o = {.disks = &disks, .fails_at = 6};
  {
    Incarnation first(o);
    EXPECT_FALSE(first.fleet().Run());
    EXPECT_THAT(Message(first.fleet().StatusOf(0)),
                HasSubstr("round 6: the student's table is not finite. Eps"));
    EXPECT_EQ(first.spent(), 6 * kBatch);
  }
  // The state before it is whole, and what is paid for stays paid for.
  o.fails_at = 0;
  o.noise_repeats = false;
  const Result fresh = RunToTheEnd(o);
  EXPECT_EQ(fresh.learnt, static_cast<int>(AllowedSteps(VoteSettings())) - 6);
  EXPECT_EQ(fresh.steps, AllowedSteps(VoteSettings()) - 2);
}

TEST(VoteResumeTest, ALedgerThatIsMissingOrDamagedIsNoFreshBudget) {
  Disks disks;
  const Incarnation::Options o = {.disks = &disks};
  {
    Incarnation first(o);
    first.RunToStep(5);
  }
  const std::string manifest = "spent/round-25/manifest.textproto";
  ASSERT_TRUE(disks.of(0).names().contains(manifest));
  disks.of(0).Write(manifest, std::make_shared<const std::string>("half"));
  EXPECT_EQ(Incarnation(o).opened().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(Message(Incarnation(o).opened()),
              HasSubstr("nobody knows what is spent"));
  disks.of(0).Remove("spent/round-25");
  Incarnation last(o);
  ASSERT_TRUE(last.opened().ok()) << last.opened();
  EXPECT_FALSE(last.fleet().Run());
  EXPECT_EQ(last.fleet().StatusOf(0).code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(Message(last.fleet().StatusOf(0)),
              HasSubstr("20 images, of which the ledger knows 0"));
  EXPECT_EQ(last.student().learnt, 0);
}

TEST(PrivacyLedgerTest, IsOfOneRunPeerAndConfiguration) {
  Disks disks;
  simulation::CrashPoint lives;
  const auto files = disks.Session(0, &lives);
  const CheckpointId id = {
      .run_id = "a", .peer_id = 1, .configuration_hash = 7};
  const auto ledger = PrivacyLedger::Open(kLedger, id, *files);
  ASSERT_TRUE(ledger.ok()) << ledger.status();
  EXPECT_EQ((*ledger)->spent(), 0u);
  ASSERT_TRUE((*ledger)->Spend(20).ok());
  ASSERT_TRUE((*ledger)->Spend(10).ok());
  EXPECT_EQ((*ledger)->spent(), 20u);
  EXPECT_EQ((*PrivacyLedger::Open(kLedger, id, *files))->spent(), 20u);
  CheckpointId run = id, peer = id, configuration = id;
  run.run_id = "b";
  peer.peer_id = 2;
  configuration.configuration_hash = 8;
  for (const CheckpointId& other : {run, peer, configuration}) {
    const absl::Status opened =
        PrivacyLedger::Open(kLedger, other, *files).status();
    EXPECT_EQ(opened.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(Message(opened), HasSubstr("spent is the ledger of peer 1"));
  }
}

// A death may leave half of an entry that was to go.
TEST(PrivacyLedgerTest, OnlyTheLastEntryCounts) {
  Disks disks;
  simulation::CrashPoint lives;
  const auto files = disks.Session(0, &lives);
  const auto open = [&] {
    return PrivacyLedger::Open(kLedger, LedgerId(), *files);
  };
  ASSERT_TRUE((*open())->Spend(20).ok());
  disks.of(0).Write("spent/round-10", nullptr);
  ASSERT_TRUE(open().ok()) << open().status();
  EXPECT_EQ((*open())->spent(), 20u);
  disks.of(0).Write("spent/round-30", nullptr);
  EXPECT_TRUE(absl::IsDataLoss(open().status()));
}

// The spent budget is not known then, which is not an empty one.
TEST(PrivacyLedgerTest, AFolderThatCannotBeReadIsAnError) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/ledger";
  std::ofstream(path) << "in its place";
  const auto ledger = PrivacyLedger::Open(path, LedgerId());
  ASSERT_FALSE(ledger.ok());
  EXPECT_THAT(Message(ledger.status()), HasSubstr(path));
}

}  // namespace vote_resume_test
}  // namespace gossamer
