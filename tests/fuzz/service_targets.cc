// Records that the topology service keeps over a restart, and its answers to
// people.

#include <sqlite3.h>

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "proto/topology.pb.h"
#include "runtime/base/protobuf_errors.h"
#include "runtime/cli/fleet_client.h"
#include "runtime/cli/survey_network.h"
#include "runtime/lab/scenario.h"
#include "runtime/service/sqlite_store.h"
#include "runtime/telemetry/progress.h"
#include "tests/fuzz/folder.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/message.h"
#include "topology/fleet/control_plane.h"
#include "topology/fleet/record_message.h"

namespace gossamer::fuzz {
namespace {

// Schedules of large views take long, which is allowed, so views are small.
constexpr size_t kMembers = 16;

bool Same(const FleetRecord& a, const FleetRecord& b) {
  return a.members == b.members && a.view.members == b.view.members &&
         a.view.epoch == b.view.epoch && a.generation == b.generation;
}

// A service that starts with a record; its members call it, and so does an
// unknown peer.
void GoOn(const FleetRecord& record) {
  if (record.members.size() > kMembers) return;
  FleetOptions options;
  options.run_id = "run";
  if (record.view.epoch != 0) {
    options.run_id = record.view.run_id;
    options.expected = static_cast<int>(record.view.members.size());
    options.schedule = record.view.schedule;
    options.seed = record.view.seed;
  }
  absl::Time now = absl::FromUnixSeconds(1'000);
  auto plane = ControlPlane::Create(
      options, record, [](const FleetRecord&) { return absl::OkStatus(); },
      [&now] { return now; }, [](const std::string&) {});
  if (!plane.ok()) return;
  for (const MemberRecord& m : record.members) {
    wire::HeartbeatRequest request;
    request.set_run_id(options.run_id);
    request.set_peer_id(m.id.value);
    request.set_boot_id(m.boot_id);
    request.set_round(m.resume_round);
    request.add_suspected(record.members.front().id.value);
    wire::HeartbeatResponse response;
    (void)(*plane)->Heartbeat(request, response);
    now += absl::Seconds(3);
    (void)(*plane)->Tick();
  }
  wire::StopResponse stop;
  (void)(*plane)->Stop({}, stop);
  wire::FleetStatus status;
  (void)(*plane)->GetStatus({}, status);
}

// The record that an instance finds in etcd.
void StoredFleetBytes(Bytes input) {
  SilenceProtobuf();
  const auto record = RecordFromBytes(AbslText(input));
  if (!record.ok()) return;
  const auto again = RecordFromBytes(ToBytes(*record));
  Require(again.ok() && Same(*again, *record),
          "a record says the same once more");
  GoOn(*record);
}

// One row of a table, bound from the left.
class Row {
 public:
  Row(sqlite3* db, const char* sql) {
    Require(sqlite3_prepare_v2(db, sql, -1, &insert_, nullptr) == SQLITE_OK,
            "the tables are there");
  }
  // A row that the table's constraints refuse is skipped.
  ~Row() {
    sqlite3_step(insert_);
    sqlite3_finalize(insert_);
  }
  Row(const Row&) = delete;
  Row& operator=(const Row&) = delete;

  Row& Number(uint64_t value) {
    sqlite3_bind_int64(insert_, ++bound_, static_cast<int64_t>(value));
    return *this;
  }
  Row& Text(Bytes text) {
    sqlite3_bind_text(insert_, ++bound_,
                      reinterpret_cast<const char*>(text.data()),
                      static_cast<int>(text.size()), SQLITE_STATIC);
    return *this;
  }
  Row& Blob(Bytes blob) {
    sqlite3_bind_blob(insert_, ++bound_, blob.data(),
                      static_cast<int>(blob.size()), SQLITE_STATIC);
    return *this;
  }

 private:
  sqlite3_stmt* insert_ = nullptr;
  int bound_ = 0;
};

// Fills the tables: the fleet's numbers, the number of members, the members,
// and the view's bytes.
void Fill(sqlite3* db, Input in) {
  {
    Row fleet(db,
              "INSERT INTO fleet VALUES(1,?,?,?,?,?,?,?,?,?,?,?,x'6b6579')");
    fleet.Number(in.Number()).Number(in.Number()).Number(in.Number());
    fleet.Number(in.Number());
    for (int i = 0; i < 7; ++i) fleet.Number(in.Byte());
  }
  for (int left = in.Byte() % kMembers; left > 0; --left) {
    Row member(db, "INSERT INTO member VALUES(?,?,?,?,?,?,?,?,?,?)");
    member.Number(in.Byte()).Number(in.Number());
    member.Text(in.TakePiece()).Text(in.TakePiece());
    member.Number(in.Byte()).Number(in.Number());
    for (int i = 0; i < 4; ++i) member.Number(in.Byte());
  }
  if (in.empty()) return;
  Row view(db, "INSERT INTO view VALUES(1,?)");
  view.Blob(in.Rest());
}

// The rows that the service finds in its file.  The file is one of SQLite's,
// whatever the rows say.
void StoredRows(Bytes input) {
  static const std::string& path = *new std::string(Folder() + "/fleet.sqlite");
  static const bool made = SqliteStore::Open(path).ok();
  Require(made, "a file can be made");
  sqlite3* db = nullptr;
  Require(sqlite3_open(path.c_str(), &db) == SQLITE_OK, "and opened");
  constexpr char kEmpty[] =
      "PRAGMA synchronous=OFF; BEGIN; DELETE FROM fleet; DELETE FROM member; "
      "DELETE FROM view";
  sqlite3_exec(db, kEmpty, nullptr, nullptr, nullptr);
  Fill(db, Input(input));
  sqlite3_exec(db, "COMMIT", nullptr, nullptr, nullptr);
  Require(sqlite3_close(db) == SQLITE_OK, "nothing of it is in use");

  SilenceProtobuf();
  const auto store = SqliteStore::Open(path);
  Require(store.ok(), "it opens whatever the rows are");
  const auto record = (*store)->Load();
  if (!record.ok() || !*record) return;
  Require((*store)->Save(**record).ok(), "what was read can be written");
  const auto again = (*store)->Load();
  Require(again.ok() && *again && Same(**again, **record),
          "rows say the same once more");
  GoOn(**record);
}

// The status as gossamer status and train show it.
void StatusAnswer(Bytes input) {
  constexpr int kWidth = 100;
  wire::FleetStatus status;
  if (!Parse(input, status)) return;
  for (const uint64_t rounds : {uint64_t{100}, UINT64_MAX}) {
    const FleetProgress progress = ProgressOf(status, rounds, "run");
    for (const std::string& line : FormatTable(progress, kWidth)) {
      Require(line.size() <= kWidth, "a line does not wrap");
    }
    (void)FormatLine(progress);
  }
}

// The scenario that gossamer measure makes of an answer.
void SurveyAnswer(Bytes input) {
  wire::LinkSurveyStatus status;
  if (!Parse(input, status)) return;
  const auto network = NetworkOf(status);
  if (!network.ok()) return;
  const auto again =
      ParseScenario(ScenarioFileOf(*network), "fuzz", std::nullopt);
  Require(again.ok() && again->hosts.size() == network->names.size(),
          "what was measured can be planned with");
}

}  // namespace

std::span<const Target> ServiceTargets() {
  static constexpr Target kTargets[] = {
      {"stored-fleet", StoredFleetBytes},
      {"stored-rows", StoredRows},
      {"fleet-status", StatusAnswer, kProtobufReserve},
      {"survey-answer", SurveyAnswer}};
  return kTargets;
}

}  // namespace gossamer::fuzz
