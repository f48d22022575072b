#include "topology/service/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <fstream>
#include <string>

#include "runtime/membership/view_message.h"
#include "tests/cli/temporary_folder.h"

namespace gossamer {
namespace {

using ::testing::HasSubstr;

FleetRecord Sample() {
  FleetRecord record;
  record.generation = 5;
  record.layout_fingerprint = ~uint64_t{0};
  record.configuration_hash = 0x8000000000000000;
  record.members = {{.id = {2},
                     .boot_id = 7,
                     .address = "a:1",
                     .checkpoint_rounds = {1, 20, 300},
                     .in_view = true,
                     .resume_round = 20,
                     .finished = false},
                    {.id = {0x9000000000000000},
                     .boot_id = ~uint64_t{0},
                     .address = "o'neill:2",
                     .checkpoint_rounds = {},
                     .in_view = false,
                     .resume_round = 0,
                     .finished = true,
                     .standing = Standing::kLeft,
                     .needs_parameters = true,
                     .removals = 3}};
  record.assembled = true;
  record.counts = {
      .suspicions = 5, .removals = 4, .returns = 3, .joins = 2, .leaves = 1};
  record.view.run_id = "run";
  record.view.generation = 4;
  record.view.epoch = 3;
  record.view.from_round = 99;
  record.view.members = {{{2}, "a:1"}};
  record.stop = {.round = 1234, .committed = true};
  return record;
}

Store OpenOrDie(const std::string& path) {
  auto store = Store::Open(path);
  EXPECT_TRUE(store.ok()) << store.status();
  return *std::move(store);
}

TEST(StoreTest, IsEmptyAtFirst) {
  TemporaryFolder folder;
  Store store = OpenOrDie(folder.path() + "/fleet.sqlite");
  const auto record = store.Load();
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_FALSE(record->has_value());
}

TEST(StoreTest, KeepsEverythingOverReopening) {
  TemporaryFolder folder;
  const std::string path = folder.path() + "/fleet.sqlite";
  FleetRecord sample = Sample();
  {
    Store store = OpenOrDie(path);
    ASSERT_TRUE(store.Save({}).ok());
    ASSERT_TRUE(store.Save(sample).ok());
  }
  Store store = OpenOrDie(path);
  const auto loaded = store.Load();
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const FleetRecord& record = **loaded;
  EXPECT_EQ(record.generation, sample.generation);
  EXPECT_EQ(record.layout_fingerprint, sample.layout_fingerprint);
  EXPECT_EQ(record.configuration_hash, sample.configuration_hash);
  EXPECT_EQ(record.members, sample.members);
  EXPECT_EQ(record.stop.round, 1234);
  EXPECT_TRUE(record.stop.committed);
  EXPECT_EQ(ToMessage(record.view).SerializeAsString(),
            ToMessage(sample.view).SerializeAsString());
}

TEST(StoreTest, TheLatestSaveCounts) {
  TemporaryFolder folder;
  Store store = OpenOrDie(folder.path() + "/fleet.sqlite");
  FleetRecord record = Sample();
  ASSERT_TRUE(store.Save(record).ok());
  record.members.pop_back();
  record.view.epoch = 4;
  ASSERT_TRUE(store.Save(record).ok());
  const auto loaded = store.Load();
  ASSERT_TRUE(loaded.ok());
  EXPECT_EQ((*loaded)->members.size(), 1);
  EXPECT_EQ((*loaded)->view.epoch, 4);
}

TEST(StoreTest, ASecondProcessIsTurnedAway) {
  TemporaryFolder folder;
  const std::string path = folder.path() + "/fleet.sqlite";
  Store first = OpenOrDie(path);
  const auto second = Store::Open(path);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(second.status().message()),
              HasSubstr("another gossamer-topology"));
}

TEST(StoreTest, FilesThatAreNotItsOwnAreRefused) {
  TemporaryFolder folder;
  const std::string path = folder.path() + "/fleet.sqlite";
  std::ofstream(path) << std::string(5000, 'x');
  EXPECT_EQ(Store::Open(path).status().code(), absl::StatusCode::kDataLoss);
  const auto missing = Store::Open(folder.path() + "/no/such/folder.sqlite");
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kUnavailable);
}

TEST(StoreTest, ANewerFormatIsRefused) {
  TemporaryFolder folder;
  const std::string path = folder.path() + "/fleet.sqlite";
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
  sqlite3_exec(db, "PRAGMA user_version=9", nullptr, nullptr, nullptr);
  sqlite3_close(db);
  const auto store = Store::Open(path);
  EXPECT_EQ(store.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(store.status().message()), HasSubstr("format 9"));
}

}  // namespace
}  // namespace gossamer
