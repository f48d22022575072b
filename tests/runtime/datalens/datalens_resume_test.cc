// Student and teachers that stop, die and come back: what they learn is what
// they would have learnt, and nothing is released that was not paid for.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "algorithms/base/status_macros.h"
#include "runtime/datalens/folder_lock.h"
#include "runtime/datalens/kept_state.h"
#include "runtime/datalens/student_peer.h"
#include "runtime/datalens/teacher_peer.h"
#include "runtime/sim/crash_point.h"
#include "runtime/sim/sim_network.h"
#include "runtime/sim/virtual_loop.h"
#include "tests/runtime/datalens/formula_run.h"
#include "tests/simulation/memory_disk.h"
#include "tests/testing/temporary_folder.h"

namespace gossamer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint64_t kEvery = 4;

std::string Message(const absl::Status& status) {
  return std::string(status.message());
}

// What outlives processes: 0 is the student's, g + 1 that of group g.
class Disks {
 public:
  std::unique_ptr<FileOps> Session(int whose, simulation::CrashPoint* crash) {
    return std::make_unique<simulation::DiskSession>(
        &disks_[whose], crash, &kNoErrors, RngKey(++sessions_));
  }
  simulation::MemoryDisk& of(int whose) { return disks_[whose]; }

 private:
  static constexpr simulation::DiskSession::Errors kNoErrors = {};
  std::map<int, simulation::MemoryDisk> disks_;
  uint64_t sessions_ = 0;
};

// A student and groups of teachers in virtual time, each of which can be
// started and killed by itself.
class World {
 public:
  struct Options {
    Disks* disks = nullptr;  // null: nothing is kept
    int groups = 2;
    uint64_t steps = 0;
    uint64_t every = kEvery;
    uint64_t noise = 9;
    bool noise_repeats = true;
    bool teachers_keep = true;
    uint64_t effects = 0;  // after which the student dies; 0: it lives
    int fails_at = 0;      // what it learns is not finite; 0: never
    DataLensSettings settings = Settings();
  };

  explicit World(Options options)
      : options_(std::move(options)), groups_(options_.groups) {}
  ~World() {
    KillStudent();
    for (int g = 0; g < options_.groups; ++g) KillGroup(g);
  }

  // What opening its folder or taking up its state came to.
  absl::Status StartStudent() {
    auto s = std::make_unique<StudentSeat>();
    StudentOptions o = OptionsFor(options_.groups);
    o.settings = options_.settings;
    o.noise = RngKey(options_.noise);
    o.noise_repeats = options_.noise_repeats;
    o.most_steps = options_.steps;
    o.keep_every = options_.every;
    s->student.fails_at = options_.fails_at;
    if (options_.effects > 0) s->crash.Arm(options_.effects);
    if (options_.disks != nullptr) {
      s->files = options_.disks->Session(0, &s->crash);
      const KeptOptions kept = {.folder = "kept",
                                .peer = kStudentId,
                                .settings = SettingsText(options_.settings),
                                .files = s->files.get()};
      KeptOptions ledger = kept;
      ledger.folder = "spent";
      GOSSAMER_ASSIGN_OR_RETURN(s->kept, KeptState::Open(kept));
      GOSSAMER_ASSIGN_OR_RETURN(s->ledger, PrivacyLedger::Open(ledger));
      o.kept = s->kept.get();
      o.ledger = s->ledger.get();
    }
    s->loop = std::make_unique<VirtualPeerLoop>(&loop_);
    s->transport = std::make_unique<simulation::MortalTransport>(
        network_.CreateEndpoint(kStudentId, s->loop.get()), &s->crash);
    s->peer = std::make_unique<StudentPeer>(
        s->loop.get(), s->transport.get(), &s->student, std::move(o),
        [p = s.get()](absl::Status status) { p->ended = std::move(status); });
    s->transport->SetListener(s->peer.get());
    GOSSAMER_RETURN_IF_ERROR(s->peer->Restore());
    s->loop->Post([p = s.get()] { p->peer->Start(); });
    student_ = std::move(s);
    return absl::OkStatus();
  }

