#include "runtime/service/sqlite_store.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "algorithms/base/status_macros.h"
#include "topology/fleet/parse_message.h"
#include "topology/fleet/protocol.h"
#include "topology/fleet/record_message.h"
#include "topology/fleet/view_message.h"

namespace gossamer {
namespace {

// The PRAGMA user_version of the file.
constexpr int kSchemaVersion = 3;

// Makes a file of version 2 one of version 3.
constexpr char kAddMacKey[] =
    "BEGIN; ALTER TABLE fleet ADD COLUMN mac_key BLOB NOT NULL DEFAULT x'';"
    "PRAGMA user_version=3; COMMIT";

constexpr char kSchema[] = R"sql(
CREATE TABLE fleet(
  only INTEGER PRIMARY KEY CHECK (only = 1),
  generation INTEGER NOT NULL,
  layout_fingerprint INTEGER NOT NULL,
  configuration_hash INTEGER NOT NULL,
  stop_round INTEGER NOT NULL,
  stop_committed INTEGER NOT NULL,
  assembled INTEGER NOT NULL,
  suspicions INTEGER NOT NULL,
  removals INTEGER NOT NULL,
  returns INTEGER NOT NULL,
  joins INTEGER NOT NULL,
  leaves INTEGER NOT NULL,
  mac_key BLOB NOT NULL) STRICT;
CREATE TABLE member(
  id INTEGER PRIMARY KEY,
  boot_id INTEGER NOT NULL,
  address TEXT NOT NULL,
  checkpoint_rounds TEXT NOT NULL,
  in_view INTEGER NOT NULL,
  resume_round INTEGER NOT NULL,
  finished INTEGER NOT NULL,
  standing INTEGER NOT NULL,
  needs_parameters INTEGER NOT NULL,
  removals INTEGER NOT NULL) STRICT;
CREATE TABLE view(
  epoch INTEGER PRIMARY KEY,
  message BLOB NOT NULL) STRICT;
)sql";

// Unsigned 64-bit numbers are stored as SQLite's signed ones, bit for bit.
int64_t Signed(uint64_t v) { return static_cast<int64_t>(v); }

// One prepared statement, whose parameters are bound from the left.
class Statement {
 public:
  Statement(sqlite3* db, const char* sql) {
    // An error shows at Step(), so that callers have one place to look.
    sqlite3_prepare_v2(db, sql, -1, &statement_, nullptr);
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& Number(uint64_t value) {
    sqlite3_bind_int64(statement_, ++bound_, Signed(value));
    return *this;
  }
  Statement& Text(const std::string& value) {
    sqlite3_bind_text(statement_, ++bound_, value.data(),
                      // SQLite copies the bytes: they may be gone before the
                      // step.
                      static_cast<int>(value.size()), SQLITE_TRANSIENT);
    return *this;
  }
  Statement& Blob(const std::string& value) {
    sqlite3_bind_blob(statement_, ++bound_, value.data(),
                      static_cast<int>(value.size()), SQLITE_TRANSIENT);
    return *this;
  }
  // Returns SQLITE_ROW, SQLITE_DONE or an error, also one of the preparation.
  int Step() {
    return statement_ == nullptr ? SQLITE_ERROR : sqlite3_step(statement_);
  }
  uint64_t NumberAt(int column) {
    return static_cast<uint64_t>(sqlite3_column_int64(statement_, column));
  }
  std::string BytesAt(int column) {
    const auto* bytes =
        static_cast<const char*>(sqlite3_column_blob(statement_, column));
    const int size = sqlite3_column_bytes(statement_, column);
    return bytes == nullptr ? std::string() : std::string(bytes, size);
  }

 private:
  sqlite3_stmt* statement_ = nullptr;
  int bound_ = 0;
};

absl::Status Failure(sqlite3* db, const std::string& path,
                     const std::string& what) {
  const std::string why = sqlite3_errmsg(db);
  // The low byte is the kind of an error; the rest is detail.
  switch (sqlite3_errcode(db) & 0xff) {
    case SQLITE_BUSY:
      return absl::UnavailableError(absl::StrCat(
          what, " ", path, ": another process has it open; is another ",
          "gossamer-topology running on this --state?"));
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return absl::DataLossError(
          absl::StrCat(what, " ", path, ": ", why,
                       "; move it away to begin with an empty state"));
    case SQLITE_IOERR:
      return absl::UnavailableError(
          absl::StrCat(what, " ", path, ": ", why,
                       "; check the disk under it, nothing has been changed"));
    default:
      return absl::UnavailableError(absl::StrCat(what, " ", path, ": ", why));
  }
}

absl::Status Execute(sqlite3* db, const std::string& path, const char* sql) {
  if (sqlite3_exec(db, sql, nullptr, nullptr, nullptr) == SQLITE_OK) {
    return absl::OkStatus();
  }
  return Failure(db, path, "cannot write");
}

absl::StatusOr<std::vector<uint64_t>> ParseRounds(const std::string& path,
                                                  const std::string& text) {
  std::vector<uint64_t> rounds;
  for (absl::string_view part : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    if (!absl::SimpleAtoi(part, &rounds.emplace_back())) {
      return absl::DataLossError(
          absl::StrCat(path, ": checkpoint rounds \"", absl::CHexEscape(text),
                       "\" are not numbers; move it away"));
    }
  }
  return rounds;
}

Standing StandingOf(uint64_t stored) {
  // A number that is none stays one that is none: RecordFromBytes() refuses it.
  return static_cast<Standing>(std::min<uint64_t>(stored, 0xff));
}

}  // namespace

void SqliteStore::Close::operator()(sqlite3* db) const { sqlite3_close(db); }

absl::StatusOr<std::unique_ptr<SqliteStore>> SqliteStore::Open(
    const std::string& path) {
  // The file has a key.  SQLite gives its journals the mode of the file.
  const int made = open(path.c_str(), O_CREAT | O_RDONLY | O_CLOEXEC, 0600);
  if (made >= 0) close(made);
  sqlite3* db = nullptr;
  const int opened = sqlite3_open_v2(
      path.c_str(), &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
  // SQLite returns a handle even if it cannot open the file; it has the message
  // and must be closed.
  std::unique_ptr<SqliteStore> store(new SqliteStore({db, {}}, path));
  if (opened != SQLITE_OK) return Failure(db, path, "cannot open");
  GOSSAMER_RETURN_IF_ERROR(store->Prepare());
  return store;
}

absl::Status SqliteStore::Prepare() {
  sqlite3* db = db_.get();
  // The lock is exclusive: two services on one file would hand out
  // contradicting views.  The empty transaction takes it now, and not at the
  // first save.  With synchronous=FULL a save is on the disk when it returns:
  // the answer to a peer leaves after it, and a power cut must not take back
  // what it said.
  GOSSAMER_RETURN_IF_ERROR(
      Execute(db, path_,
              "PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL;"
              "PRAGMA synchronous=FULL; BEGIN EXCLUSIVE; COMMIT"));
  uint64_t version = 0;
  {
    Statement read(db, "PRAGMA user_version");
    if (read.Step() != SQLITE_ROW) return Failure(db, path_, "cannot read");
    version = read.NumberAt(0);
  }
  // A new file has version 0.
  if (version == kSchemaVersion) return absl::OkStatus();
  if (version == 2) {
    std::error_code error;  // whoever keeps the file open to others may do so
    std::filesystem::permissions(path_,
                                 std::filesystem::perms::owner_read |
                                     std::filesystem::perms::owner_write,
                                 error);
    return Execute(db, path_, kAddMacKey);
  }
  // The columns of another format are not guessed at: a fleet that is read
  // wrongly would begin with views that its peers contradict.
  if (version != 0) {
    return absl::DataLossError(absl::StrCat(
        path_, " has format ", version, ", this program reads ", kSchemaVersion,
        "; use the program that wrote it, or another --state"));
  }
  return Execute(db, path_,
                 absl::StrCat("BEGIN;", kSchema,
                              "PRAGMA user_version=", kSchemaVersion, ";COMMIT")
                     .c_str());
}

absl::Status SqliteStore::ReadMembers(FleetRecord& record) {
  sqlite3* db = db_.get();
  Statement members(db,
                    "SELECT id, boot_id, address, checkpoint_rounds, in_view,"
                    " resume_round, finished, standing, needs_parameters,"
                    " removals FROM member");
  int next = SQLITE_DONE;
  while ((next = members.Step()) == SQLITE_ROW) {
    GOSSAMER_ASSIGN_OR_RETURN(std::vector<uint64_t> rounds,
                              ParseRounds(path_, members.BytesAt(3)));
    record.members.push_back({.id = {members.NumberAt(0)},
                              .boot_id = members.NumberAt(1),
                              .address = members.BytesAt(2),
                              .checkpoint_rounds = std::move(rounds),
                              .in_view = members.NumberAt(4) != 0,
                              .resume_round = members.NumberAt(5),
                              .finished = members.NumberAt(6) != 0,
                              .standing = StandingOf(members.NumberAt(7)),
                              .needs_parameters = members.NumberAt(8) != 0,
                              .removals = members.NumberAt(9)});
  }
  // A list that ended early would be saved as the whole one.
  if (next != SQLITE_DONE) return Failure(db, path_, "cannot read");
  // Members are ordered by id, as the fleet's code expects them.
  std::sort(
      record.members.begin(), record.members.end(),
      [](const MemberRecord& a, const MemberRecord& b) { return a.id < b.id; });
  return absl::OkStatus();
}

absl::StatusOr<std::optional<FleetRecord>> SqliteStore::Load() {
  sqlite3* db = db_.get();
  FleetRecord record;
  Statement fleet(db,
                  "SELECT generation, layout_fingerprint, configuration_hash,"
                  " stop_round, stop_committed, assembled, suspicions,"
                  " removals, returns, joins, leaves, mac_key FROM fleet");
  // Without a row nothing has been saved yet.
  const int found = fleet.Step();
  if (found == SQLITE_DONE) return std::nullopt;
  if (found != SQLITE_ROW) return Failure(db, path_, "cannot read");
  record.generation = fleet.NumberAt(0);
  record.layout_fingerprint = fleet.NumberAt(1);
  record.configuration_hash = fleet.NumberAt(2);
  record.stop = {.round = fleet.NumberAt(3),
                 .committed = fleet.NumberAt(4) != 0};
  record.assembled = fleet.NumberAt(5) != 0;
  record.counts = {.suspicions = fleet.NumberAt(6),
                   .removals = fleet.NumberAt(7),
                   .returns = fleet.NumberAt(8),
                   .joins = fleet.NumberAt(9),
                   .leaves = fleet.NumberAt(10)};
  record.mac_key = fleet.BytesAt(11);
  GOSSAMER_RETURN_IF_ERROR(ReadMembers(record));
  Statement view(db, "SELECT message FROM view ORDER BY epoch DESC LIMIT 1");
  const int viewed = view.Step();
  if (viewed == SQLITE_ROW) {
    wire::ViewMessage message;
    const std::string bytes = view.BytesAt(0);
    if (!ParseMessage(std::as_bytes(std::span(bytes)), message)) {
      return absl::DataLossError(
          absl::StrCat(path_, ": the view does not parse; move it away"));
    }
    GOSSAMER_ASSIGN_OR_RETURN(record.view, FromMessage(message));
  } else if (viewed != SQLITE_DONE) {
    return Failure(db, path_, "cannot read");
  }
  // Another program may have written the rows, so they pass the same check as a
  // record from etcd.
  const absl::Status possible = RecordFromBytes(ToBytes(record)).status();
  if (possible.ok()) return record;
  return absl::DataLossError(
      absl::StrCat(path_, ": ", std::string(possible.message()),
                   "; move it away to begin with an empty state"));
}

absl::Status SqliteStore::WriteMembers(const FleetRecord& record) {
  sqlite3* db = db_.get();
  if (!written_) {
    GOSSAMER_RETURN_IF_ERROR(Execute(db, path_, "DELETE FROM member"));
    written_.emplace();
  }
  for (const MemberRecord& m : *written_) {
    if (FindMember(record.members, m.id) != nullptr) continue;
    Statement gone(db, "DELETE FROM member WHERE id = ?");
    gone.Number(m.id.value);
    if (gone.Step() != SQLITE_DONE) return Failure(db, path_, "cannot write");
  }
  for (const MemberRecord& m : record.members) {
    const MemberRecord* old = FindMember(*written_, m.id);
    if (old != nullptr && *old == m) continue;
    Statement insert(db,
                     "INSERT OR REPLACE INTO member"
                     " VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    insert.Number(m.id.value)
        .Number(m.boot_id)
        .Text(m.address)
        .Text(absl::StrJoin(m.checkpoint_rounds, " "))
        .Number(m.in_view)
        .Number(m.resume_round)
        .Number(m.finished)
        .Number(static_cast<uint64_t>(m.standing))
        .Number(m.needs_parameters)
        .Number(m.removals);
    if (insert.Step() != SQLITE_DONE) return Failure(db, path_, "cannot write");
  }
  return absl::OkStatus();
}

absl::Status SqliteStore::Save(const FleetRecord& record) {
  sqlite3* db = db_.get();
  const std::pair named(record.view.generation, record.view.epoch);
  auto write = [&]() -> absl::Status {
    Statement fleet(
        db,
        "INSERT OR REPLACE INTO fleet VALUES(1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,"
        " ?, ?)");
    fleet.Number(record.generation)
        .Number(record.layout_fingerprint)
        .Number(record.configuration_hash)
        .Number(record.stop.round)
        .Number(record.stop.committed)
        .Number(record.assembled)
        .Number(record.counts.suspicions)
        .Number(record.counts.removals)
        .Number(record.counts.returns)
        .Number(record.counts.joins)
        .Number(record.counts.leaves)
        .Blob(record.mac_key);
    if (fleet.Step() != SQLITE_DONE) return Failure(db, path_, "cannot write");
    GOSSAMER_RETURN_IF_ERROR(WriteMembers(record));
    // There is no view before the first.
    if (record.view.epoch == 0 || named == written_view_) {
      return absl::OkStatus();
    }
    Statement view(db, "INSERT OR REPLACE INTO view VALUES(?, ?)");
    view.Number(record.view.epoch)
        .Blob(ToMessage(record.view).SerializeAsString());
    if (view.Step() != SQLITE_DONE) return Failure(db, path_, "cannot write");
    // Only the newest view is ever read, and a long run has many.
    Statement old(db, "DELETE FROM view WHERE epoch <> ?");
    old.Number(record.view.epoch);
    if (old.Step() != SQLITE_DONE) return Failure(db, path_, "cannot write");
    return absl::OkStatus();
  };
  // One transaction holds fleet, members and view: members of one moment beside
  // the view of another would be a fleet that never was.
  GOSSAMER_RETURN_IF_ERROR(Execute(db, path_, "BEGIN"));
  absl::Status written = write();
  if (written.ok()) written = Execute(db, path_, "COMMIT");
  if (written.ok()) {
    written_ = record.members;
    written_view_ = named;
    return absl::OkStatus();
  }
  // The file has the record before, or after a failed commit either of the two.
  // The error that matters is the first one.
  written_.reset();
  written_view_ = {};
  sqlite3_exec(db, "ROLLBACK", nullptr, nullptr, nullptr);
  return written;
}

}  // namespace gossamer
