// The state that every Store keeps, and the errors of SQLite's files.

#include "runtime/service/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "runtime/service/sqlite_store.h"
#include "tests/runtime/service/etcd/etcd_server.h"
#include "tests/testing/temporary_folder.h"
#include "topology/fleet/protocol.h"
#include "topology/fleet/view_message.h"

namespace gossamer {
namespace store_test {

using ::testing::HasSubstr;

FleetRecord Sample() {
  FleetRecord record;
  record.generation = 5;
  record.layout_fingerprint = ~uint64_t{0};
  record.configuration_hash = 0x8000000000000000;
  record.members = {{.id = {2},
                     .incarnation_id = 7,
                     .address = "a:1",
                     .device = "cuda:0 of a",
                     .checkpoint_rounds = {1, 20, 300},
                     .in_view = true,
                     .resume_round = 20,
                     .finished = false},
                    {.id = {0x9000000000000000},
                     .incarnation_id = ~uint64_t{0},
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
  record.mac_key = std::string("k\0y", 3);
  return record;
}

// The place in which a kind of store keeps one state.
class Place {
 public:
  virtual ~Place() = default;
  virtual absl::StatusOr<std::unique_ptr<Store>> Open() = 0;
};

// A folder with SQLite's file.
class SqlitePlace final : public Place {
 public:
  absl::StatusOr<std::unique_ptr<Store>> Open() override {
    StoreOptions options;
    options.folder = folder_.path() + "/state";
    return OpenStore(options, "run", "one");
  }

 private:
  TemporaryFolder folder_;
};

// An etcd of its own.
class EtcdPlace final : public Place {
 public:
  absl::StatusOr<std::unique_ptr<Store>> Open() override {
    StoreOptions options;
    options.etcd = server_.address();
    return OpenStore(options, "run", "one");
  }

 private:
  EtcdServer server_;
};

// A kind of store, and how to make its place.
struct Kind {
  const char* name;
  std::function<std::unique_ptr<Place>()> make;
};

class StoreTest : public testing::TestWithParam<Kind> {
 protected:
  // Opens the store as a restarted service does.
  void Reopen() {
    store_.reset();
    auto store = place_->Open();
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
    ASSERT_EQ(store_->Acquire(), absl::OkStatus());
    EXPECT_EQ(store_->Held(), absl::OkStatus());
  }
  void SetUp() override { Reopen(); }

  const std::unique_ptr<Place> place_ = GetParam().make();
  std::unique_ptr<Store> store_;
};

TEST_P(StoreTest, IsEmptyAtFirst) {
  const auto record = store_->Load();
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_FALSE(record->has_value());
}

TEST_P(StoreTest, KeepsEverythingOverReopening) {
  const FleetRecord sample = Sample();
  ASSERT_EQ(store_->Save({}), absl::OkStatus());
  ASSERT_EQ(store_->Save(sample), absl::OkStatus());
  Reopen();
  const auto loaded = store_->Load();
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  ASSERT_TRUE(loaded->has_value());
  const FleetRecord& record = **loaded;
  EXPECT_EQ(record.generation, sample.generation);
  EXPECT_EQ(record.layout_fingerprint, sample.layout_fingerprint);
  EXPECT_EQ(record.configuration_hash, sample.configuration_hash);
  EXPECT_EQ(record.assembled, sample.assembled);
  EXPECT_EQ(record.counts, sample.counts);
  EXPECT_EQ(record.members, sample.members);
  EXPECT_EQ(record.mac_key, sample.mac_key);
  EXPECT_EQ(record.stop.round, 1234);
  EXPECT_TRUE(record.stop.committed);
  EXPECT_EQ(ToMessage(record.view).SerializeAsString(),
            ToMessage(sample.view).SerializeAsString());
}

TEST_P(StoreTest, TheLatestSaveCounts) {
  FleetRecord record = Sample();
  ASSERT_EQ(store_->Save(record), absl::OkStatus());
  record.members.pop_back();
  record.view.epoch = 4;
  ASSERT_EQ(store_->Save(record), absl::OkStatus());
  const auto loaded = store_->Load();
  ASSERT_TRUE(loaded.ok());
  EXPECT_EQ((*loaded)->members.size(), 1);
  EXPECT_EQ((*loaded)->view.epoch, 4);
}

// Only rows that changed are written, whatever was in the file before.
TEST_P(StoreTest, EveryChangeOfMembersIsKept) {
  FleetRecord record = Sample();
  record.assembled = false;  // the view may have members that are gone
  const auto kept = [&] {
    EXPECT_EQ(store_->Save(record), absl::OkStatus());
    const auto loaded = store_->Load();
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    EXPECT_EQ((*loaded)->members, record.members);
  };
  kept();
  record.members[0].address = "elsewhere:1";
  kept();
  record.members.erase(record.members.begin());
  kept();
  Reopen();
  record.members.insert(record.members.begin(), Sample().members[0]);
  record.members.back().removals = 5;
  kept();
}

// Peers would refuse an answer with such a round.
TEST_P(StoreTest, AStopThatNoRunHasIsNotTakenUp) {
  FleetRecord record = Sample();
  record.stop.round = kMaxRound;
  ASSERT_EQ(store_->Save(record), absl::OkStatus());
  EXPECT_EQ(store_->Load().status(), absl::OkStatus());
  ++record.stop.round;
  ASSERT_EQ(store_->Save(record), absl::OkStatus());
  const absl::Status refused = store_->Load().status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("the stop's round"));
}

TEST_P(StoreTest, OnlyOneMaySave) {
  ASSERT_EQ(store_->Save(Sample()), absl::OkStatus());
  auto second = place_->Open();
  const absl::Status turned_away =
      second.ok() ? (*second)->Acquire() : second.status();
  EXPECT_FALSE(turned_away.ok());
  EXPECT_THAT(std::string(turned_away.message()),
              testing::AnyOf(HasSubstr("another gossamer-topology"),
                             HasSubstr("the active one is one")));
  EXPECT_FALSE(second.ok() && (*second)->Save({}).ok());
  const auto loaded = store_->Load();
  ASSERT_TRUE(loaded.ok() && loaded->has_value());
  EXPECT_EQ((*loaded)->generation, Sample().generation);
  EXPECT_EQ(store_->Save(Sample()), absl::OkStatus());
}

INSTANTIATE_TEST_SUITE_P(
    All, StoreTest,
    testing::Values(Kind{"Sqlite",
                         [] { return std::make_unique<SqlitePlace>(); }},
                    Kind{"Etcd", [] { return std::make_unique<EtcdPlace>(); }}),
    [](const auto& info) { return std::string(info.param.name); });

// The connections that a test's stores open, as SQLite reports them.
class Connections {
 public:
  Connections() {
    EXPECT_EQ(sqlite3_auto_extension(reinterpret_cast<void (*)()>(Opened)),
              SQLITE_OK);
  }
  ~Connections() {
    sqlite3_reset_auto_extension();
    opened_.clear();
  }
  // Returns the answer of the only connection.
  std::string Ask(const char* pragma) const {
    if (opened_.size() != 1) return "";
    std::string answer;
    sqlite3_exec(
        opened_[0], pragma,
        [](void* out, int, char** columns, char**) {
          *static_cast<std::string*>(out) = columns[0];
          return 0;
        },
        &answer, nullptr);
    return answer;
  }

 private:
  static int Opened(sqlite3* db, char**, const void*) {
    opened_.push_back(db);
    return SQLITE_OK;
  }
  inline static std::vector<sqlite3*> opened_;
};

// A save that returned OK has been synced: the saving connection says so
// itself, opened as the program opens it by default.
TEST(SqliteStoreTest, ASaveIsSyncedInFull) {
  const Connections connections;
  SqlitePlace place;
  const auto store = place.Open();
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_EQ(connections.Ask("PRAGMA synchronous"), "2");  // FULL
  EXPECT_EQ(connections.Ask("PRAGMA journal_mode"), "wal");
  EXPECT_EQ(connections.Ask("PRAGMA locking_mode"), "exclusive");
  ASSERT_EQ((*store)->Save(Sample()), absl::OkStatus());
  EXPECT_EQ(connections.Ask("PRAGMA synchronous"), "2");
}

TEST(SqliteStoreTest, FilesThatAreNotItsOwnAreRefused) {
  TemporaryFolder folder;
  const std::string path = folder.path() + "/fleet.sqlite";
  std::ofstream(path) << std::string(5000, 'x');
  EXPECT_EQ(SqliteStore::Open(path).status().code(),
            absl::StatusCode::kDataLoss);
  const auto missing =
      SqliteStore::Open(folder.path() + "/no/such/folder.sqlite");
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kUnavailable);
}

std::string Contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Any damage is an error: otherwise the next save would make a short list the
// whole.
TEST(SqliteStoreTest, NoDamagedFileIsAFleetOfFewer) {
  TemporaryFolder folder;
  const std::string path = folder.path() + "/fleet.sqlite";
  FleetRecord record = Sample();
  for (uint64_t id = 100; id < 600; ++id) {
    MemberRecord member = record.members[0];
    member.id = {id};
    record.members.insert(record.members.end() - 1, member);
  }
  {
    const auto store = SqliteStore::Open(path);
    ASSERT_TRUE(store.ok()) << store.status();
    ASSERT_EQ((*store)->Save(record), absl::OkStatus());
  }
  const std::string good = Contents(path);
  constexpr size_t kPage = 4096;
  ASSERT_GT(good.size(), 8 * kPage);
  int refused = 0;
  const auto read = [&](const std::string& bytes) {
    std::filesystem::remove(path + "-wal");
    std::ofstream(path, std::ios::binary) << bytes;
    const auto store = SqliteStore::Open(path);
    const auto loaded = store.ok() ? (*store)->Load() : store.status();
    if (!loaded.ok()) {
      ++refused;
      EXPECT_THAT(std::string(loaded.status().message()), HasSubstr(path));
      EXPECT_THAT(std::string(loaded.status().message()), HasSubstr("move it"));
    } else {
      ASSERT_TRUE(loaded->has_value());
      EXPECT_TRUE((*loaded)->members == record.members);
      EXPECT_EQ((*loaded)->view.epoch, record.view.epoch);
    }
  };
  for (size_t at = 0; at < good.size(); at += kPage) {
    SCOPED_TRACE(at);
    std::string damaged = good;
    damaged.replace(at, kPage, std::string(kPage, '\xff'));
    read(damaged);
    if (at > 0) read(good.substr(0, at));
  }
  EXPECT_GT(refused, 8);
}

// The file is whole, but another program has changed it.
TEST(SqliteStoreTest, RowsThatNoServiceWritesAreRefused) {
  const std::pair<const char*, const char*> cases[] = {
      {"UPDATE fleet SET head = x'ff'", "does not parse"},
      {"UPDATE fleet SET head = x''", "format 0"},
      {"UPDATE view SET message = x'ff'", "the view does not parse"},
      {"UPDATE member SET message = x'ff'", "a member does not parse"},
      {"UPDATE member SET message = x'0802'", "no proper address"},
      {"DELETE FROM member WHERE id = 2", "peer 2 is in the view"},
  };
  for (const auto& [statement, says] : cases) {
    SCOPED_TRACE(statement);
    TemporaryFolder folder;
    const std::string path = folder.path() + "/fleet.sqlite";
    {
      const auto store = SqliteStore::Open(path);
      ASSERT_TRUE(store.ok()) << store.status();
      ASSERT_EQ((*store)->Save(Sample()), absl::OkStatus());
    }
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
    ASSERT_EQ(sqlite3_exec(db, statement, nullptr, nullptr, nullptr),
              SQLITE_OK);
    sqlite3_close(db);
    const auto store = SqliteStore::Open(path);
    ASSERT_TRUE(store.ok()) << store.status();
    const auto loaded = (*store)->Load();
    EXPECT_EQ(loaded.status().code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(std::string(loaded.status().message()), HasSubstr(path));
    EXPECT_THAT(std::string(loaded.status().message()), HasSubstr(says));
  }
}

TEST(SqliteStoreTest, OnlyTheOwnerReadsTheKey) {
  TemporaryFolder folder;
  const std::string path = folder.path() + "/fleet.sqlite";
  const auto store = SqliteStore::Open(path);
  ASSERT_TRUE(store.ok()) << store.status();
  ASSERT_EQ((*store)->Save(Sample()), absl::OkStatus());
  for (const auto& file : std::filesystem::directory_iterator(folder.path())) {
    EXPECT_EQ(file.status().permissions(),
              std::filesystem::perms::owner_read |
                  std::filesystem::perms::owner_write)
        << file.path();
  }
}

TEST(SqliteStoreTest, AnotherFormatIsRefused) {
  TemporaryFolder folder;
  const std::string path = folder.path() + "/fleet.sqlite";
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
  sqlite3_exec(db, "PRAGMA user_version=9", nullptr, nullptr, nullptr);
  sqlite3_close(db);
  const auto store = SqliteStore::Open(path);
  EXPECT_EQ(store.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(store.status().message()), HasSubstr("format 9"));
}

}  // namespace store_test
}  // namespace gossamer