  absl::Status StartGroup(int group) {
    auto s = std::make_unique<TeacherSeat>();
    TeacherOptions o = TeachersFor();
    o.settings = options_.settings;
    if (options_.disks != nullptr && options_.teachers_keep) {
      s->files = options_.disks->Session(1 + group, &s->crash);
      GOSSAMER_ASSIGN_OR_RETURN(
          s->kept, KeptState::Open({.folder = "kept",
                                    .peer = TeacherGroupId(group),
                                    .settings = SettingsText(options_.settings),
                                    .files = s->files.get()}));
      o.kept = s->kept.get();
    }
    s->loop = std::make_unique<VirtualPeerLoop>(&loop_);
    s->transport =
        network_.CreateEndpoint(TeacherGroupId(group), s->loop.get());
    s->teachers = TeachersOf(group, options_.groups);
    s->peer = std::make_unique<TeacherPeer>(
        s->loop.get(), s->transport.get(), s->teachers.get(), o,
        [p = s.get()](absl::Status status) { p->ended = std::move(status); });
    s->transport->SetListener(s->peer.get());
    GOSSAMER_RETURN_IF_ERROR(s->peer->Restore());
    s->loop->Post([p = s.get()] { p->peer->Start(); });
    groups_[group] = std::move(s);
    return absl::OkStatus();
  }

  // As by SIGKILL.
  void KillStudent() { student_.reset(); }
  void KillGroup(int group) { groups_[group].reset(); }
  void StopGroup(int group) { groups_[group]->peer->Stop(); }

  void StartAll() {
    ASSERT_TRUE(StartStudent().ok());
    for (int g = 0; g < options_.groups; ++g) ASSERT_TRUE(StartGroup(g).ok());
  }

  // Until the student has learnt so often in this life, or has ended.
  void RunToStep(int learnt) {
    ASSERT_TRUE(loop_.RunUntil(
        [&] {
          return student_->student.learnt >= learnt ||
                 student_->ended.has_value() || student_->crash.dead();
        },
        absl::Hours(1)));
  }
  // A few more callbacks: frames under way, timers.
  void RunFor(absl::Duration duration) { loop_.RunFor(duration); }
  absl::Status RunToTheEnd() {
    EXPECT_TRUE(loop_.RunUntil(
        [&] {
          bool all = student_->ended.has_value();
          for (const auto& g : groups_) {
            all = all && (g == nullptr || g->ended.has_value());
          }
          return all;
        },
        absl::Hours(1)));
    return student_->ended.value_or(absl::UnknownError("did not end"));
  }

  StudentPeer& student() { return *student_->peer; }
  const std::vector<float>& table() { return student_->student.table; }
  int learnt() { return student_->student.learnt; }
  const KeptState& kept() { return *student_->kept; }
  const KeptState& kept(int group) { return *groups_[group]->kept; }
  absl::Status ended(int group) {
    return groups_[group]->ended.value_or(absl::UnknownError("runs"));
  }
  bool dead() const { return student_->crash.dead(); }

 private:
  // A transport goes before its listener.
  struct StudentSeat {
    ~StudentSeat() { transport.reset(); }
    simulation::CrashPoint crash;
    std::unique_ptr<FileOps> files;
    std::unique_ptr<KeptState> kept;
    std::unique_ptr<PrivacyLedger> ledger;
    TableStudent student;
    std::unique_ptr<VirtualPeerLoop> loop;
    std::unique_ptr<StudentPeer> peer;
    std::unique_ptr<Transport> transport;
    std::optional<absl::Status> ended;
  };
  struct TeacherSeat {
    ~TeacherSeat() { transport.reset(); }
    simulation::CrashPoint crash;
    std::unique_ptr<FileOps> files;
    std::unique_ptr<KeptState> kept;
    std::unique_ptr<VirtualPeerLoop> loop;
    std::unique_ptr<FormulaTeachers> teachers;
    std::unique_ptr<TeacherPeer> peer;
    std::unique_ptr<Transport> transport;
    std::optional<absl::Status> ended;
  };

  const Options options_;
  VirtualLoop loop_;
  SimNetwork network_{&loop_, {.link = {}, .double_dial = 0.5}};
  std::unique_ptr<StudentSeat> student_;
  std::vector<std::unique_ptr<TeacherSeat>> groups_;
};

struct Result {
  absl::Status status;
  std::vector<float> table;
  StudentProgress progress;
  bool budget_spent = false;
  int learnt = 0;
};

