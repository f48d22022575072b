// The simulated disk keeps what was synced, loses what was not by a power cut,
// and fails as often as it is asked to.

#include "tests/simulation/memory_disk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gossamer::simulation {
namespace memory_disk_test {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class MemoryDiskTest : public testing::Test {
 protected:
  std::string Read(const std::string& path) {
    const auto text = files_.ReadText(path);
    return text.ok() ? *text : std::string(text.status().message());
  }
  MemoryDisk disk_;
  CrashPoint crash_;
  DiskSession::Errors errors_;
  DiskSession files_{&disk_, &crash_, &errors_, RngKey(1)};
};

TEST_F(MemoryDiskTest, APowerCutTakesBackNamesThatWereNotSynced) {
  bool kept = false, lost = false;
  for (uint64_t i = 0; i < 32; ++i) {
    disk_.Wipe();
    ASSERT_TRUE(files_.MakeFolder("a/b").ok());
    ASSERT_TRUE(files_.WriteText("a/b/x", "x").ok());
    ASSERT_TRUE(files_.SyncFolder("a/b").ok());
    ASSERT_TRUE(files_.Rename("a/b", "a/c").ok());
    disk_.CutPower(RngKey(i));
    kept |= files_.Exists("a/b");
    lost |= files_.Exists("a/c");
    EXPECT_EQ(Read(files_.Exists("a/b") ? "a/b/x" : "a/c/x"), "x");
  }
  EXPECT_TRUE(kept);
  EXPECT_TRUE(lost) << "what was not synced may have come through";
}

TEST_F(MemoryDiskTest, SyncedFilesAndFoldersSurviveAPowerCut) {
  ASSERT_TRUE(files_.MakeFolder("a/b").ok());
  ASSERT_TRUE(files_.WriteText("a/b/x", "x").ok());
  ASSERT_TRUE(files_.SyncFolder("a/b").ok());
  ASSERT_TRUE(files_.Rename("a/b", "a/b.c").ok());
  ASSERT_TRUE(files_.SyncFolder("a").ok());
  ASSERT_TRUE(files_.MakeFolder("a/b").ok());
  disk_.CutPower(RngKey(1));
  EXPECT_THAT(*files_.Entries("a"), ElementsAre("b", "b.c"));
  EXPECT_THAT(*files_.Entries("a/b"), IsEmpty());
  EXPECT_EQ(Read("a/b.c/x"), "x");
}

// Removing a folder takes its pending changes along; a new folder of that name
// does not get them.
TEST_F(MemoryDiskTest, ANewFolderGetsNoChangesOfARemovedOne) {
  ASSERT_TRUE(files_.MakeFolder("a/b").ok());
  ASSERT_TRUE(files_.WriteText("a/b/x", "old").ok());
  ASSERT_TRUE(files_.SyncFolder("a/b").ok());
  ASSERT_TRUE(files_.Remove("a/b").ok());
  ASSERT_TRUE(files_.SyncFolder("a").ok());
  ASSERT_TRUE(files_.MakeFolder("a/b").ok());
  ASSERT_TRUE(files_.WriteText("a/b/x", "new").ok());
  ASSERT_TRUE(files_.SyncFolder("a/b").ok());
  for (uint64_t i = 0; i < 8; ++i) {
    disk_.CutPower(RngKey(i));
    EXPECT_EQ(Read("a/b/x"), "new");
  }
}

TEST_F(MemoryDiskTest, ADeadProcessWritesNoMore) {
  ASSERT_TRUE(files_.MakeFolder("a").ok());
  crash_.Arm(1);
  EXPECT_TRUE(files_.WriteText("a/x", "x").ok()) << "nobody hears it";
  EXPECT_TRUE(crash_.dead());
  EXPECT_FALSE(files_.WriteText("a/y", "y").ok());
  EXPECT_THAT(*files_.Entries("a"), ElementsAre("x"));
}

TEST_F(MemoryDiskTest, AWriteInWhichTheProcessDiesLeavesAPart) {
  bool torn = false;
  for (uint64_t i = 0; i < 32; ++i) {
    CrashPoint crash;
    DiskSession files(&disk_, &crash, &errors_, RngKey(i));
    crash.Arm(1);
    files.WriteText("x", "0123456789").IgnoreError();
    ASSERT_LE(Read("x").size(), 10u);
    EXPECT_EQ(Read("x"), std::string("0123456789").substr(0, Read("x").size()));
    torn |= Read("x").size() < 10;
  }
  EXPECT_TRUE(torn);
}

TEST_F(MemoryDiskTest, AFailedWriteLeavesAPart) {
  errors_.write = 1;
  EXPECT_FALSE(files_.WriteText("x", "0123456789").ok());
  EXPECT_LE(Read("x").size(), 10u);
}

TEST_F(MemoryDiskTest, AReadFailsAndTheNextOneMayNot) {
  ASSERT_TRUE(files_.MakeFolder("a").ok());
  ASSERT_TRUE(files_.WriteText("a/x", "x").ok());
  errors_.read = 0.5;
  int failed = 0;
  for (int i = 0; i < 100; ++i) {
    const auto names = files_.Entries("a");
    const auto text = files_.ReadText("a/x");
    failed += !names.ok() + !text.ok();
    if (names.ok()) {
      EXPECT_THAT(*names, ElementsAre("x"));
    }
    if (text.ok()) {
      EXPECT_EQ(*text, "x");
    }
  }
  EXPECT_GT(failed, 60);
  EXPECT_LT(failed, 140);
  errors_.read = 1;
  EXPECT_TRUE(files_.WriteText("a/y", "y").ok());
  EXPECT_FALSE(files_.Size("a/y").ok());
  EXPECT_FALSE(files_.Sha256("a/y").ok());
}

}  // namespace memory_disk_test
}  // namespace gossamer::simulation
