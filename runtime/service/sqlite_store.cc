#include "runtime/service/sqlite_store.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "algorithms/base/status_macros.h"
#include "topology/fleet/parse_message.h"
#include "topology/fleet/record_message.h"
#include "topology/fleet/view_message.h"

namespace gossamer {
namespace {

// The PRAGMA user_version of the file.
constexpr int kSchemaVersion = 3;

// The parts of a record as messages of topology.proto, so that a change writes
// the rows that it is of.
constexpr char kSchema[] = R"sql(
CREATE TABLE fleet(
  only INTEGER PRIMARY KEY CHECK (only = 1),
  head BLOB NOT NULL) STRICT;
CREATE TABLE view(
  only INTEGER PRIMARY KEY CHECK (only = 1),
  message BLOB NOT NULL) STRICT;
CREATE TABLE member(
  id INTEGER PRIMARY KEY,
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
  Statement& Blob(const std::string& value) {
    sqlite3_bind_blob(statement_, ++bound_, value.data(),
                      // SQLite copies the bytes: they may be gone before the
                      // step.
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

bool Parse(const std::string& bytes, google::protobuf::Message& message) {
  return ParseMessage(std::as_bytes(std::span(bytes)), message);
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
  // Another format is not guessed at: a fleet that is read wrongly would begin
  // with views that its peers contradict.
  if (version != 0) {
    return absl::DataLossError(absl::StrCat(
        path_, " has format ", version, ", this program reads ", kSchemaVersion,
        "; use the program that wrote it, or move the file away: peers that "
        "train hand their view to a service with an empty state"));
  }
  return Execute(db, path_,
                 absl::StrCat("BEGIN;", kSchema,
                              "PRAGMA user_version=", kSchemaVersion, ";COMMIT")
                     .c_str());
}

absl::Status SqliteStore::Damaged(absl::string_view what) const {
  return absl::DataLossError(absl::StrCat(
      path_, ": ", what, "; move it away to begin with an empty state"));
}

absl::Status SqliteStore::ReadMembers(wire::StoredFleet& stored) {
  sqlite3* db = db_.get();
  Statement members(db, "SELECT message FROM member");
  int next = SQLITE_DONE;
  while ((next = members.Step()) == SQLITE_ROW) {
    if (!Parse(members.BytesAt(0), *stored.add_members())) {
      return Damaged("a member does not parse");
    }
  }
  // A list that ended early would be saved as the whole one.
  if (next != SQLITE_DONE) return Failure(db, path_, "cannot read");
  // Rows come in the order of signed numbers, and ids are unsigned.
  std::ranges::sort(*stored.mutable_members(), {},
                    [](const wire::StoredMember& m) { return m.peer_id(); });
  return absl::OkStatus();
}

absl::StatusOr<std::optional<FleetRecord>> SqliteStore::Load() {
  sqlite3* db = db_.get();
  wire::StoredFleet stored;
  Statement fleet(db, "SELECT head FROM fleet");
  // Without a row nothing has been saved yet.
  const int found = fleet.Step();
  if (found == SQLITE_DONE) return std::nullopt;
  if (found != SQLITE_ROW) return Failure(db, path_, "cannot read");
  if (!Parse(fleet.BytesAt(0), stored)) return Damaged("it does not parse");
  GOSSAMER_RETURN_IF_ERROR(ReadMembers(stored));
  Statement view(db, "SELECT message FROM view");
  const int viewed = view.Step();
  if (viewed == SQLITE_ROW) {
    if (!Parse(view.BytesAt(0), *stored.mutable_view())) {
      return Damaged("the view does not parse");
    }
  } else if (viewed != SQLITE_DONE) {
    return Failure(db, path_, "cannot read");
  }
  // Another program may have written the rows.
  absl::StatusOr<FleetRecord> record = RecordFromMessage(stored);
  if (!record.ok()) return Damaged(record.status().message());
  return *std::move(record);
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
    Statement insert(db, "INSERT OR REPLACE INTO member VALUES(?, ?)");
    insert.Number(m.id.value).Blob(ToMessage(m).SerializeAsString());
    if (insert.Step() != SQLITE_DONE) return Failure(db, path_, "cannot write");
  }
  return absl::OkStatus();
}

absl::Status SqliteStore::Save(const FleetRecord& record) {
  sqlite3* db = db_.get();
  const std::pair named(record.view.generation, record.view.epoch);
  const bool same_view = written_ && named == written_view_;
  auto write = [&]() -> absl::Status {
    Statement fleet(db, "INSERT OR REPLACE INTO fleet VALUES(1, ?)");
    fleet.Blob(HeadOf(record).SerializeAsString());
    if (fleet.Step() != SQLITE_DONE) return Failure(db, path_, "cannot write");
    GOSSAMER_RETURN_IF_ERROR(WriteMembers(record));
    // There is no view before the first.
    if (record.view.epoch == 0 || same_view) return absl::OkStatus();
    Statement view(db, "INSERT OR REPLACE INTO view VALUES(1, ?)");
    view.Blob(ToMessage(record.view).SerializeAsString());
    if (view.Step() != SQLITE_DONE) return Failure(db, path_, "cannot write");
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
  sqlite3_exec(db, "ROLLBACK", nullptr, nullptr, nullptr);
  return written;
}

}  // namespace gossamer