Result Whole(World::Options options) {
  World world(std::move(options));
  world.StartAll();
  const absl::Status status = world.RunToTheEnd();
  return {status, world.table(), world.student().progress(),
          world.student().budget_spent(), world.learnt()};
}

uint64_t AllowedSteps() {
  const DataLensSettings s = Settings();
  return RdpAccountant::Create(VoteSensitivity(s), s.sigma)->Allowed(s.budget) /
         static_cast<uint64_t>(s.batch);
}

TEST(DataLensResumeTest, TwoLivesAreOneBitForBit) {
  const Result whole = Whole({});
  ASSERT_TRUE(whole.status.ok()) << whole.status;
  ASSERT_TRUE(whole.budget_spent);
  for (const uint64_t steps : {1, 4, 7}) {
    for (const int groups : {1, 3}) {
      Disks disks;
      World::Options o = {.disks = &disks, .groups = groups};
      o.steps = steps;
      const Result first = Whole(o);
      ASSERT_TRUE(first.status.ok()) << first.status;
      EXPECT_EQ(first.progress.step, steps);
      o.steps = 0;
      const Result second = Whole(o);
      ASSERT_TRUE(second.status.ok()) << second.status;
      EXPECT_EQ(second.table, whole.table) << steps << " of " << groups;
      EXPECT_EQ(second.progress.step, whole.progress.step);
      EXPECT_EQ(second.progress.queries, whole.progress.queries);
      EXPECT_EQ(second.learnt + first.learnt, whole.learnt);
    }
  }
}

// Also where teachers have kept a step that the student has not.
TEST(DataLensResumeTest, DeathsChangeNoBitWhereTheNoiseIsKept) {
  const Result whole = Whole({});
  for (const uint64_t every : {1, 4}) {
    for (int dies = 1; dies <= 9; ++dies) {
      SCOPED_TRACE(absl::StrCat(dies, " of ", every));
      Disks disks;
      const World::Options o = {.disks = &disks, .every = every};
      for (int life = 0; life < 2; ++life) {
        World world(o);
        world.StartAll();
        world.RunToStep(dies);
        // Into the next step, a little farther in every case.
        world.RunFor(absl::Microseconds(300) * dies);
      }
      const Result last = Whole(o);
      ASSERT_TRUE(last.status.ok()) << last.status;
      EXPECT_EQ(last.table, whole.table);
      EXPECT_EQ(last.progress.queries, whole.progress.queries);
    }
  }
}

// The others live on and are where they were.
TEST(DataLensResumeTest, TeachersFollowAStudentThatComesBack) {
  const Result whole = Whole({});
  for (int dies = 1; dies <= 9; ++dies) {
    SCOPED_TRACE(dies);
    Disks disks;
    World world({.disks = &disks});
    world.StartAll();
    world.RunToStep(dies);
    world.RunFor(absl::Microseconds(700) * dies);
    world.KillStudent();
    world.RunFor(absl::Seconds(1));
    ASSERT_TRUE(world.StartStudent().ok());
    const absl::Status status = world.RunToTheEnd();
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(world.table(), whole.table);
    EXPECT_TRUE(world.ended(0).ok()) << world.ended(0);
  }
}

TEST(DataLensResumeTest, AStudentSaysThatAGroupCameBackAtAnotherStep) {
  const Result whole = Whole({});
  Disks disks;
  const World::Options o = {.disks = &disks};
  {
    World world(o);
    world.StartAll();
    world.RunToStep(7);
    world.KillGroup(1);
    world.RunFor(absl::Milliseconds(100));
    ASSERT_TRUE(world.StartGroup(1).ok());
    const absl::Status status = world.RunToTheEnd();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(Message(status), HasSubstr("group 1 came back after step 4"));
    // Not in good order, so whoever watches over them starts them again.
    EXPECT_THAT(Message(world.ended(0)), HasSubstr("the student ended: "));
  }
  const Result last = Whole(o);
  ASSERT_TRUE(last.status.ok()) << last.status;
  EXPECT_EQ(last.table, whole.table);
}

TEST(DataLensResumeTest, AGroupThatIsBackWhereItWasIsAskedAgain) {
  const Result whole = Whole({});
  Disks disks;
  World world({.disks = &disks, .every = 1});
  world.StartAll();
  world.RunToStep(5);
  world.KillGroup(1);
  world.RunFor(absl::Seconds(1));
  ASSERT_TRUE(world.StartGroup(1).ok());
  const absl::Status status = world.RunToTheEnd();
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(world.table(), whole.table);
}

