// The file operations that durability rests on, behind an interface.  A test
// can fail each of them in turn, and a simulation can keep its disks in memory.
//
// This header knows nothing of checkpoints.

#ifndef GOSSAMER_RUNTIME_CHECKPOINT_FILE_OPS_H_
#define GOSSAMER_RUNTIME_CHECKPOINT_FILE_OPS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/safetensors.h"

namespace gossamer {

// All errors begin with the path and have the system's message:
// kResourceExhausted for a full disk or quota, otherwise the code of
// absl::ErrnoToStatus.  Written files are synced when the call returns.
class FileOps {
 public:
  virtual ~FileOps() = default;
  // Makes a folder and its parents, durably.  An existing folder is no error.
  virtual absl::Status MakeFolder(const std::string& path) = 0;
  virtual absl::Status WriteText(const std::string& path,
                                 std::string_view text) = 0;
  // Sets *sha256 to that of the file, in lower-case hexadecimal, as its bytes
  // are written: nothing is read back.
  virtual absl::Status WriteTensors(const std::string& path,
                                    const SafetensorsView& tensors,
                                    std::string* sha256) = 0;
  // Makes the names in a folder durable.
  virtual absl::Status SyncFolder(const std::string& path) = 0;
  virtual absl::Status Rename(const std::string& from,
                              const std::string& to) = 0;
  // Removes a file, or a folder with its contents.  A missing one is no error.
  virtual absl::Status Remove(const std::string& path) = 0;

  virtual bool Exists(const std::string& path) = 0;
  // Returns the names in a folder; none if there is no such folder.
  virtual absl::StatusOr<std::vector<std::string>> Entries(
      const std::string& folder) = 0;
  virtual absl::StatusOr<uint64_t> Size(const std::string& path) = 0;
  // Returns the bytes that this process may still write on the disk of a path,
  // which need not exist yet.
  virtual absl::StatusOr<uint64_t> FreeBytes(const std::string& path) = 0;
  virtual absl::StatusOr<std::string> ReadText(const std::string& path) = 0;
  virtual absl::StatusOr<Safetensors> ReadTensors(const std::string& path) = 0;
  // Returns the SHA-256 in lower-case hexadecimal.
  virtual absl::StatusOr<std::string> Sha256(const std::string& path) = 0;
};

FileOps& SystemFileOps();

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_CHECKPOINT_FILE_OPS_H_
