// Checkpoints and the store: state comes back, damage is noticed, and no
// operation that fails loses an earlier checkpoint.

#include "runtime/checkpoint/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>
#include <initializer_list>

#include "absl/strings/str_cat.h"
#include "runtime/checkpoint/checkpoint_store.h"
#include "tests/testing/temporary_folder.h"

namespace gossamer {
namespace checkpoint_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// An object with all three kinds of state.
struct Thing {
  std::vector<float> x = {1, 2, 3};
  uint64_t steps = 7;
  std::vector<std::byte> edge = {std::byte{9}, std::byte{8}};

  void Visit(StateVisitor& v) {
    v.Floats("x", x);
    v.Counter("steps", steps);
    v.Bytes("edge", edge);
  }
  friend bool operator==(const Thing&, const Thing&) = default;
};

Checkpoint Take(Thing& thing, uint64_t round) {
  return TakeCheckpoint({.run_id = "r", .peer_id = 3, .round = round},
                        [&](StateVisitor& v) { thing.Visit(v); })
      .value();
}

absl::Status Give(const Checkpoint& checkpoint, Thing& thing) {
  return RestoreCheckpoint(checkpoint,
                           [&](StateVisitor& v) { thing.Visit(v); });
}

Thing ThingOfRound(uint64_t round) {
  Thing thing;
  thing.steps = round;
  thing.x[1] = static_cast<float>(round) / 3;
  return thing;
}

// Fails the n-th operation, which may leave half of its work behind.  With
// `dead` all later ones fail too, as for a process that was killed there.
class FailingFiles : public FileOps {
 public:
  int fail_at = 0;  // 0: never
  bool dead = false;
  // The error of what fails.
  absl::Status error =
      absl::ResourceExhaustedError("disk: No space left on device");
  // The state files for which there is room.
  size_t room = 1000;
  int done = 0;
  // Files in such a folder cannot be read at the moment.
  std::string unreadable;
  std::function<void(const std::string& path)> before_hash = {};

  absl::Status MakeFolder(const std::string& path) override {
    return Try([&] { return SystemFileOps().MakeFolder(path); }, [] {});
  }
  absl::Status WriteText(const std::string& path,
                         std::string_view text) override {
    return Try([&] { return SystemFileOps().WriteText(path, text); },
               [&] { std::ofstream(path) << text.substr(0, 5); });
  }
  absl::Status WriteTensors(const std::string& path,
                            const SafetensorsView& tensors,
                            std::string* sha256) override {
    const auto half = [&] { std::ofstream(path) << "half a file"; };
    size_t there = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(
             std::filesystem::path(path).parent_path().parent_path())) {
      there += entry.path().filename() == "state.safetensors";
    }
    if (there >= room) {
      half();
      return absl::ResourceExhaustedError("disk: No space left on device");
    }
    return Try(
        [&] { return SystemFileOps().WriteTensors(path, tensors, sha256); },
        half);
  }
  absl::Status SyncFolder(const std::string& path) override {
    return Try([&] { return SystemFileOps().SyncFolder(path); }, [] {});
  }
  absl::Status Rename(const std::string& from, const std::string& to) override {
    return Try([&] { return SystemFileOps().Rename(from, to); }, [] {});
  }
  absl::Status Remove(const std::string& path) override {
    return Try([&] { return SystemFileOps().Remove(path); },
               [&] { std::filesystem::remove(path + "/manifest.textproto"); });
  }
  bool Exists(const std::string& path) override {
    return SystemFileOps().Exists(path);
  }
  absl::StatusOr<std::vector<std::string>> Entries(
      const std::string& folder) override {
    return SystemFileOps().Entries(folder);
  }
  absl::StatusOr<uint64_t> Size(const std::string& path) override {
    return Read(path, SystemFileOps().Size(path));
  }
  absl::StatusOr<uint64_t> FreeBytes(const std::string& path) override {
    return Read(path, SystemFileOps().FreeBytes(path));
  }
  absl::StatusOr<std::string> ReadText(const std::string& path) override {
    return Read(path, SystemFileOps().ReadText(path));
  }
  absl::StatusOr<Safetensors> ReadTensors(const std::string& path) override {
    return Read(path, SystemFileOps().ReadTensors(path));
  }
  absl::StatusOr<std::string> Sha256(const std::string& path) override {
    if (before_hash) before_hash(path);
    return Read(path, SystemFileOps().Sha256(path));
  }