// It keeps every state at its end, so it is back where it was.
TEST(DataLensResumeTest, AGroupThatStopsMayComeBack) {
  const Result whole = Whole({});
  Disks disks;
  World world({.disks = &disks, .every = 0});
  world.StartAll();
  for (const int group : {0, 1, 0}) {
    world.RunToStep(world.learnt() + 2);
    world.StopGroup(group);
    world.RunFor(absl::Seconds(1));
    EXPECT_TRUE(world.ended(group).ok()) << world.ended(group);
    world.KillGroup(group);
    ASSERT_TRUE(world.StartGroup(group).ok());
  }
  const absl::Status status = world.RunToTheEnd();
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(world.table(), whole.table);
}

TEST(DataLensResumeTest, StopsAfterTheStepUnderWay) {
  const Result whole = Whole({});
  Disks disks;
  const World::Options o = {.disks = &disks, .every = 0};
  {
    World world(o);
    world.StartAll();
    world.RunToStep(5);
    world.RunFor(absl::Milliseconds(1));  // step 6 is under way
    world.student().Stop();
    const absl::Status status = world.RunToTheEnd();
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_TRUE(world.student().stopped());
    EXPECT_FALSE(world.student().budget_spent());
    EXPECT_EQ(world.student().progress().step, 6u);
    for (int g = 0; g < 2; ++g) {
      EXPECT_TRUE(world.ended(g).ok()) << world.ended(g);
      EXPECT_TRUE(world.kept(g).steps().contains(6));
    }
    EXPECT_TRUE(world.kept().steps().contains(6));
  }
  {  // A group is gone, so its votes cannot come.
    World world(o);
    world.StartAll();
    world.RunToStep(1);
    world.KillGroup(1);
    world.RunFor(absl::Milliseconds(10));
    world.student().Stop();
    EXPECT_TRUE(world.RunToTheEnd().ok());
    EXPECT_TRUE(world.student().stopped());
    EXPECT_EQ(world.learnt(), 1);
    EXPECT_TRUE(world.ended(0).ok()) << world.ended(0);
  }
  {  // The other way round: first the stop.
    World world(o);
    world.StartAll();
    world.RunToStep(1);
    world.RunFor(absl::Microseconds(1500));
    world.student().Stop();
    world.KillGroup(1);
    EXPECT_TRUE(world.RunToTheEnd().ok());
    EXPECT_TRUE(world.student().stopped());
  }
  {  // Before its teachers are there.
    World world(o);
    ASSERT_TRUE(world.StartStudent().ok());
    world.RunFor(absl::Seconds(1));
    world.student().Stop();
    EXPECT_TRUE(world.RunToTheEnd().ok());
    EXPECT_GE(world.student().progress().step, 6u);
  }
  const Result last = Whole(o);
  ASSERT_TRUE(last.status.ok()) << last.status;
  EXPECT_EQ(last.table, whole.table);
}

TEST(DataLensResumeTest, ASpentBudgetStaysSpentAndAsksNobody) {
  Disks disks;
  const World::Options o = {.disks = &disks, .noise_repeats = false};
  const Result first = Whole(o);
  ASSERT_TRUE(first.budget_spent);
  World world(o);
  ASSERT_TRUE(world.StartStudent().ok());  // without teachers
  const absl::Status status = world.RunToTheEnd();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(world.student().budget_spent());
  EXPECT_EQ(world.student().progress().step, first.progress.step);
  EXPECT_EQ(world.student().progress().epsilon, first.progress.epsilon);
  EXPECT_EQ(world.table(), first.table);
  EXPECT_EQ(world.learnt(), 0);
}

