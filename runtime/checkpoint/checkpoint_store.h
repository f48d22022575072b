// The checkpoints of one peer on disk: whole or absent.
//
//   <folder>/round-120/state.safetensors   floats and bytes, by name
//   <folder>/round-120/manifest.textproto  id, counters, SHA-256
//
// A checkpoint is written beside its name, synced, renamed, and the folder is
// synced.  Older ones go only after that, and lose their names before their
// files.  Everything that is read back is checked against its SHA-256 first.
// This header knows nothing of the meaning of the state.
//
// The protocol (sync the file, rename, sync the folder) is that of Pillai et
// al., "All File Systems Are Not Created Equal", OSDI 2014, section 4.

#ifndef GOSSAMER_RUNTIME_CHECKPOINT_CHECKPOINT_STORE_H_
#define GOSSAMER_RUNTIME_CHECKPOINT_CHECKPOINT_STORE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/checkpoint.pb.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/file_ops.h"

namespace gossamer {

// One checkpoint as it is found on the disk.
struct StoredCheckpoint {
  uint64_t round = 0;
  absl::Status integrity;  // OK, or its damage
  uint64_t bytes = 0;      // of its state; 0 if unknown
  CheckpointId id;         // set if integrity is OK
};

// Used by one thread at a time; Save may run on another thread than the loop.
// Another process may read meanwhile.
class CheckpointStore {
 public:
  // `folder` is made when it is first needed.  The newest `keep` >= 1 stay.
  CheckpointStore(std::string folder, int keep,
                  FileOps& files = SystemFileOps());

  // Replaces a checkpoint of the same round; later ones are set aside.  On a
  // full disk older ones go before their time, and the newest intact one stays.
  // After any other error all earlier checkpoints are unchanged.
  absl::Status Save(const Checkpoint& checkpoint);
  // The checkpoints that have gone for room, of all saves.
  uint64_t gone_for_room() const { return gone_for_room_; }
  // The most that there can be, with the one that is being written, and the
  // bytes of the disk that others have left.
  size_t most() const { return keep_ + 1; }
  absl::StatusOr<uint64_t> FreeBytes() const {
    return files_.FreeBytes(folder_);
  }

  // Returns the rounds of the checkpoints that are intact by their SHA-256,
  // ascending.  Returns none if the folder cannot be read: List says why.
  std::vector<uint64_t> Rounds() const;

  // Returns all checkpoints, intact or not, ascending, except those that
  // disappear meanwhile.
  absl::StatusOr<std::vector<StoredCheckpoint>> List() const;
  // Returns those that SetAsideAfter has set aside.
  absl::StatusOr<std::vector<StoredCheckpoint>> ListSetAside() const;

  // Returns kNotFound without such a checkpoint; kDataLoss names the damage.
  absl::StatusOr<Checkpoint> Load(uint64_t round) const;
  // Loads the newest intact checkpoint.  Damaged ones are passed over;
  // `passed_over`, if given, gets their errors.  Returns kNotFound if none is
  // intact.
  absl::StatusOr<Checkpoint> LoadNewest(
      std::vector<absl::Status>* passed_over = nullptr) const;

  // Removes the checkpoints after `round`.  The fleet goes on from there, so
  // later ones belong to a past that others no longer share.  The newest of
  // them is set aside instead, if it is intact or cannot be read at the moment:
  // a person may want it back.  It replaces the one set aside before; nothing
  // reads it by itself.  On an error it stays in its place.  Returns its round;
  // 0 if there was none.
  absl::StatusOr<uint64_t> SetAsideAfter(uint64_t round);
  // Renames checkpoints that are damaged (kDataLoss in `found`) to
  // damaged-round-N, where no later save removes them: a person may mend one.
  // A checkpoint whose new name is taken stays.
  absl::Status KeepDamaged(const std::vector<StoredCheckpoint>& found);
  // Gives a checkpoint that was set aside its name back, so that it is the
  // newest as before.  On an error it is under one of the two names, intact.
  // Returns kFailedPrecondition, with what to do, if one of that round or a
  // later one exists; kNotFound and kDataLoss as Load.
  absl::Status RestoreSetAside(uint64_t round);
  // Returns the error that RestoreSetAside would return.
  absl::Status CheckRestoreSetAside(uint64_t round) const;

 private:
  // The kind of a round's checkpoint: the one that peers go on from, or the one
  // that was set aside.
  enum class Which { kOfTheRun, kSetAside };

  std::string PathOf(uint64_t round) const;
  std::string PathAside(uint64_t round) const;
  std::string Stored(uint64_t round, Which which = Which::kOfTheRun) const;
  absl::Status Remove(const std::vector<uint64_t>& rounds);
  absl::Status RemovePaths(const std::vector<std::string>& paths);
  absl::StatusOr<std::vector<uint64_t>> Folders(
      Which which = Which::kOfTheRun) const;
  absl::StatusOr<std::vector<StoredCheckpoint>> List(Which which) const;
  absl::Status RemoveOld(uint64_t saved);
  bool MakeRoom(uint64_t round);
  absl::Status WriteAside(const Checkpoint& checkpoint,
                          const std::string& path);
  absl::Status Publish(const std::string& aside, uint64_t round);
  absl::StatusOr<wire::CheckpointManifest> ReadManifest(uint64_t round,
                                                        Which which) const;
  absl::StatusOr<wire::CheckpointManifest> Verify(
      uint64_t round, Which which = Which::kOfTheRun) const;

  const std::string folder_;
  const size_t keep_;
  FileOps& files_;
  uint64_t gone_for_room_ = 0;
};

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_CHECKPOINT_CHECKPOINT_STORE_H_