 private:
  template <typename T>
  absl::StatusOr<T> Read(const std::string& path, absl::StatusOr<T> read) {
    if (unreadable.empty() || path.find(unreadable) == path.npos) return read;
    return absl::ErrnoToStatus(EIO, path);
  }
  absl::Status Try(const std::function<absl::Status()>& work,
                   const std::function<void()>& half) {
    ++done;
    if (done == fail_at) half();
    if (done == fail_at || (dead && fail_at != 0 && done > fail_at)) {
      return error;
    }
    return work();
  }
};

void SaveRounds(CheckpointStore& store,
                std::initializer_list<uint64_t> rounds) {
  for (const uint64_t round : rounds) {
    Thing thing = ThingOfRound(round);
    ASSERT_TRUE(store.Save(Take(thing, round)).ok()) << round;
  }
}

TEST(Checkpoint, GivesBackWhatItTook) {
  Thing saved = ThingOfRound(5), other;
  ASSERT_TRUE(Give(Take(saved, 5), other).ok());
  EXPECT_EQ(other, saved);
}

TEST(Checkpoint, RefusesASizeThatDoesNotFit) {
  Thing saved, other;
  other.x.resize(4);
  const absl::Status status = Give(Take(saved, 5), other);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("\"x\" has 3 floats, this program's has 4"));
}

TEST(Checkpoint, RefusesMissingAndUnknownState) {
  Thing saved;
  Checkpoint checkpoint = Take(saved, 5);
  checkpoint.counters.erase("steps");
  EXPECT_THAT(std::string(Give(checkpoint, saved).message()),
              HasSubstr("\"steps\" is not in it"));
  checkpoint = Take(saved, 5);
  checkpoint.counters["more"] = 1;
  EXPECT_THAT(std::string(Give(checkpoint, saved).message()),
              HasSubstr("1 of its 4 states are unknown"));
}

TEST(Checkpoint, RefusesANameShownTwice) {
  Thing thing;
  const auto checkpoint = TakeCheckpoint({}, [&](StateVisitor& v) {
    thing.Visit(v);
    thing.Visit(v);
  });
  EXPECT_EQ(checkpoint.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Checkpoint, PrefixesKeepNamesApart) {
  Thing a = ThingOfRound(1), b = ThingOfRound(2), c, d;
  const auto visit = [](Thing& x, Thing& y) {
    return [&](StateVisitor& v) {
      PrefixedVisitor first(v, "a."), second(v, "b.");
      x.Visit(first);
      y.Visit(second);
    };
  };
  const auto checkpoint = TakeCheckpoint({}, visit(a, b));
  ASSERT_TRUE(checkpoint.ok());
  ASSERT_TRUE(RestoreCheckpoint(*checkpoint, visit(c, d)).ok());
  EXPECT_EQ(a, c);
  EXPECT_EQ(b, d);
}

TEST(CheckpointStore, SavesLoadsAndKeepsTheNewest) {
  const TemporaryFolder folder;
  CheckpointStore store(folder.path() + "/deep/checkpoints", 2);
  EXPECT_EQ(store.LoadNewest().status().code(), absl::StatusCode::kNotFound);
  SaveRounds(store, {9, 10, 100});
  EXPECT_THAT(store.Rounds(), ElementsAre(10, 100));
  const auto newest = store.LoadNewest();
  ASSERT_TRUE(newest.ok());
  EXPECT_EQ(newest->id,
            (CheckpointId{.run_id = "r", .peer_id = 3, .round = 100}));
  Thing loaded;
  ASSERT_TRUE(Give(*newest, loaded).ok());
  EXPECT_EQ(loaded, ThingOfRound(100));
}

TEST(CheckpointStore, ReplacesTheSameRound) {
  const TemporaryFolder folder;
  CheckpointStore store(folder.path(), 2);
  Thing first = ThingOfRound(1), second = ThingOfRound(2), loaded;
  ASSERT_TRUE(store.Save(Take(first, 4)).ok());
  ASSERT_TRUE(store.Save(Take(second, 4)).ok());
  EXPECT_THAT(store.Rounds(), ElementsAre(4));
  ASSERT_TRUE(Give(*store.Load(4), loaded).ok());
  EXPECT_EQ(loaded, second);
}

TEST(CheckpointStore, ASaveRemovesUnfinishedFoldersOfEarlierProcesses) {
  const TemporaryFolder folder;
  for (const std::string name : {"round-7.partial", "round-5.replaced"}) {
    std::filesystem::create_directories(folder.path() + "/" + name);
  }
  Thing thing = ThingOfRound(9);
  ASSERT_TRUE(CheckpointStore(folder.path(), 2).Save(Take(thing, 9)).ok());
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    names.push_back(entry.path().filename().string());
  }
  EXPECT_THAT(names, ElementsAre("round-9"));
}

