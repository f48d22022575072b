// A peer's disk in memory, with what a process crash and a power cut leave of
// it.
//
// A written file's bytes are durable when the write returns.  Its name, and the
// changes of renames and removals, are durable only once the folder is synced.
// A power cut keeps a prefix of the changes that were not.  This header knows
// nothing of checkpoints.
//
// Source of the model: Pillai et al., "All File Systems Are Not Created Equal",
// OSDI 2014, on file systems with ordered metadata.

#ifndef GOSSAMER_TESTS_SIMULATION_MEMORY_DISK_H_
#define GOSSAMER_TESTS_SIMULATION_MEMORY_DISK_H_

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/base/rng.h"
#include "runtime/checkpoint/file_ops.h"
#include "runtime/sim/crash_point.h"
#include "tests/simulation/fault_counts.h"

namespace gossamer::simulation {

// Paths are relative, with '/' between names.
class MemoryDisk {
 public:
  using Content = std::shared_ptr<const std::string>;  // null: a folder

  void Write(const std::string& path, Content content);
  void Rename(const std::string& from, const std::string& to);
  void Remove(const std::string& path);
  void Sync(const std::string& folder);
  const std::map<std::string, Content>& names() const { return now_; }

  void CutPower(RngKey draw);
  // Changes one byte of one file in `folder`; false if there is no file.
  bool Damage(const std::string& folder, RngKey draw);
  void Wipe();

 private:
  struct Change {
    enum class Kind { kWrite, kRename, kRemove };
    Kind kind = Kind::kWrite;
    std::string path;
    std::string to;   // the target of a rename
    Content content;  // the content of a write
  };
  using Names = std::map<std::string, Content>;
  static void Apply(Names& names, const Change& change);
  void Do(Change change);

  Names now_;
  Names durable_;
  std::vector<Change> pending_;  // in now_ and not in durable_, in order
};

// The file operations of one process of a peer.
class DiskSession : public FileOps {
 public:
  // The shares of writing and of reading operations that fail.
  struct Errors {
    double write = 0;  // no space is left
    double read = 0;   // EIO; another try may read it
    uint64_t free =
        std::numeric_limits<uint64_t>::max();  // bytes that are left
    FaultCounts* counts = nullptr;
    // Returns whether a process that met these errors may end with `status`.
    bool Explain(const absl::Status& status) const;
  };
  // All arguments outlive it.  `key` draws the errors.
  DiskSession(MemoryDisk* disk, CrashPoint* crash, const Errors* errors,
              RngKey key)
      : disk_(disk), crash_(crash), errors_(errors), key_(key) {}

  absl::Status MakeFolder(const std::string& path) override;
  absl::Status WriteText(const std::string& path,
                         std::string_view text) override;
  absl::Status WriteTensors(const std::string& path,
                            const SafetensorsView& tensors,
                            std::string* sha256) override;
  absl::Status SyncFolder(const std::string& path) override;
  absl::Status Rename(const std::string& from, const std::string& to) override;
  absl::Status Remove(const std::string& path) override;
  bool Exists(const std::string& path) override;
  absl::StatusOr<std::vector<std::string>> Entries(
      const std::string& folder) override;
  absl::StatusOr<uint64_t> Size(const std::string& path) override;
  absl::StatusOr<uint64_t> FreeBytes(const std::string&) override {
    return errors_->free;
  }
  absl::StatusOr<std::string> ReadText(const std::string& path) override;
  absl::StatusOr<Safetensors> ReadTensors(const std::string& path) override;
  absl::StatusOr<std::string> Sha256(const std::string& path) override;

 private:
  // Returns an error if this operation fails.
  absl::Status Begin(const std::string& path);
  void Count(std::string_view fault) const;
  absl::Status BeginRead(const std::string& path);
  absl::Status Write(const std::string& path, std::string content);
  absl::StatusOr<MemoryDisk::Content> Find(const std::string& path);

  MemoryDisk* const disk_;
  CrashPoint* const crash_;
  const Errors* const errors_;
  const RngKey key_;
  uint64_t operations_ = 0, reads_ = 0;
};

}  // namespace gossamer::simulation

#endif  // GOSSAMER_TESTS_SIMULATION_MEMORY_DISK_H_