// The promise of the ledger.  The student loses its power between any two of
// its effects on disk and network, wherever in a step that is; then others with
// fresh noise go on until the budget is spent.  Over all lives there are never
// more releases than the budget allows, and none that had not been counted.
TEST(DataLensResumeTest, NothingIsReleasedThatIsNotPaidFor) {
  const auto batch = static_cast<uint64_t>(Settings().batch);
  bool died = true;
  int between = 0, points = 0;
  for (uint64_t n = 1; died; ++n) {
    SCOPED_TRACE(absl::StrCat("effect ", n));
    Disks disks;
    World::Options o = {.disks = &disks,
                        .groups = 1,
                        .steps = 6,
                        .noise_repeats = false,
                        .effects = n};
    uint64_t releases = 0;
    {
      World world(o);
      died = !world.StartStudent().ok();
      if (!died) {
        ASSERT_TRUE(world.StartGroup(0).ok());
        world.RunToStep(7);
        died = world.dead();
        releases = static_cast<uint64_t>(world.learnt());
      }
    }
    disks.of(0).CutPower(RngKey(n));
    points += died;
    o.effects = 0;
    o.steps = 0;
    o.noise = 10;
    World world(o);
    const absl::Status started = world.StartStudent();
    ASSERT_TRUE(started.ok()) << started;
    const uint64_t counted = world.student().progress().queries;
    EXPECT_GE(counted, releases * batch);
    EXPECT_LE(counted, (releases + 1) * batch) << "only the step under way";
    between += counted > releases * batch;
    ASSERT_TRUE(world.StartGroup(0).ok());
    const absl::Status status = world.RunToTheEnd();
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_TRUE(world.student().budget_spent());
    releases += static_cast<uint64_t>(world.learnt());
    EXPECT_LE(releases, AllowedSteps());
    EXPECT_GE(releases + 1, AllowedSteps());
    EXPECT_LE(world.student().progress().epsilon, Settings().budget.epsilon);
  }
  RecordProperty("power_cuts", points);
  EXPECT_GT(points, 60);
  EXPECT_GT(between, 5) << "deaths between the price and what it buys";
}

// With fresh noise a step that is taken again is another release.
TEST(DataLensResumeTest, AStudentThatIsNotFiniteStopsAndItsStepIsPaidFor) {
  const Result whole = Whole({});
  Disks disks;
  World::Options o = {.disks = &disks, .fails_at = 6};
  {
    World world(o);
    world.StartAll();
    const absl::Status ended = world.RunToTheEnd();
    EXPECT_THAT(Message(ended), HasSubstr("step 6: the student's table is not "
                                          "finite. Epsilon "));
    EXPECT_EQ(world.student().progress().queries, 6 * 5u);
    EXPECT_THAT(world.kept().steps(), ElementsAre(0, 4));
    EXPECT_THAT(Message(world.ended(0)),
                HasSubstr("the student ended: step 6"));
  }
  // What is paid for stays paid for, and the state before it is whole.
  o.fails_at = 0;
  o.noise_repeats = false;
  const Result fresh = Whole(o);
  EXPECT_TRUE(fresh.status.ok()) << fresh.status;
  EXPECT_TRUE(fresh.budget_spent);
  EXPECT_EQ(fresh.learnt, static_cast<int>(AllowedSteps()) - 6);
  EXPECT_EQ(fresh.progress.step, AllowedSteps() - 2);
}

TEST(DataLensResumeTest, StepsTakenAgainArePaidForAgain) {
  Disks disks;
  World::Options o = {.disks = &disks, .noise_repeats = false};
  {
    World world(o);
    world.StartAll();
    world.RunToStep(7);  // the state is that after step 4
  }
  o.noise = 10;
  const Result last = Whole(o);
  ASSERT_TRUE(last.status.ok()) << last.status;
  EXPECT_EQ(last.progress.step, AllowedSteps() - 3);
  EXPECT_EQ(last.progress.queries, AllowedSteps() * Settings().batch);
}

TEST(DataLensResumeTest, ALedgerThatIsMissingOrDamagedIsNoFreshBudget) {
  Disks disks;
  const World::Options o = {.disks = &disks, .steps = 5};
  ASSERT_TRUE(Whole(o).status.ok());
  const std::string manifest = "spent/round-25/manifest.textproto";
  ASSERT_TRUE(disks.of(0).names().contains(manifest));
  disks.of(0).Write(manifest, std::make_shared<const std::string>("half"));
  {
    World world(o);
    const absl::Status status = world.StartStudent();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(Message(status), HasSubstr("nobody knows what is spent"));
  }
  disks.of(0).Remove("spent/round-25");
  World world(o);
  const absl::Status status = world.StartStudent();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(Message(status),
              HasSubstr("25 images, of which the ledger knows 0"));
}