TEST(CheckpointStore, AFolderThatCannotBeReadIsNotAnEmptyOne) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/checkpoints";
  CheckpointStore store(path, 3);
  ASSERT_TRUE(store.List().ok()) << "there is none yet";
  std::ofstream(path) << "in its place";
  EXPECT_THAT(std::string(store.List().status().message()), HasSubstr(path));
  EXPECT_THAT(store.Rounds(), IsEmpty());
  EXPECT_FALSE(store.SetAsideAfter(1).ok());
}

// A running fleet removes old checkpoints while a person lists them.
TEST(CheckpointStore, ACheckpointRemovedDuringAListingIsNotReportedAsDamaged) {
  const TemporaryFolder folder;
  FailingFiles files;
  CheckpointStore store(folder.path(), 3, files);
  SaveRounds(store, {1, 2, 3});
  files.before_hash = [&](const std::string& path) {
    if (path.find("/round-1/") == path.npos) return;
    CheckpointStore running(folder.path(), 3);
    SaveRounds(running, {4});
  };
  const auto list = store.List();
  ASSERT_TRUE(list.ok()) << list.status();
  ASSERT_EQ(list->size(), 2u);
  for (const StoredCheckpoint& stored : *list) {
    EXPECT_TRUE(stored.integrity.ok()) << stored.integrity;
  }
}

// A changed byte may be in the state or in the manifest: a counter of another
// name, for example.
TEST(CheckpointStore, NoByteChangesUnnoticed) {
  const TemporaryFolder folder;
  CheckpointStore store(folder.path(), 1);
  SaveRounds(store, {3});
  for (const char* name : {"manifest.textproto", "state.safetensors"}) {
    const std::string path = folder.path() + "/round-3/" + name;
    std::ifstream in(path, std::ios::binary);
    const std::string good{std::istreambuf_iterator<char>(in), {}};
    ASSERT_GT(good.size(), 100u);
    // The last byte of a manifest is its line end, which has no meaning.
    for (size_t at = 0; at + 1 < good.size(); ++at) {
      std::string bad = good;
      bad[at] ^= static_cast<char>(1);
      std::ofstream(path, std::ios::binary) << bad;
      const auto loaded = store.Load(3);
      EXPECT_FALSE(loaded.ok()) << name << ", byte " << at;
    }
    std::ofstream(path, std::ios::binary) << good;
    EXPECT_TRUE(store.Load(3).ok());
  }
}

