// A Store in an SQLite file.
//
// A save is one transaction on a write-ahead log with synchronous=FULL: after a
// crash or a power cut the file holds either the new record or the one before.
// This header knows nothing of what the record means.

#ifndef GOSSAMER_RUNTIME_SERVICE_SQLITE_STORE_H_
#define GOSSAMER_RUNTIME_SERVICE_SQLITE_STORE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/topology.pb.h"
#include "runtime/service/store.h"

struct sqlite3;

namespace gossamer {

class SqliteStore final : public Store {
 public:
  // Opens or creates the file, which one process may hold at a time.  Returns
  // kUnavailable if it cannot be opened or another process holds it; kDataLoss
  // if it is no such file, or one of another format.
  static absl::StatusOr<std::unique_ptr<SqliteStore>> Open(
      const std::string& path);

  // The process that has opened the file holds it until it ends.
  absl::Status Acquire() override { return absl::OkStatus(); }
  absl::Status Held() const override { return absl::OkStatus(); }
  absl::StatusOr<std::optional<FleetRecord>> Load() override;
  absl::Status Save(const FleetRecord& record) override;

 private:
  struct Close {
    void operator()(sqlite3* db) const;
  };
  SqliteStore(std::unique_ptr<sqlite3, Close> db, std::string path)
      : db_(std::move(db)), path_(std::move(path)) {}
  absl::Status Prepare();
  // kDataLoss that names the file and says what to do.
  absl::Status Damaged(absl::string_view what) const;
  // Adds all members to `stored`, or returns an error.
  absl::Status ReadMembers(wire::StoredFleet& stored);
  // Writes the rows that differ from those of `written_`.
  absl::Status WriteMembers(const FleetRecord& record);

  std::unique_ptr<sqlite3, Close> db_;
  std::string path_;
  // The members whose rows are in the file, and the name of its view; none: the
  // file may have others.
  std::optional<std::vector<MemberRecord>> written_;
  std::pair<uint64_t, uint64_t> written_view_;  // generation and epoch
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_SERVICE_SQLITE_STORE_H_