TEST(DataLensResumeTest, OtherSettingsAreNamed) {
  Disks disks;
  World::Options o = {.disks = &disks, .steps = 5};
  ASSERT_TRUE(Whole(o).status.ok());
  o.settings.sigma = 21;
  World world(o);
  for (const absl::Status& status :
       {world.StartStudent(), world.StartGroup(0)}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(Message(status),
                HasSubstr("\"sigma 21\" here, \"sigma 20\" there"));
  }
}

TEST(KeptStateTest, GoingBackForgetsTheOtherPast) {
  Disks disks;
  simulation::CrashPoint lives;
  const auto files = disks.Session(0, &lives);
  const KeptOptions options = {.folder = "kept",
                               .peer = kStudentId,
                               .settings = "a 1\n",
                               .files = files.get()};
  uint64_t value = 0;
  const auto visit = [&](StateVisitor& v) { v.Counter("value", value); };
  {
    const auto kept = KeptState::Open(options);
    ASSERT_TRUE(kept.ok()) << kept.status();
    for (value = 1; value <= 3; ++value) {
      ASSERT_TRUE((*kept)->Save(value, visit).ok());
    }
    EXPECT_THAT((*kept)->steps(), ElementsAre(2, 3));
    ASSERT_TRUE((*kept)->GoTo(2, visit).ok());
    EXPECT_EQ(value, 2u);
    EXPECT_THAT((*kept)->steps(), ElementsAre(2));
  }
  EXPECT_THAT((*KeptState::Open(options))->steps(), ElementsAre(2));
}

// What was spent is not known then, which is not nothing.
TEST(KeptStateTest, AFolderThatCannotBeReadIsAnError) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/ledger";
  std::ofstream(path) << "in its place";
  const auto kept = KeptState::Open({.folder = path,
                                     .peer = kStudentId,
                                     .settings = "a 1\n",
                                     .files = &SystemFileOps()});
  ASSERT_FALSE(kept.ok());
  EXPECT_THAT(std::string(kept.status().message()), HasSubstr(path));
}

// A death may leave half of an entry that was to go.
TEST(PrivacyLedgerTest, OnlyTheLastEntryCounts) {
  Disks disks;
  simulation::CrashPoint lives;
  const auto files = disks.Session(0, &lives);
  const KeptOptions options = {.folder = "spent",
                               .peer = kStudentId,
                               .settings = "a 1\n",
                               .files = files.get()};
  const auto ledger = PrivacyLedger::Open(options);
  ASSERT_TRUE(ledger.ok() && (*ledger)->Spend(20).ok());
  disks.of(0).Write("spent/round-10", nullptr);
  ASSERT_TRUE(PrivacyLedger::Open(options).ok());
  EXPECT_EQ((*PrivacyLedger::Open(options))->spent(), 20u);
  disks.of(0).Write("spent/round-30", nullptr);
  EXPECT_TRUE(absl::IsDataLoss(PrivacyLedger::Open(options).status()));
}

TEST(FolderLockTest, AFolderIsOfOneProcess) {
  const std::string folder = testing::TempDir() + "/datalens-lock";
  auto first = FolderLock::Take(folder);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_THAT(Message(FolderLock::Take(folder).status()),
              HasSubstr("in use by another"));
  *first = FolderLock();
  EXPECT_TRUE(FolderLock::Take(folder).ok());
  std::filesystem::remove_all(folder);
}

TEST(DataLensResumeTest, SaysWhereEverybodyIsIfThatIsNowhereTheSame) {
  Disks disks;
  const World::Options o = {.disks = &disks, .steps = 9};
  ASSERT_TRUE(Whole(o).status.ok());
  disks.of(2).Wipe();
  World world({.disks = &disks});
  world.StartAll();
  const absl::Status status = world.RunToTheEnd();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Message(status),
              HasSubstr("after step 8, 9; group 0 after step 8, 9; group 1 "
                        "after step 0."));
  EXPECT_EQ(world.learnt(), 0);
}

TEST(DataLensResumeTest, AllKeepOrNone) {
  Disks disks;
  World world({.disks = &disks, .teachers_keep = false});
  world.StartAll();
  EXPECT_THAT(Message(world.RunToTheEnd()),
              HasSubstr("start its teachers with --checkpoints"));
}

}  // namespace
}  // namespace gossamer