// Manifests of earlier programs have no checksum.
TEST(CheckpointStore, AManifestWithoutAChecksumIsTakenAsItIs) {
  const TemporaryFolder folder;
  CheckpointStore store(folder.path(), 1);
  SaveRounds(store, {3});
  const std::string path = folder.path() + "/round-3/manifest.textproto";
  std::ifstream in(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  text.resize(text.find("checksum"));
  std::ofstream(path, std::ios::binary) << text;
  EXPECT_TRUE(store.Load(3).ok());
}

TEST(CheckpointStore, ADamagedCheckpointIsPassedOver) {
  const TemporaryFolder folder;
  CheckpointStore store(folder.path(), 3);
  SaveRounds(store, {1, 2, 3});
  {  // one byte of the values changes, the size does not
    std::fstream file(folder.path() + "/round-3/state.safetensors",
                      std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-1, std::ios::end);
    file.put('\x7f');
  }
  std::filesystem::resize_file(folder.path() + "/round-2/manifest.textproto",
                               10);
  std::vector<absl::Status> passed_over;
  const auto newest = store.LoadNewest(&passed_over);
  ASSERT_TRUE(newest.ok());
  EXPECT_EQ(newest->id.round, 1u);
  ASSERT_EQ(passed_over.size(), 2u);
  EXPECT_THAT(std::string(passed_over[0].message()), HasSubstr("SHA-256"));
  EXPECT_EQ(passed_over[1].code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(store.Rounds(), ElementsAre(1));
}

TEST(CheckpointStore, TheNewestCheckpointAfterTheSharedRoundIsSetAside) {
  const TemporaryFolder folder;
  CheckpointStore store(folder.path(), 9);
  SaveRounds(store, {1, 2, 3});
  EXPECT_EQ(store.SetAsideAfter(3).value(), 0u);
  EXPECT_THAT(store.Rounds(), ElementsAre(1, 2, 3));
  EXPECT_EQ(store.SetAsideAfter(1).value(), 3u);
  EXPECT_THAT(store.Rounds(), ElementsAre(1));
  const std::filesystem::path path = folder.path();
  EXPECT_TRUE(std::filesystem::exists(path / "set-aside-round-3"));
  SaveRounds(store, {4});
  EXPECT_EQ(store.SetAsideAfter(1).value(), 4u);
  EXPECT_FALSE(std::filesystem::exists(path / "set-aside-round-3"));
  std::filesystem::rename(path / "set-aside-round-4", path / "round-4");
  EXPECT_THAT(store.Rounds(), ElementsAre(1, 4));
}

TEST(CheckpointStore, PutsBackWhatWasSetAside) {
  const TemporaryFolder folder;
  CheckpointStore store(folder.path(), 9);
  SaveRounds(store, {1, 2, 3});
  ASSERT_EQ(store.SetAsideAfter(1).value(), 3u);
  const auto aside = store.ListSetAside();
  ASSERT_TRUE(aside.ok()) << aside.status();
  ASSERT_EQ(aside->size(), 1u);
  EXPECT_EQ(aside->front().round, 3u);
  EXPECT_TRUE(aside->front().integrity.ok());
  EXPECT_EQ(aside->front().id.round, 3u);
  EXPECT_GT(aside->front().bytes, 0u);
  EXPECT_EQ(store.List()->size(), 1u);
  EXPECT_EQ(store.RestoreSetAside(2).code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(store.RestoreSetAside(3).ok());
  EXPECT_THAT(store.Rounds(), ElementsAre(1, 3));
  EXPECT_TRUE(store.ListSetAside()->empty());
}

// A checkpoint of the same round is not replaced.  Peers would go on from one
// of a later round instead.
TEST(CheckpointStore, ACheckpointIsRestoredOnlyAsTheNewest) {
  for (const uint64_t there : {3, 4}) {
    const TemporaryFolder folder;
    CheckpointStore store(folder.path(), 9);
    SaveRounds(store, {1, 3});
    ASSERT_EQ(store.SetAsideAfter(1).value(), 3u);
    SaveRounds(store, {there});
    const absl::Status status = store.RestoreSetAside(3);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(absl::StrCat("/round-", there, " is there")));
    EXPECT_THAT(store.Rounds(), ElementsAre(1, there));
    EXPECT_EQ(store.ListSetAside()->size(), 1u);
  }
}

TEST(CheckpointStore, ADamagedCheckpointIsNotRestored) {
  const TemporaryFolder folder;
  CheckpointStore store(folder.path(), 9);
  SaveRounds(store, {1, 3});
  ASSERT_EQ(store.SetAsideAfter(1).value(), 3u);
  std::filesystem::resize_file(
      folder.path() + "/set-aside-round-3/state.safetensors", 40);
  EXPECT_EQ(store.RestoreSetAside(3).code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(store.ListSetAside()->front().integrity.code(),
            absl::StatusCode::kDataLoss);
  EXPECT_THAT(store.Rounds(), ElementsAre(1));
}

// If the disk fails meanwhile, an older checkpoint of that past must not be the
// newest.
TEST(CheckpointStore, SettingAsideMovesTheNewestCheckpointLast) {
  bool failed = true;
  int at = 1;
  for (; failed; ++at) {
    SCOPED_TRACE(at);
    const TemporaryFolder folder;
    FailingFiles files;
    CheckpointStore store(folder.path(), 9, files);
    SaveRounds(store, {1, 2, 3});
    files.fail_at = files.done + at;
    failed = !store.SetAsideAfter(1).ok();
    files.fail_at = 0;
    const std::filesystem::path path = folder.path();
    if (std::filesystem::exists(path / "set-aside-round-3")) {
      EXPECT_THAT(store.Rounds(), ElementsAre(1));
    } else {
      EXPECT_EQ(store.Rounds().back(), 3u);
    }
  }
  EXPECT_GT(at, 4) << "nothing failed";
}

// A kill while one of the same round was replaced leaves both.  The older one
// must not be the newest once the other has been set aside, wherever that is
// killed.
TEST(CheckpointStore, AReplacedCheckpointDoesNotOutliveItsSuccessor) {
  bool failed = true;
  int at = 1;
  for (; failed; ++at) {
    SCOPED_TRACE(at);
    const TemporaryFolder folder;
    const std::filesystem::path path = folder.path();
    FailingFiles files;
    files.dead = true;
    CheckpointStore store(folder.path(), 9, files);
    SaveRounds(store, {1, 3});
    std::filesystem::copy(path / "round-3", path / "round-3.replaced");
    Thing newer = ThingOfRound(7);
    std::filesystem::remove_all(path / "round-3");
    {
      const TemporaryFolder elsewhere;
      CheckpointStore other(elsewhere.path(), 9);
      ASSERT_TRUE(other.Save(Take(newer, 3)).ok());
      std::filesystem::copy(elsewhere.path() + "/round-3", path / "round-3");
    }
    files.done = 0;
    files.fail_at = at;
    failed = !store.SetAsideAfter(1).ok();
    CheckpointStore after(folder.path(), 9);
    if (after.Rounds().back() == 3) {
      EXPECT_EQ(after.SetAsideAfter(1).value(), 3u);
    }
    EXPECT_THAT(after.Rounds(), ElementsAre(1));
    SaveRounds(after, {2});
    std::filesystem::rename(path / "set-aside-round-3", path / "round-3");
    Thing read;
    ASSERT_TRUE(Give(after.Load(3).value(), read).ok());
    EXPECT_EQ(read, newer);
  }
  EXPECT_GT(at, 4) << "nothing failed";
}

// If the replaced checkpoint has no successor yet, it is the one that is kept.
TEST(CheckpointStore, AReplacedCheckpointWithoutASuccessorIsSetAside) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path();
  CheckpointStore store(folder.path(), 9);
  SaveRounds(store, {1, 3});
  std::filesystem::rename(path / "round-3", path / "round-3.replaced");
  EXPECT_EQ(store.SetAsideAfter(1).value(), 3u);
  EXPECT_THAT(store.Rounds(), ElementsAre(1));
  std::filesystem::rename(path / "set-aside-round-3", path / "round-3");
  EXPECT_TRUE(store.Load(3).ok());
}

// A read that fails once is no reason to delete: it may be the only copy.
TEST(CheckpointStore, ACheckpointThatCannotBeReadIsSetAsideNotRemoved) {
  for (const char* what : {"round-3/", "round-3/state", "round-3/manifest"}) {
    SCOPED_TRACE(what);
    const TemporaryFolder folder;
    FailingFiles files;
    CheckpointStore store(folder.path(), 9, files);
    SaveRounds(store, {1, 2, 3});
    files.unreadable = what;
    EXPECT_THAT(store.Rounds(), ElementsAre(1, 2));
    EXPECT_EQ(store.LoadNewest()->id.round, 2u);
    const auto list = store.List();
    ASSERT_TRUE(list.ok());
    EXPECT_THAT(std::string(list->back().integrity.message()), HasSubstr(what));
    EXPECT_EQ(store.SetAsideAfter(1).value(), 3u);
    files.unreadable.clear();
    std::filesystem::rename(folder.path() + "/set-aside-round-3",
                            folder.path() + "/round-3");
    EXPECT_TRUE(store.Load(3).ok());
  }
}

// The later round belongs to a past that was given up, for example while it
// could not be listed.  It must not look like the continuation.
TEST(CheckpointStore, SavingAnEarlierRoundSetsALaterOneAside) {
  const TemporaryFolder folder;
  CheckpointStore store(folder.path(), 9);
  SaveRounds(store, {1, 9, 5});
  EXPECT_THAT(store.Rounds(), ElementsAre(1, 5));
  EXPECT_TRUE(std::filesystem::exists(folder.path() + "/set-aside-round-9"));
}

// Every operation of a save fails in turn, once and for ever.  No earlier
// checkpoint may be lost, and a later save must work.
class FaultLoop : public ::testing::TestWithParam<bool> {};

TEST_P(FaultLoop, AnEarlierCheckpointAlwaysLoads) {
  bool failed = true;
  int points = 0;
  for (int n = 1; failed; ++n) {
    SCOPED_TRACE(absl::StrCat("operation ", n));
    const TemporaryFolder folder;
    FailingFiles files;
    files.dead = GetParam();
    CheckpointStore store(folder.path() + "/c", 1, files);
    Thing old = ThingOfRound(10), next = ThingOfRound(20), loaded;
    ASSERT_TRUE(store.Save(Take(old, 10)).ok());
    files.done = 0;
    files.fail_at = n;
    const absl::Status status = store.Save(Take(next, 20));
    failed = !status.ok();
    if (failed) {
      ++points;
      EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    }

    CheckpointStore after(folder.path() + "/c", 1);
    const auto newest = after.LoadNewest();
    ASSERT_TRUE(newest.ok()) << newest.status();
    ASSERT_TRUE(Give(*newest, loaded).ok());
    EXPECT_EQ(loaded, ThingOfRound(newest->id.round));
    ASSERT_TRUE(after.Save(Take(next, 20)).ok());
    EXPECT_THAT(after.Rounds(), ElementsAre(20));
  }
  EXPECT_GE(points, 8);
}

TEST_P(FaultLoop, ReplacingARoundNeverTouchesOthers) {
  bool failed = true;
  for (int n = 1; failed; ++n) {
    SCOPED_TRACE(absl::StrCat("operation ", n));
    const TemporaryFolder folder;
    FailingFiles files;
    files.dead = GetParam();
    CheckpointStore store(folder.path(), 2, files);
    Thing old = ThingOfRound(10), next = ThingOfRound(20);
    ASSERT_TRUE(store.Save(Take(old, 10)).ok());
    ASSERT_TRUE(store.Save(Take(next, 20)).ok());
    files.done = 0;
    files.fail_at = n;
    files.error = absl::ErrnoToStatus(EIO, "disk");
    failed = !store.Save(Take(next, 20)).ok();
    EXPECT_TRUE(CheckpointStore(folder.path(), 2).Load(10).ok());
    EXPECT_TRUE(CheckpointStore(folder.path(), 2).Load(20).ok());
  }
}

TEST(CheckpointStore, AFullDiskKeepsFewerCheckpoints) {
  const TemporaryFolder folder;
  FailingFiles files;
  files.room = 2;
  CheckpointStore store(folder.path(), 2, files);
  SaveRounds(store, {10, 20});
  EXPECT_EQ(store.gone_for_room(), 0u);
  // There is room for two, and not for one more.
  SaveRounds(store, {30, 40});
  EXPECT_THAT(store.Rounds(), ElementsAre(30, 40));
  EXPECT_EQ(store.gone_for_room(), 2u);
}

TEST(CheckpointStore, AFullDiskLeavesTheLastWholeCheckpoint) {
  const TemporaryFolder folder;
  FailingFiles files;
  files.room = 1;
  CheckpointStore store(folder.path(), 2, files);
  SaveRounds(store, {10});
  Thing next = ThingOfRound(20);
  EXPECT_EQ(store.Save(Take(next, 20)).code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(store.Rounds(), ElementsAre(10));
  // A newer one that is damaged is none.
  files.room = 2;
  SaveRounds(store, {20});
  std::ofstream(folder.path() + "/round-20/state.safetensors") << "damage";
  EXPECT_EQ(store.Save(Take(next, 30)).code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(store.Rounds(), ElementsAre(10));
  EXPECT_EQ(store.gone_for_room(), 0u);
}

// The checkpoint counts as restored only when the folder is synced.
TEST_P(FaultLoop, PuttingBackLosesNothing) {
  bool failed = true;
  int points = 0;
  for (int n = 1; failed; ++n) {
    SCOPED_TRACE(absl::StrCat("operation ", n));
    const TemporaryFolder folder;
    FailingFiles files;
    files.dead = GetParam();
    CheckpointStore store(folder.path(), 2, files);
    SaveRounds(store, {1, 9});
    ASSERT_EQ(store.SetAsideAfter(1).value(), 9u);
    files.done = 0;
    files.fail_at = n;
    failed = !store.RestoreSetAside(9).ok();
    points += failed;
    CheckpointStore after(folder.path(), 2);
    if (after.Rounds().back() != 9) {
      EXPECT_TRUE(failed);
      EXPECT_TRUE(after.RestoreSetAside(9).ok());
    }
    EXPECT_THAT(after.Rounds(), ElementsAre(1, 9));
  }
  EXPECT_EQ(points, 2) << "the rename and the sync of the folder";
}

// The list includes a checkpoint that is to go: a kill meanwhile is no damage
// to report.
TEST_P(FaultLoop, AFolderIsWholeOrAbsent) {
  bool failed = true;
  for (int n = 1; failed; ++n) {
    SCOPED_TRACE(absl::StrCat("operation ", n));
    const TemporaryFolder folder;
    FailingFiles files;
    files.dead = GetParam();
    CheckpointStore store(folder.path(), 2, files);
    SaveRounds(store, {1, 9, 10});
    files.done = 0;
    files.fail_at = n;
    Thing next = ThingOfRound(5);
    failed = !store.Save(Take(next, 5)).ok();
    failed = !store.SetAsideAfter(1).ok() || failed;
    CheckpointStore after(folder.path(), 2);
    const auto list = after.List();
    ASSERT_TRUE(list.ok()) << list.status();
    for (const StoredCheckpoint& stored : *list) {
      EXPECT_TRUE(stored.integrity.ok()) << stored.integrity;
    }
    // The rest of the removed ones does not stay for good.
    ASSERT_TRUE(after.Save(Take(next, 5)).ok());
    for (const auto& e : std::filesystem::directory_iterator(folder.path())) {
      EXPECT_NE(e.path().extension(), ".removing") << e.path();
    }
  }
}

// The later round stays until this one is saved, even if it is of a past that
// was given up.
TEST_P(FaultLoop, AnEarlierRoundReplacesALaterOneOnlyOnceItIsSaved) {
  bool failed = true;
  for (int n = 1; failed; ++n) {
    SCOPED_TRACE(absl::StrCat("operation ", n));
    const TemporaryFolder folder;
    FailingFiles files;
    files.dead = GetParam();
    CheckpointStore store(folder.path(), 2, files);
    Thing later = ThingOfRound(9), next = ThingOfRound(5);
    ASSERT_TRUE(store.Save(Take(later, 9)).ok());
    files.done = 0;
    files.fail_at = n;
    failed = !store.Save(Take(next, 5)).ok();
    CheckpointStore after(folder.path(), 2);
    const auto newest = after.LoadNewest();
    ASSERT_TRUE(newest.ok()) << newest.status();
    EXPECT_TRUE(failed || newest->id.round == 5) << newest->id.round;
    ASSERT_TRUE(after.Save(Take(next, 5)).ok());
    EXPECT_THAT(after.Rounds(), ElementsAre(5));
  }
}

INSTANTIATE_TEST_SUITE_P(Faults, FaultLoop, ::testing::Bool(),
                         [](const auto& info) {
                           return info.param ? "Killed" : "FullOnce";
                         });

}  // namespace checkpoint_test
}  // namespace gossamer
